"""Measures what Spark adds to prediction: rows a second of SparkModel.transform.

    python -m benchmarks.spark_predict [--nets lenet mlp caffenet] [--times 5] [--torch] [--memory]

In turn, one task and as many threads on all sides, over rows that Spark holds in memory: the net
called directly on numpy batches in this process; `transform`, whose results go nowhere; and with
--torch predict_batch_udf around the same net in PyTorch.  --memory measures instead the
proportional set size of four Python workers that serve VGG-16 with random weights, and of the same
workers when they serve a net without weights.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.peers.contests import CONTESTS, Contest
from benchmarks.peers.nets import inference_net
from sparknet.native import set_threads
from sparknet.net import Net
from sparknet.predict.request import batch_for
from sparknet.spark import SparkModel, local_session

MLP = Contest("mlp_tabular", 256, (100,), 2, "ip3")
NETS = {
    "lenet": (CONTESTS["lenet"], 30_000),
    "mlp": (MLP, 200_000),
    "caffenet": (CONTESTS["caffenet"], 640),
}
"""The nets, and the rows that they predict."""
WORKERS = 4
MEGABYTE = 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--memory", action="store_true")
    asked = parser.parse_args()
    if asked.memory:
        print_memory()
        return
    set_threads(asked.threads)
    session = local_session(1, threads=asked.threads)
    print("| net | way | rows a second | of direct |\n|---|---|---|---|")
    for name in asked.nets:
        measure(session, name, *NETS[name], asked.times, asked.torch)


def measure(session: Any, name: str, contest: Contest, rows: int, times: int, torch: bool) -> None:
    """Print the rows a second of each way, the medians of runs in turn."""
    net = Net(described(contest), seed=1)
    records = np.random.default_rng(0).integers(0, 256, (rows, *contest.shape)).astype(np.uint8)
    data = frame(session, records)
    values = records if len(contest.shape) > 1 else records.astype(np.float32)
    model = SparkModel(net)
    ways: dict[str, Callable[[], object]] = {
        "direct": partial(direct, net, values),
        "transform": lambda: drop(model.transform(data, ["prob"]).select("prob")),
    }
    if torch:
        function = torch_function(contest)
        ways["predict_batch_udf"] = lambda: drop(data.select(function("data")))
    for run in ways.values():
        run()
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(times):
        for way, run in ways.items():
            begun = time.perf_counter()
            run()
            seconds[way].append(time.perf_counter() - begun)
    speeds = {way: rows / median(found) for way, found in seconds.items()}
    for way, speed in speeds.items():
        print(f"| {name} | {way} | {speed:.0f} | {speed / speeds['direct']:.2f} |", flush=True)
    data.unpersist()


def described(contest: Contest) -> Any:
    if contest is not MLP:
        return inference_net(contest)
    from sparknet.models.mlp_tabular import net

    whole = net(contest.batch, contest.batch, features=contest.shape[0]).to_proto()
    kept = [layer for layer in whole.layer if not set(layer.top) & {"accuracy", "loss"}]
    del whole.layer[:]
    whole.layer.extend(kept)
    whole.layer.add(name="prob", type="Softmax", bottom=["ip3"], top=["prob"])
    return whole


def frame(session: Any, records: Any) -> Any:
    """The rows in Spark's memory: images as bytes, others as arrays of float."""
    import pyarrow as pa

    if records.ndim > 2:
        flat = [one.tobytes() for one in records]
        table = pa.table({"data": pa.array(flat, pa.binary())})
    else:
        listed = pa.FixedSizeListArray.from_arrays(
            pa.array(records.astype(np.float32).ravel()), records.shape[1]
        )
        table = pa.table({"data": listed.cast(pa.list_(pa.float32()))})
    data = session.createDataFrame(table.to_pandas()).coalesce(1).cache()
    data.count()
    return data


def direct(net: Net, values: Any) -> None:
    batch = batch_for(net.tested, ["prob"])
    for begin in range(0, len(values), batch):
        net.forward({"data": values[begin : begin + batch]}, ["prob"])


def drop(data: Any) -> None:
    data.write.format("noop").mode("overwrite").save()


def torch_function(contest: Contest) -> Any:
    """predict_batch_udf around the net of PyTorch."""
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    images = len(contest.shape) > 1

    def make() -> Any:
        import torch

        from benchmarks.peers import torch_nets

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        net = getattr(torch_nets, contest.name)().eval()
        if contest.shape == MLP.shape:
            net.body[0] = torch.nn.Linear(contest.shape[0], 512)

        def predict(inputs: Any) -> Any:
            with torch.inference_mode():
                if images:
                    rows = np.stack([np.frombuffer(one, np.uint8) for one in inputs])
                    inputs = rows.reshape(-1, *contest.shape).astype(np.float32)
                return net(torch.from_numpy(np.ascontiguousarray(inputs, np.float32))).numpy()

        return predict

    shapes = None if images else [[contest.shape[0]]]
    return predict_batch_udf(
        make,
        return_type=ArrayType(FloatType()),
        batch_size=64,
        input_tensor_shapes=shapes,
    )


# -- memory ----------------------------------------------------------------------------------


SMALL = """layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 } } }
layer { name: "y" type: "Power" bottom: "x" top: "y" }"""


def print_memory() -> None:
    session = local_session(WORKERS, threads=1)
    net = Net(inference_net(CONTESTS["vgg16"]), seed=1)
    weights = 4 * net.net.flat_params.size
    width = int(np.prod(CONTESTS["vgg16"].shape))
    data = session.range(0, 2 * WORKERS, 1, WORKERS).selectExpr(
        "id", f"cast(repeat('x', {width}) AS binary) AS data"
    )
    model = SparkModel(net)
    drop(SparkModel(SMALL).transform(session.range(0, WORKERS, 1, WORKERS), columns={"x": "id"}))
    bare = resident(session)
    drop(model.transform(data, ["prob"]))
    served = resident(session)
    own = [one - sum(bare) / len(bare) for one in served]
    print(f"weights {weights / MEGABYTE:.0f} MB; bare workers {told(bare)}; serving {told(served)}")
    print(f"copies of the weights in all: {sum(own) / weights:.2f}")


def resident(session: Any) -> list[int]:
    """The proportional set sizes of the session's workers, in bytes."""

    def look(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            pass
        time.sleep(1)  # so that each task has a worker of its own
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        size = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        yield pa.RecordBatch.from_pydict(
            {"process": pa.array([os.getpid()]), "size": pa.array([1024 * size])}
        )

    rows = session.range(0, WORKERS, 1, WORKERS).mapInArrow(look, "process long, size long")
    return [row["size"] for row in rows.collect()]


def told(sizes: list[int]) -> str:
    return " + ".join(f"{size / MEGABYTE:.0f}" for size in sizes) + " MB"


if __name__ == "__main__":
    main()
