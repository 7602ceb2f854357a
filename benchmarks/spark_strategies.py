"""Measures accuracy and cost of the strategies: LeNet on Spark, on handwritten digits.

    python -m benchmarks.spark_strategies [--workers 2 4] [--steps 3600] [--only NAME …] [--write]

As benchmarks.strategies, but the workers are tasks of a local Spark, one thread each, and the
digits come from a DataFrame.  --write puts the tables into docs/strategies.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.digits import TRAINED, records
from benchmarks.papers.dynamic import solver
from benchmarks.strategies import Row, measure, rows, table, write
from sparknet.spark import Trainer, local_session
from sparknet.training import Averaging, Strategy

COMMAND = "python -m benchmarks.spark_strategies --write"


def frame(session: Any, part: slice) -> Any:
    """Digits as rows: an image's float32 values as bytes, and its label."""
    digits = records(part).take(slice(None))
    pairs = zip(digits["data"], digits["label"], strict=True)
    listed = [(image.tobytes(), int(label)) for image, label in pairs]
    return session.createDataFrame(listed, "data binary, label int").cache()


@dataclass(frozen=True)
class OnSpark:
    """Trains in tasks of a Spark session."""

    training: Any
    validation: Any
    backend: str = "embedded"

    def __call__(self, strategy: Strategy, workers: int, steps: int) -> Any:
        trainer = Trainer(
            solver(),
            strategy,
            workers,
            steps=steps,
            validate_every=1 << 30,
            backend=self.backend,
        )
        return trainer.fit(self.training, self.validation)


def on_spark(session: Any) -> OnSpark:
    return OnSpark(frame(session, slice(0, TRAINED)), frame(session, slice(TRAINED, None)))


def alone(run: OnSpark, steps: int) -> Row:
    """The run of one worker, with which all are compared."""
    return measure("one worker", Averaging(10), 1, steps, run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--steps", type=int, default=3600, help="that one worker would make")
    parser.add_argument("--only", nargs="*", help="parts of the strategies' names")
    parser.add_argument("--write", action="store_true", help="into docs/strategies.md")
    asked = parser.parse_args()
    session = local_session(max(asked.workers), threads=1)
    run = on_spark(session)
    base = alone(run, asked.steps)
    print(asdict(base), file=sys.stderr)
    tables = []
    for workers in asked.workers:
        found = rows(workers, asked.steps, asked.only, base, run)
        tables.append(table(found, workers, asked.steps))
    text = "\n\n".join(tables)
    print(text)
    if asked.write:
        write(text, COMMAND)


if __name__ == "__main__":
    main()
