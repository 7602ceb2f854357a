"""Predictions on streams: restarted from their checkpoints, with the model of that day."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet.net import Net
from sparknet.spark import SparkModel, Trainer
from tests.spark.cluster import until
from tests.spark.digits import solver, tuples

NET = """
name: "stream"
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: [4, 3] } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
"""
FILES, EACH = 6, 11
SCHEMA = "n long, x array<double>"


def records():
    return np.random.default_rng(0).normal(size=(FILES * EACH, 3))


def write_file(folder: Path, number: int) -> None:
    """A file of the source; it appears whole, as a stream needs it."""
    import json

    rows = enumerate(records())
    mine = [(n, x) for n, x in rows if n // EACH == number]
    text = "\n".join(json.dumps({"n": n, "x": x.tolist()}) for n, x in mine)
    draft = folder.parent / f"draft-{number}"
    draft.write_text(text)
    draft.rename(folder / f"{number}.json")


def start(session, folder, model, **trigger):
    """The stream's predictions as files; one file of the source makes one batch."""
    source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    made = model.transform(source.json(str(folder / "in")), best="class", batch=4)
    sink = made.writeStream.format("json").option("checkpointLocation", str(folder / "checkpoint"))
    return sink.trigger(**trigger).start(str(folder / "out"))


def check(session, folder, expected):
    """Each row is there once, as it was, with its predictions."""
    rows = session.read.schema(f"{SCHEMA}, ip array<float>, class double").json(str(folder / "out"))
    found = rows.orderBy("n").collect()
    assert [row.n for row in found] == list(range(FILES * EACH))
    np.testing.assert_allclose([row.x for row in found], records(), rtol=1e-12)
    np.testing.assert_allclose([row.ip for row in found], expected, rtol=1e-4, atol=1e-5)
    assert [row["class"] for row in found] == expected.argmax(1).tolist()


def test_a_stream_that_is_started_again_takes_the_model_of_then(session, tmp_path):
    (tmp_path / "in").mkdir()
    models = [SparkModel(Net(NET, seed=seed)) for seed in (1, 2)]
    expected = []
    for model, files in zip(models, (range(FILES // 2), range(FILES // 2, FILES)), strict=True):
        model.save(tmp_path / "model.caffemodel")
        for number in files:
            write_file(tmp_path / "in", number)
        saved = SparkModel(tmp_path / "model.caffemodel")
        assert start(session, tmp_path, saved, availableNow=True).awaitTermination(120)
        mine = records()[files[0] * EACH : (files[-1] + 1) * EACH]
        expected.append(model.net.forward({"x": mine})["ip"])
    check(session, tmp_path, np.concatenate(expected))


def test_a_function_of_batches_trains_and_predicts(session, tmp_path):
    """Under Connect it runs in a Python process of the server."""
    rows = [(image.ravel().tolist(), label) for image, label in tuples(60)]
    parts = session.createDataFrame(rows, "data array<float>, label int").coalesce(1)
    parts.write.parquet(str(tmp_path / "in"))
    parts.write.mode("append").parquet(str(tmp_path / "in"))

    def learn(batch, number):
        last = tmp_path / "0.caffemodel" if number else None
        trainer = Trainer(solver(steps=40), workers=2, weights=last)
        trained = trainer.fit(batch)
        trained.net.save(str(tmp_path / f"{number}.caffemodel"))
        guesses = trained.model.transform(batch, ["ip"], best="guess")
        guesses.write.parquet(str(tmp_path / f"guesses-{number}"))

    source = session.readStream.schema(parts.schema).option("maxFilesPerTrigger", 1)
    query = source.parquet(str(tmp_path / "in")).writeStream.foreachBatch(learn)
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert query.trigger(availableNow=True).start().awaitTermination(300)
    for number in range(2):
        guesses = session.read.parquet(str(tmp_path / f"guesses-{number}"))
        assert guesses.where("guess = label").count() > 50


def job(session, folder, model):
    """The same predictions by a job that is no stream, in a task for each row."""
    rows = session.read.schema(SCHEMA).json(str(folder / "in")).repartition(FILES * EACH)
    model.transform(rows, best="class").write.mode("overwrite").json(str(folder / "out"))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["job", "stream"])
def test_each_row_is_written_once_by_what_was_killed_and_started_again(spark, tmp_path, way):
    out, model = tmp_path / "out", SparkModel(Net(NET, seed=1))
    (tmp_path / "in").mkdir()
    model.save(tmp_path / "model.caffemodel")
    for number in range(1 if way == "stream" else FILES):
        write_file(tmp_path / "in", number)
    command = [sys.executable, "-m", "tests.spark.test_streams", str(tmp_path), way]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        if way == "job":
            until(lambda: len([*out.glob("_temporary/0/task_*")]) > 5, "rows are written", 120)
        else:
            until(lambda: [*out.glob("part-*")], "the first batch is written", 120)
            for number in range(1, FILES):
                write_file(tmp_path / "in", number)
            until(lambda: len([*out.glob("part-*")]) > 1, "more is written", 60)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (out / "_SUCCESS").exists()
    if way == "job":
        assert not [*out.glob("part-*")]
        job(spark, tmp_path, model)
    else:
        assert start(spark, tmp_path, model, availableNow=True).awaitTermination(120)
    check(spark, tmp_path, model.net.forward({"x": records()})["ip"])


def main() -> None:
    """The driver that is killed."""
    from sparknet.spark import local_session

    folder, way = Path(sys.argv[1]), sys.argv[2]
    session, saved = local_session(1), SparkModel(folder / "model.caffemodel")
    if way == "job":
        job(session, folder, saved)
    else:
        start(session, folder, saved, processingTime="0 seconds").awaitTermination()


if __name__ == "__main__":
    main()
