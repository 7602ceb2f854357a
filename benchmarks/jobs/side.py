"""A job by one engine, in a process of its own: ``python -m benchmarks.jobs.side …``.

It prints JSON: seconds to the first row from the process's start, rows a second of the whole job
from Parquet to Parquet after that, CPU seconds and memory of all processes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.jobs.data import JOBS, MEAN, STD, Job
from benchmarks.jobs.watch import Watch

Step = Callable[[], object]


def main() -> None:
    begin = time.time()
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("engine", "job", "folder", "data", "out"):
        parser.add_argument(name)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--begun", type=float, default=begin)
    chosen = parser.parse_args()
    framework, _, library = chosen.engine.partition("-")
    first, run = FRAMEWORKS[framework](chosen, JOBS[chosen.job], library)
    first()
    until_first = time.time() - chosen.begun
    with Watch() as watch:
        run()
    print(json.dumps({"first": until_first, **watch.figures()}))


# -- Spark -----------------------------------------------------------------------------------


def _session(chosen: argparse.Namespace) -> Any:
    from sparknet.spark import local_session

    return local_session(chosen.tasks, threads=chosen.threads, memory="2g")


def _spark(chosen: argparse.Namespace, results: Callable[[Any], Any]) -> tuple[Step, Step]:
    session = _session(chosen)
    frame = results(session.read.parquet(chosen.data))
    return partial(frame.head, 1), partial(frame.write.mode("overwrite").parquet, chosen.out)


def ours(chosen: argparse.Namespace, job: Job, precision: str) -> tuple[Step, Step]:
    """SparkModel in float32, bf16 or int8."""
    from sparknet.spark import SparkModel

    net = Path(chosen.folder) / f"{job.net}.onnx"
    settings: dict[str, Any] = {"columns": {"data": job.column}}
    if job.is_photographs:
        settings |= {"resize": 256, "crop": 224, "interpolation": "pil.bilinear"}
        settings |= {"color": "rgb", "mean": MEAN, "std": STD}
    if job.is_text:
        settings = {
            "columns": {"input_ids": job.column},
            "tokenizer": net.with_suffix(".json"),
            "pooling": "mean",
        }
    if precision == "bf16":
        settings["precision"] = "bf16"
    model = SparkModel(str(net), **settings)
    if precision == "int8":
        model.net.quantize(_calibration(chosen, job, model))
    output = "pooled" if job.is_text else "scores"
    return _spark(
        chosen, lambda data: model.transform(data, [output]).selectExpr("id", f"{output} AS vector")
    )


def _calibration(chosen: argparse.Namespace, job: Job, model: Any) -> Any:
    """The first 32 records, as the net takes them."""
    import pyarrow.parquet as pq

    file = min(Path(chosen.data).glob("*.parquet"))
    values = pq.ParquetFile(file).read_row_group(0)[job.column][:32].to_pylist()
    from benchmarks.jobs.peers import records

    return {"data": records(job, values)}


def udf(chosen: argparse.Namespace, job: Job, library: str) -> tuple[Step, Step]:
    """predict_batch_udf."""
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType

    arguments = (chosen.folder, chosen.job, library, chosen.threads)

    def make() -> Any:
        from benchmarks.jobs.peers import Peer

        return Peer(*arguments)

    function = predict_batch_udf(
        make,
        return_type=ArrayType(FloatType()),
        batch_size=8 * job.batch if job.is_text else job.batch,
        input_tensor_shapes=[list(job.shape)] if job.column == "values" else None,
    )
    return _spark(chosen, lambda data: data.select("id", function(job.column).alias("vector")))


def pandas(chosen: argparse.Namespace, job: Job, library: str) -> tuple[Step, Step]:
    """mapInPandas."""
    arguments = (chosen.folder, chosen.job, library, chosen.threads)
    size = 8 * job.batch if job.is_text else job.batch

    def work(frames: Iterator[Any]) -> Iterator[Any]:
        from benchmarks.jobs.peers import Peer

        peer = Peer(*arguments)
        for frame in frames:
            for begin in range(0, len(frame), size):
                part = frame.iloc[begin : begin + size]
                vectors = peer(part[job.column].tolist())
                yield part[["id"]].assign(vector=list(vectors))

    schema = "id long, vector array<float>"
    return _spark(chosen, lambda data: data.mapInPandas(work, schema))


# -- others ----------------------------------------------------------------------------------


def daft(chosen: argparse.Namespace, job: Job, library: str) -> tuple[Step, Step]:
    """A class of daft's, an instance for each task."""
    import daft as engine

    arguments = (chosen.folder, chosen.job, library, chosen.threads)
    kind = engine.DataType.list(engine.DataType.float32())
    size = 8 * job.batch if job.is_text else job.batch

    @engine.udf(return_dtype=kind, concurrency=chosen.tasks, batch_size=size)
    class Model:
        def __init__(self) -> None:
            from benchmarks.jobs.peers import Peer

            self.peer = Peer(*arguments)

        def __call__(self, values: Any) -> Any:
            return list(self.peer(values.to_pylist()))

    model: Any = Model
    frame = engine.read_parquet(f"{chosen.data}/*.parquet")
    frame = frame.select("id", model(engine.col(job.column)).alias("vector"))
    return (
        lambda: frame.limit(1).to_pydict(),
        lambda: frame.write_parquet(chosen.out, write_mode="overwrite"),
    )


def ray(chosen: argparse.Namespace, job: Job, library: str) -> tuple[Step, Step]:
    """ray.data's map_batches over actors."""
    import logging

    import ray as engine

    # Logical cores: reading needs some beside those of the actors.
    cores = 2 * chosen.tasks
    engine.init(num_cpus=cores, logging_level=logging.ERROR, include_dashboard=False)
    arguments = (chosen.folder, chosen.job, library, chosen.threads)

    class Model:
        def __init__(self) -> None:
            from benchmarks.jobs.peers import Peer

            self.peer = Peer(*arguments)

        def __call__(self, batch: Any) -> Any:
            values = batch[job.column].tolist()
            return {"id": batch["id"], "vector": self.peer(values)}

    size = 8 * job.batch if job.is_text else job.batch
    data = engine.data.read_parquet(chosen.data, columns=["id", job.column])
    made = data.map_batches(Model, batch_size=size, num_cpus=1, concurrency=chosen.tasks)
    return lambda: made.take(1), lambda: made.write_parquet(chosen.out, mode="overwrite")


FRAMEWORKS: dict[str, Callable[[argparse.Namespace, Job, str], tuple[Step, Step]]] = {
    "sparknet": ours,
    "udf": udf,
    "pandas": pandas,
    "daft": daft,
    "ray": ray,
}

if __name__ == "__main__":
    main()
