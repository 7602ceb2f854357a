"""A net as MLflow's function of Spark, beside the same net as a SparkModel, in turn.

    build/mlflow/bin/python -m benchmarks.spark_udf [--net lenet] [--rows 5000] [--rounds 3]

`make test-mlflow` makes the environment.  Rows are raw pictures of bytes, in two partitions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import sparknet.mlflow
from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.nets import inference_net
from sparknet.net import Net
from sparknet.spark import SparkModel, local_session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=CONTESTS, default="lenet")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    import mlflow

    contest = CONTESTS[chosen.net]
    net = Net(inference_net(contest), seed=1)
    model, column = SparkModel(net), net.tested.entries[0].name
    spark = local_session(2, threads=1)
    pixels = np.random.default_rng(0).integers(0, 256, (chosen.rows, *contest.shape), np.uint8)
    rows = [(number, bytearray(one.tobytes())) for number, one in enumerate(pixels)]
    data = spark.createDataFrame(rows, f"number long, {column} binary").repartition(2).cache()
    (output,) = (one for one in model.transform(data).columns if one not in data.columns)
    with TemporaryDirectory() as folder:
        sparknet.mlflow.save_model(net, Path(folder, "model"))
        kind = f"struct<{output}: array<float>>"
        udf = mlflow.pyfunc.spark_udf(
            spark, f"{folder}/model", env_manager="local", result_type=kind
        )
        ways: dict[str, Callable[[], Any]] = {
            "SparkModel": lambda: model.transform(data).select("number", output),
            "spark_udf": lambda: data.select("number", udf(column)[output].alias(output)),
        }
        ours, theirs = (
            np.array([row[output] for row in way().orderBy("number").limit(100).collect()])
            for way in ways.values()
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(chosen.rounds):
            for name, way in ways.items():
                begin = time.perf_counter()
                way().write.format("noop").mode("overwrite").save()
                rates[name].append(chosen.rows / (time.perf_counter() - begin))
    spark.stop()
    for name, found in rates.items():
        print(f"{name}: {median(found):,.0f} rows/s")
    ratios = [one / other for one, other in zip(*rates.values(), strict=True)]
    print(f"ratio: {min(ratios):.2f}, {median(ratios):.2f}, {max(ratios):.2f}")


if __name__ == "__main__":
    main()
