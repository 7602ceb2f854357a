"""A job by one engine, in a process of its own: ``python -m benchmarks.jobs.side …``.

It answers requests, a line of JSON each: ``load`` with the seconds to the first row from the
process's start, ``run`` with the seconds of a whole job from files to Parquet, and the CPU seconds
and the memory of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.jobs.data import IN_A_FILE, JOBS, MEAN, STD, Job
from benchmarks.jobs.watch import Watch
from benchmarks.peers.process import ROOT

Step = Callable[[], object]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what engines print is no answer
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("engine", "job", "folder", "data", "out"):
        parser.add_argument(name)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--master")
    parser.add_argument("--begin", type=float, default=time.time())
    chosen = parser.parse_args()
    framework, _, library = chosen.engine.partition("-")
    steps: dict[str, Step] = {}
    for request in sys.stdin:
        try:
            if not steps:
                first, run = FRAMEWORKS[framework](chosen, JOBS[chosen.job], library)
                steps = {"load": first, "run": run}
            with Watch() as watch:
                steps[json.loads(request)["do"]]()
            answer = {"first": time.time() - chosen.begin, **watch.figures()}
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            answer = {"error": f"{type(error).__name__}: {lines[0]}"[:200]}
        print(json.dumps(answer), file=answers, flush=True)


# -- Spark -----------------------------------------------------------------------------------


def _session(chosen: argparse.Namespace) -> Any:
    from sparknet.spark import get_session, local_session

    if chosen.master is None:
        return local_session(chosen.tasks, threads=chosen.threads, memory="2g")
    config = {
        "spark.task.cpus": chosen.threads,
        "spark.sql.shuffle.partitions": chosen.tasks,
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    return get_session(master=chosen.master, config=config)


def _spark(chosen: argparse.Namespace, results: Callable[[Any], Any]) -> tuple[Step, Step]:
    session = _session(chosen)
    data = _frames(session, chosen.data) if JOBS[chosen.job].is_video else None
    frame = results(_rows(session, chosen) if data is None else data)
    return partial(frame.head, 1), partial(frame.write.mode("overwrite").parquet, chosen.out)


def _rows(session: Any, chosen: argparse.Namespace) -> Any:
    """Return the rows of a job, as vectors of pyspark.ml where it asks for them."""
    from pyspark.ml.functions import array_to_vector

    rows, job = session.read.parquet(chosen.data), JOBS[chosen.job]
    if not job.is_vector:
        return rows
    return rows.withColumn(job.column, array_to_vector(job.column))


def _frames(session: Any, folder: str) -> Any:
    """Return the frames of videos: Spark has no reader of its own."""
    from sparknet.spark import read_videos

    frames = read_videos(session, _videos(folder), columns=("path", "index", "image"))
    number = f"CAST(regexp_extract(path, '([0-9]+).mp4$', 1) AS LONG) * {IN_A_FILE} + index"
    return frames.selectExpr(f"{number} AS id", "image", "image.data AS frame")


def _videos(folder: str) -> list[str]:
    return [str(path) for path in sorted(Path(folder).glob("*.mp4"))]


def ours(chosen: argparse.Namespace, job: Job, precision: str) -> tuple[Step, Step]:
    """SparkModel in float32, bf16 or int8."""
    from sparknet.spark import SparkModel

    net = Path(chosen.folder) / f"{job.net}.onnx"
    settings: dict[str, Any] = {"columns": {"data": job.column}}
    if job.is_photographs:
        settings |= {"resize": 256, "crop": 224, "interpolation": "pil.bilinear"}
        settings |= {"color": "rgb", "mean": MEAN, "std": STD}
    if job.is_video:
        settings = {"columns": {"images": "image"}, "color": "rgb", "scale": 1 / 255}
        settings |= {"shapes": {"images": [None, *job.shape]}}
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
    output = "pooled" if job.is_text else "output0" if job.is_video else "scores"
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
        from benchmarks.jobs.peers import peer

        return peer(*arguments)

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
        from benchmarks.jobs.peers import peer

        run = peer(*arguments)
        for frame in frames:
            for begin in range(0, len(frame), size):
                part = frame.iloc[begin : begin + size]
                vectors = run(part[job.column].tolist())
                yield part[["id"]].assign(vector=list(vectors))

    schema = "id long, vector array<float>"
    return _spark(chosen, lambda data: data.mapInPandas(work, schema))


def ml(chosen: argparse.Namespace, job: Job, library: str) -> tuple[Step, Step]:
    """pyspark.ml's perceptron or xgboost.spark's trees, which `benchmarks.jobs.data` fitted."""
    from pyspark.ml.functions import vector_to_array

    _session(chosen)
    if library == "perceptron":
        from pyspark.ml.classification import MultilayerPerceptronClassificationModel as Model
    else:
        from xgboost.spark import SparkXGBClassifierModel as Model
    model = Model.load(f"{chosen.folder}/{library}.model")
    vector = vector_to_array("probability", "float32").alias("vector")
    return _spark(chosen, lambda data: model.transform(data).select("id", vector))


# -- others ----------------------------------------------------------------------------------


def daft(chosen: argparse.Namespace, job: Job, library: str) -> tuple[Step, Step]:
    """A class of daft's, an instance for each task."""
    import daft as engine

    kind = engine.DataType.list(engine.DataType.float32())
    size = 8 * job.batch if job.is_text else job.batch

    @engine.cls(max_concurrency=chosen.tasks, use_process=True)
    class Model:
        def __init__(self, *arguments: Any) -> None:
            from benchmarks.jobs.peers import Peer

            self.peer = Peer(*arguments)

        @engine.method.batch(return_dtype=kind, batch_size=size)  # type: ignore[untyped-decorator]
        def vectors(self, values: Any) -> Any:
            return list(self.peer(values.to_pylist()))

    vectors = Model(chosen.folder, chosen.job, library, chosen.threads).vectors
    if job.is_video:
        kinds = {"id": engine.DataType.int64(), "frame": engine.DataType.binary()}
        decode = engine.func(_decode, return_dtype=engine.DataType.struct(kinds), unnest=True)
        frame = engine.from_pydict({"path": _videos(chosen.data)})
        frame = frame.select(decode(frame["path"]))
        frame = frame.select("id", vectors(frame["frame"]).alias("vector"))
    else:
        frame = engine.read_parquet(f"{chosen.data}/*.parquet")
        frame = frame.select("id", vectors(frame[job.column]).alias("vector"))
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
            values = list(batch[job.column])
            return {"id": batch["id"], "vector": self.peer(values)}

    if job.is_video:
        paths = engine.data.from_items(_videos(chosen.data), override_num_blocks=chosen.tasks)
        data = paths.flat_map(lambda row: [*_decode(row["item"])])
    else:
        data = engine.data.read_parquet(chosen.data).select_columns(["id", job.column])
    size = 8 * job.batch if job.is_text else job.batch
    pool = engine.data.ActorPoolStrategy(size=chosen.tasks)
    results = data.map_batches(Model, batch_size=size, num_cpus=1, compute=pool)
    return (
        lambda: results.take(1),
        lambda: results.write_parquet(chosen.out, mode=engine.data.SaveMode.OVERWRITE),
    )


def _decode(path: str) -> Iterator[dict[str, Any]]:
    """Yield the frames of a video by PyAV, as daft's reader does; Ray's needs decord."""
    import av

    begin = IN_A_FILE * int(Path(path).stem)
    with av.open(path) as video:
        for index, frame in enumerate(video.decode(video=0)):
            yield {"id": begin + index, "frame": frame.to_ndarray(format="bgr24").tobytes()}


FRAMEWORKS: dict[str, Callable[[argparse.Namespace, Job, str], tuple[Step, Step]]] = {
    "sparknet": ours,
    "udf": udf,
    "ml": ml,
    "pandas": pandas,
    "daft": daft,
    "ray": ray,
}

if __name__ == "__main__":
    main()
