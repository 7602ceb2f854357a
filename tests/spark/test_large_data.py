"""A partition that is larger than what its worker may take from memory."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sparknet.spark import Trainer

pytestmark = pytest.mark.slow

RECORD, COUNT, AT_ONCE = 3 * 100 * 100, 20_000, 200
"""Images of 30 KB: 600 MB."""
SPARE = 300 << 20
"""What a worker may take beyond what it has: some Arrow batches (64 MB each) on their way."""
SOLVER = """net_param { name: "Large"
  layer { name: "data" type: "MemoryData" top: "data" top: "label"
    transform_param { scale: 0.004 }
    memory_data_param { batch_size: 8 channels: 3 height: 100 width: 100 } }
  layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
    pooling_param { pool: AVE kernel_size: 20 stride: 20 } }
  layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } }
base_lr: 0.05 lr_policy: "fixed" max_iter: 200 random_seed: 1"""


def images(spark, count):
    """Noise, made in the tasks; that of class 1 is lighter."""

    def made(batches):
        import pyarrow as pa

        for batch in batches:
            numbers = batch.column("id").to_numpy()
            for begin in range(0, len(numbers), AT_ONCE):
                labels = numbers[begin : begin + AT_ONCE] % 2
                random = np.random.default_rng(int(numbers[begin]))
                rows = random.integers(0, 200, (len(labels), RECORD), np.uint8)
                rows += (50 * labels[:, None]).astype(np.uint8)
                cells = [row.tobytes() for row in rows]
                yield pa.RecordBatch.from_pydict(
                    {"data": pa.array(cells, pa.binary()), "label": labels}
                )

    return spark.range(0, count, 1, 4).mapInArrow(made, "data binary, label long")


def fitted(spark, count):
    return Trainer(SOLVER, workers=1).fit(images(spark, count))


def worker(trained):
    (event,) = (event for event in trained.history if event["event"] == "workers")
    return event["workers"][0]


def status(process: int, name: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


def family(daemon: int) -> list[int]:
    """The process that Spark's Python workers are forked from, and those that there are."""
    children = Path(f"/proc/{daemon}/task/{daemon}/children").read_text()
    return [daemon, *map(int, children.split())]


@contextmanager
def limited(daemon: int, most: int) -> Iterator[None]:
    """Python workers have so much memory of their own (mapped files do not count)."""
    before = resource.prlimit(daemon, resource.RLIMIT_DATA)
    for process in family(daemon):
        resource.prlimit(process, resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        for process in family(daemon):
            resource.prlimit(process, resource.RLIMIT_DATA, before)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes: Linux")
def test_a_partition_larger_than_memory_trains_from_its_file(spark):
    daemon = status(worker(fitted(spark, 400))["process"], "PPid")
    has = max(status(process, "VmData") << 10 for process in family(daemon))
    assert COUNT * RECORD > 1.9 * SPARE
    with limited(daemon, has + SPARE):
        trained = fitted(spark, COUNT)
    assert worker(trained)["records"] == COUNT
    losses = [event["loss"] for event in trained.history if event["event"] == "round"]
    assert losses[-1] < losses[0] - 0.1
