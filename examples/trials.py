"""Rows of a table that compares ways over seeds: the mean of each column, and its standard error.

    python examples/trials.py

Each application holds its net against the strongest plain method that its author knows, tuned on
the same rows, and prints both with this, and what lies between them in pairs of the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.training.planning.trials import difference

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


def against(plain: Sequence[float], ours: Sequence[float], scale: float = 100) -> str:
    """Print how much larger the net's numbers are than a plain method's, and return the verdict.

    A difference is seen where Student's t gives it 95 % confidence; one seed says nothing of it.
    """
    found = difference(dict(enumerate(plain)), dict(enumerate(ours)))
    unit = " points" if scale == 100 else ""
    print(f"net - plain method, by seed: {found.spread.text(scale, unit=unit)}, {found.verdict}")
    return found.verdict


if __name__ == "__main__":
    head("accuracy")
    row("a way, over three seeds", plain := [0.91, 0.93, 0.92])
    row("another one", ours := [0.92, 0.95, 0.93])
    against(plain, ours)
