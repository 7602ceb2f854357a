"""Rows of a table that compares ways over seeds: the mean of each column, and its standard error.

    python examples/trials.py

Each application holds its net against the strongest plain method that its author knows, tuned on
the same rows, and prints both with this.  Two rows whose means differ by less than about three
standard errors show no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Number = float | Sequence[float]


def head(*columns: str) -> None:
    print(f"{'':32}" + "".join(f"{column:>18}" for column in columns), flush=True)


def row(name: str, found: Sequence[Number], *forms: str) -> list[float]:
    """Print a way's row from what each seed found, a number or several; returns the means.

    ``forms`` are those of the columns: .1% for all unless more are given.
    """
    values = np.array(found, float).reshape(len(found), -1)
    means = values.mean(0)
    given = forms or (".1%",)
    every = given * len(means) if len(given) == 1 else given
    shown = [format(mean, form) for mean, form in zip(means, every, strict=True)]
    if len(values) > 1:
        errors = values.std(0, ddof=1) / np.sqrt(len(values))
        parts = zip(shown, errors, every, strict=True)
        shown = [f"{mean} ± {error:{form}}" for mean, error, form in parts]
    print(f"{name:32}" + "".join(f"{one:>18}" for one in shown), flush=True)
    return [float(mean) for mean in means]


if __name__ == "__main__":
    head("accuracy")
    row("a way, over three seeds", [0.91, 0.93, 0.92])
