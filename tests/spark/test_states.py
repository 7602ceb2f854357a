"""Nets with a state for each key, over streams."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", minversion="4.0")

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.spark import SparkModel, transform_with_states
from sparknet.spark.predict.states import PROVIDER, ROCKSDB
from tests.spark.cluster import until

NET = """
name: "sensor"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [1, 1, 1] } } }
layer { name: "cont" type: "Input" top: "cont" input_param { shape { dim: [1, 1] } } }
layer { name: "h" type: "Input" top: "h" input_param { shape { dim: [1, 1, 3] } } }
layer { name: "c" type: "Input" top: "c" input_param { shape { dim: [1, 1, 3] } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" bottom: "h" bottom: "c"
  top: "y" top: "h_T" top: "c_T" recurrent_param { num_output: 3 expose_hidden: true
  weight_filler { type: "uniform" min: -1 max: 1 } } }
layer { name: "score" type: "InnerProduct" bottom: "y" top: "score"
  inner_product_param { num_output: 1 axis: 2 weight_filler { type: "xavier" } } }
"""
STATES = {"h": "h_T", "c": "c_T"}
KEYS, FILES, EACH = 3, 4, 5
SCHEMA = "key long, time long, x float, cont float"


def series():
    """A number for each key and time."""
    return np.random.default_rng(0).normal(size=(KEYS, FILES * EACH)).astype(np.float32)


def expected(net, begin=0):
    """The scores of each key, by a loop over time; states are zero at ``begin``."""
    state = {name: np.zeros((KEYS, 1, 3), np.float32) for name in STATES}
    scores = []
    for values in series()[:, begin:].T:
        row = {"x": values.reshape(KEYS, 1, 1), "cont": np.ones((KEYS, 1)), **state}
        out = net.forward(row, ["score", *STATES.values()])
        state = {name: np.array(out[top]).reshape(KEYS, 1, 3) for name, top in STATES.items()}
        scores.append(np.array(out["score"]).reshape(KEYS))
    return np.stack(scores, 1)


def write_file(folder: Path, number: int) -> None:
    """Rows of all keys, the latest first."""
    times = range(EACH * number, EACH * (number + 1))
    rows = [
        {"key": key, "time": time, "x": float(series()[key, time]), "cont": 1.0}
        for time in reversed(times)
        for key in range(KEYS)
    ]
    draft = folder.parent / f"draft-{number}"
    draft.write_text("\n".join(map(json.dumps, rows)))
    os.utime(draft, (1.7e9 + number, 1.7e9 + number))  # Spark reads the oldest first
    draft.rename(folder / f"{number}.json")


def start(session, folder, model, trigger, **more):
    source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    rows = source.json(str(folder / "in"))
    scores = transform_with_states(rows, model, "key", STATES, order="time", **more)
    assert scores.columns == ["key", "time", "score"]
    sink = scores.writeStream.format("json").option("checkpointLocation", str(folder / "state"))
    return sink.trigger(**trigger).start(str(folder / "out"))


def scores_of(session, folder):
    frame = session.read.schema("key long, time long, score float").json(str(folder / "out"))
    rows = frame.orderBy("key", "time").collect()
    assert [(row.key, row.time) for row in rows] == [
        (key, time) for key in range(KEYS) for time in range(len(rows) // KEYS)
    ]
    return np.float32([row.score for row in rows]).reshape(KEYS, -1)


@pytest.fixture
def rocksdb(session):
    before = session.conf.get(PROVIDER)
    session.conf.set(PROVIDER, ROCKSDB)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.conf.set(PROVIDER, before)
    session.conf.unset("spark.sql.shuffle.partitions")


def test_states_go_on_from_batch_to_batch_and_start_anew_with_a_version(rocksdb, tmp_path):
    (tmp_path / "in").mkdir()
    net = Net(NET, seed=1)
    now = {"availableNow": True}
    for number in range(2):
        write_file(tmp_path / "in", number)
    assert start(rocksdb, tmp_path, SparkModel(net), now).awaitTermination(120)
    wanted = expected(net)[:, : 2 * EACH]
    np.testing.assert_array_equal(scores_of(rocksdb, tmp_path), wanted)
    write_file(tmp_path / "in", 2)
    assert start(rocksdb, tmp_path, net, now, version=2).awaitTermination(120)
    wanted = np.concatenate([wanted, expected(net, 2 * EACH)[:, :EACH]], 1)
    np.testing.assert_array_equal(scores_of(rocksdb, tmp_path), wanted)


@pytest.mark.slow
def test_a_stream_with_states_that_is_killed(rocksdb, tmp_path):
    (tmp_path / "in").mkdir()
    net = Net(NET, seed=1)
    SparkModel(net).save(tmp_path / "model.caffemodel")
    write_file(tmp_path / "in", 0)
    command = [sys.executable, "-m", "tests.spark.test_states", str(tmp_path)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        until(lambda: list((tmp_path / "out").glob("part-*")), "the first batch is written", 120)
        for number in range(1, FILES):
            write_file(tmp_path / "in", number)
        until(lambda: len(list((tmp_path / "out").glob("part-*"))) > 1, "more is written", 120)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    model = SparkModel(tmp_path / "model.caffemodel")
    assert start(rocksdb, tmp_path, model, {"availableNow": True}).awaitTermination(120)
    np.testing.assert_array_equal(scores_of(rocksdb, tmp_path), expected(net))


def test_what_is_refused(session):
    rows = session.createDataFrame([(1, 2, 0.5, 1.0)], SCHEMA)
    net = Net(NET, seed=1)
    before = session.conf.get(PROVIDER)
    session.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBacked")
    with pytest.raises(SparkError, match=r"state store of RocksDB: spark.conf.set\('spark.sql"):
        transform_with_states(rows, net, "key", STATES)
    session.conf.set(PROVIDER, ROCKSDB)
    try:
        with pytest.raises(SparkError, match=r"states has 'hh', which is no input of the net"):
            transform_with_states(rows, net, "key", {"hh": "h_T"})
        with pytest.raises(SparkError, match=r"the data has no column 'x'"):
            transform_with_states(rows.drop("x"), net, "key", STATES)
    finally:
        session.conf.set(PROVIDER, before)


def main() -> None:
    """The driver that is killed."""
    from sparknet.spark import local_session

    folder = Path(sys.argv[1])
    config = {PROVIDER: ROCKSDB, "spark.sql.shuffle.partitions": "1"}
    saved = SparkModel(folder / "model.caffemodel")
    trigger = {"processingTime": "0 seconds"}
    start(local_session(1, config=config), folder, saved, trigger).awaitTermination()


if __name__ == "__main__":
    main()
