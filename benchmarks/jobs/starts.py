"""Measures how soon a training of two workers begins on half a million rows of 100 numbers.

    python -m benchmarks.jobs.starts [--rows 500000] [--times 3]

The time from `fit` to the end of the first round, in a session that has trained before, on Parquet:
as an array of a row's columns, and as VectorAssembler's vectors.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.jobs.watch import Watch
from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.spark import Trainer, local_session

COLUMNS = [f"c{number}" for number in range(100)]


def write_table(path: Path, rows: int) -> None:
    """Write a table of doubles and a label in eight files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, each = np.random.default_rng(0), rows // 8
    path.mkdir()
    for number in range(8):
        columns: dict[str, Any] = {name: rng.standard_normal(each) for name in COLUMNS}
        columns["label"] = rng.integers(0, 2, each)
        pq.write_table(pa.table(columns), path / f"{number}.parquet")


def first_round(data: Any) -> tuple[float, float]:
    """Return the seconds from `fit` to the end of the first round, and the CPU seconds of all."""
    net = NetParams(
        "lines",
        RDDLayer("data", shape=[256, 100]),
        RDDLayer("label", shape=[256]),
        LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
        SoftmaxWithLoss("loss", ["ip", "label"]),
    )
    ends: list[float] = []
    begin = time.perf_counter()

    def note(event: Any) -> None:
        if event["event"] == "round":
            ends.append(time.perf_counter() - begin)

    solver = SolverParams(net=net, base_lr=0.1, lr_policy="fixed")
    with Watch() as watch:
        Trainer(solver, workers=2, steps=20, on_event=note).fit(data)
    return ends[0], watch.figures()["cpu"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    session = local_session(2)
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql.functions import array

    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder, "table"), chosen.rows)
        table = session.read.parquet(f"{folder}/table")
        vectors = VectorAssembler(inputCols=COLUMNS, outputCol="data").transform(table)
        frames = {"arrays": table.select(array(*COLUMNS).alias("data"), "label")}
        frames["vectors"] = vectors.select("data", "label")
        times = [
            {name: first_round(data) for name, data in frames.items()}
            for _ in range(chosen.times + 1)
        ]
        session.stop()
    print("| rows | first round, s | CPU s of the whole training |\n|---|---|---|")
    for name in frames:
        seconds, cpu = zip(*(one[name] for one in times[1:]), strict=True)
        print(
            f"| {chosen.rows:,} {name} | {median(seconds):.1f} ({min(seconds):.1f} to "
            f"{max(seconds):.1f}) | {median(cpu):.1f} |"
        )


if __name__ == "__main__":
    main()
