"""Train LeNet on 1,797 real handwritten digits, by two workers of a local Spark.

`make demo` runs this script.  It writes a caffemodel, a log and a plot to build/demo, or to the
given folder.

    python examples/digits_spark.py [folder]
    spark-submit examples/digits_spark.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

from digits import DEMO, HELD_OUT, digits, solver

from sparknet.report import JsonLines, Progress, plot, together
from sparknet.spark import Trainer, get_session, read_records

WORKERS = 2


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "digits.jsonl"
    log.unlink(missing_ok=True)
    spark = get_session(WORKERS)
    learned, held_out = (read_records(spark, part) for part in digits())
    trained = Trainer(
        solver,
        "averaging",
        WORKERS,
        steps=300,
        validate_every=3,
        on_event=together(Progress(), JsonLines(log)),
    ).fit(learned, held_out)
    trained.net.save(folder / "digits.caffemodel")
    plot(log, folder / "digits.svg")
    accuracy = trained.outcome.metrics["accuracy"]
    print(f"accuracy {accuracy:.2%} on {HELD_OUT} digits that were held out")
    print(f"{folder}: digits.caffemodel, digits.jsonl, digits.svg")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO)
