"""Measures accuracy and cost of the strategies: LeNet on handwritten digits, K local workers.

    python -m benchmarks.strategies [--workers 2] [--steps 2400] [--only NAME …] [--write]

The data are those of benchmarks/digits.py: 8,500 to train on, 1,500 to test on. Every run sees
as many samples as one worker in so many steps. --write puts the table into docs/strategies.md; it
is for the real digits only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.digits import ROOT, TRAINED, real, records
from benchmarks.papers.dynamic import BATCH, solver
from benchmarks.papers.trainings import synchronisations
from sparknet.training import (
    BMUF,
    AllReduce,
    Auto,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
    train,
)

PAGE = ROOT / "docs" / "strategies.md"
COMMAND = "python -m benchmarks.strategies --write"
END = "<!-- end of the table -->"

STRATEGIES: dict[str, Strategy] = {
    "Averaging(steps=10)": Averaging(10),
    "Averaging(steps=10, momentum='average')": Averaging(10, momentum="average"),
    "Averaging(steps=50)": Averaging(50),
    "Averaging(steps=10, codec='fp16')": Averaging(10, codec="fp16"),
    "Averaging(steps=10, codec='int8')": Averaging(10, codec="int8"),
    "DynamicAveraging()": DynamicAveraging(),
    "AllReduce()": AllReduce(),
    "Downpour()": Downpour(),
    "ElasticAveraging()": ElasticAveraging(),
    "SlowMo(steps=10)": SlowMo(10),
    "SlowMo(steps=10, beta=0.5)": SlowMo(10, beta=0.5),
    "DiLoCo(steps=10)": DiLoCo(10),
    "BMUF(steps=50)": BMUF(50),
    "Auto()": Auto(),
}


Run = Callable[[Strategy, int, int], Any]
"""A function of strategy, workers and steps of each, which returns a `Trained`."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    strategy: str
    accuracy: float
    steps: int
    rounds: int
    megabytes: float
    """Megabytes sent by each worker."""
    communication: float
    seconds: float


def here(strategy: Strategy, workers: int, steps: int) -> Any:
    """Train in processes of this machine."""
    return train(
        solver(),
        records(slice(0, TRAINED)),
        workers=workers,
        strategy=strategy,
        steps=steps,
        validation=records(slice(TRAINED, None)),
        validate_every=1 << 30,
    )


def measure(name: str, strategy: Strategy, workers: int, steps: int, run: Run = here) -> Row:
    """Train with as many samples as one worker sees in ``steps`` steps."""
    trained = run(strategy, workers, steps // workers)
    rounds = [event for event in trained.history if event["event"] == "round"]
    stop = trained.history[-1]
    return Row(
        name,
        trained.outcome.metrics["accuracy"],
        trained.outcome.iteration,
        synchronisations(trained.weights.flat.nbytes, strategy, rounds, workers),
        stop["total_bytes_sent"] / workers / 1e6,
        stop["communication"],
        stop["total_seconds"],
    )


def table(rows: list[Row], workers: int, steps: int) -> str:
    """The rows as Markdown, compared with the first row."""
    lines = [
        f"LeNet, {workers} workers, batches of {BATCH} each, {steps * BATCH:,} samples in all, "
        f"{TRAINED:,} digits to train on, 1,500 to test on:",
        "",
        "| strategy | accuracy | against one worker | steps of each | synchronisations | "
        "MB sent by each | time in communication |",
        "|---|---|---|---|---|---|---|",
    ]
    base = rows[0].accuracy
    for row in rows:
        against = "" if row is rows[0] else f"{100 * (row.accuracy - base):+.2f}"
        lines.append(
            f"| `{row.strategy}` | {100 * row.accuracy:.2f} % | {against} | {row.steps} | "
            f"{row.rounds} | {row.megabytes:.1f} | {100 * row.communication:.1f} % |"
        )
    return "\n".join(lines)


def write(text: str, command: str) -> None:
    """Write a table between its marks in docs/strategies.md."""
    if real() is None:
        raise SystemExit("the guide's tables are of MNIST's digits: SPARKNET_MNIST says where")
    page, mark = PAGE.read_text(), f"<!-- table: {command} -->"
    begin = page.index(mark) + len(mark)
    PAGE.write_text(f"{page[:begin]}\n\n{text}\n\n{page[page.index(END, begin) :]}")


def rows(
    workers: int, steps: int, only: Sequence[str] | None, base: Row | None = None, run: Run = here
) -> list[Row]:
    """One worker (``base`` if it has been measured), then the strategies."""
    found = [base or measure("one worker", Averaging(10), 1, steps, run)]
    for name, strategy in STRATEGIES.items():
        if only is None or any(part in name for part in only):
            found.append(measure(name, strategy, workers, steps, run))
            print(asdict(found[-1]), file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2400, help="that one worker would make")
    parser.add_argument("--only", nargs="*", help="parts of the strategies' names")
    parser.add_argument("--write", action="store_true", help="into docs/strategies.md")
    asked = parser.parse_args()
    text = table(rows(asked.workers, asked.steps, asked.only), asked.workers, asked.steps)
    print(text)
    if asked.write:
        write(text, COMMAND)


if __name__ == "__main__":
    main()
