"""Training on a local Spark: what takes `session` holds for classic sessions and for Connect."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import (
    DataError,
    FileError,
    ListenerError,
    SettingError,
    SparkError,
    SparkNetError,
)
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords
from sparknet.native import has_bf16, set_threads, threads
from sparknet.net import Net
from sparknet.spark import Trainer
from tests.spark.conftest import CONNECT
from tests.spark.digits import pixels, records, solver, tuples


def rdd(spark, count, parts, seed=0):
    return spark.sparkContext.parallelize(tuples(count, seed), parts)


def frame(session, count, seed=0):
    """The same records as a DataFrame, under the names of the net's blobs."""
    rows = [(image.tobytes(), label) for image, label in tuples(count, seed)]
    return session.createDataFrame(rows, "data binary, label int")


def events(trained, kind):
    return [event for event in trained.history if event["event"] == kind]


def flat(trained):
    return np.asarray(trained.weights.flat)


def test_two_workers_learn(session):
    trainer = Trainer(solver(), workers=2, validate_every=3)
    trained = trainer.fit(frame(session, 400), validation=frame(session, 101, seed=1))
    assert trained.outcome.reason == "steps"
    assert trained.outcome.metrics["accuracy"] > 0.97
    (introduced,) = events(trained, "workers")
    assert sum(worker["records"] for worker in introduced["workers"]) == 400
    assert sum(worker["held_out"] for worker in introduced["workers"]) == 101
    assert {event["records"] for event in events(trained, "validation")} == {101}
    assert [event["round"] for event in events(trained, "round")] == [1, 2, 3, 4, 5, 6]
    assert trained.net.get_weights().allclose(trained.weights)
    assert len(repr(trained)) < 500  # a notebook shows it


@pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")
def test_workers_multiply_in_bfloat16(spark):
    data, held = rdd(spark, 400, 2), rdd(spark, 101, 2, seed=1)
    narrow = Trainer(solver(), precision="bf16").fit(data, validation=held)
    assert narrow.net.precision == "bf16"
    assert narrow.outcome.metrics["accuracy"] > 0.97
    of_a_net = Trainer(Net(solver(), precision="bf16")).fit(data)
    np.testing.assert_array_equal(flat(of_a_net), flat(narrow))
    wide = flat(Trainer(solver()).fit(data))
    apart = np.linalg.norm(flat(narrow) - wide) / np.linalg.norm(wide)
    assert 1e-5 < apart < 0.05
    with pytest.raises(SettingError, match="this Net computes in float32: give precision to Net"):
        Trainer(Net(solver()), precision="bf16").fit(data)


def test_an_rdd_of_tuples(spark):
    trained = Trainer(solver()).fit(rdd(spark, 200, 3), validation=rdd(spark, 100, 2, seed=1))
    assert trained.outcome.metrics["accuracy"] > 0.97


@pytest.mark.skipif(not CONNECT, reason="a classic session has RDDs")
def test_connect_has_no_rdds(session):
    with pytest.raises(NotImplementedError, match="rdd is not implemented"):
        Trainer(solver()).fit(frame(session, 20).rdd)


def test_columns_of_other_names_and_bytes_that_the_net_scales(session):
    scaled = solver().replace(
        'type: "Input" top: "data" top: "label"\n  input_param { shape '
        "{ dim: 20 dim: 1 dim: 6 dim: 6 } shape { dim: 20 } }",
        'type: "MemoryData" top: "data" top: "label" transform_param { scale: 0.00390625 }\n'
        "  memory_data_param { batch_size: 20 channels: 1 height: 6 width: 6 }",
    )
    assert "MemoryData" in scaled
    trainer = Trainer(scaled, workers=2, columns={"data": "pixels", "label": "digit"})
    trained = trainer.fit(pixels(session, 400), validation=pixels(session, 100, seed=1))
    assert trained.outcome.metrics["accuracy"] > 0.97


@pytest.fixture
def one_thread():
    """As the tasks have: more of them round gradients otherwise."""
    before = threads()
    set_threads(1)
    yield
    set_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_one_worker_is_plain_training(session):
    images, labels = records(200)
    net = Net(solver(steps=25))
    plain = ArrayRecords(data=(images / 255).astype(np.float32), label=labels)
    with Batches(plain, net.batch_size, Order(200, seed=5)) as batches:
        net.set_training_data(batches)
        net.train(25)
    trained = Trainer(solver(steps=25), workers=1, seed=5).fit(frame(session, 200))
    np.testing.assert_array_equal(flat(trained), np.asarray(net.get_weights().flat))


@pytest.mark.parametrize("strategy", ["allreduce", "elastic", "slowmo", "dynamic"])
def test_other_strategies(session, strategy):
    trainer = Trainer(solver(), strategy, workers=2)
    trained = trainer.fit(frame(session, 400), validation=frame(session, 100, seed=1))
    assert trained.outcome.metrics["accuracy"] > 0.9


def test_fewer_records_than_workers(session):
    trained = Trainer(solver(steps=4), workers=4).fit(frame(session, 3))
    (introduced,) = events(trained, "workers")
    assert sum(worker["records"] for worker in introduced["workers"]) == 3
    assert events(trained, "start")[0]["records"] == 3


def test_no_records(session):
    empty = frame(session, 10).where("label < 0")
    with pytest.raises(DataError, match="the training data has no records"):
        Trainer(solver()).fit(empty)


def test_names_with_dots(session):
    data = frame(session, 40).toDF("some.pixels", "its`label")
    trainer = Trainer(solver(), steps=2, columns={"data": "some.pixels", "label": "its`label"})
    trained = trainer.fit(data, validation=data)
    predicted = trained.model.transform(data, columns={"data": "some.pixels"}, prefix="my.")
    assert predicted.columns == ["some.pixels", "its`label", "my.ip"]
    assert len(predicted.collect()) == 40
    with pytest.raises(SparkError, match=r"column 'some.pixels' is null"):
        trainer.fit(session.sql("SELECT binary(NULL) AS `some.pixels`, 1 AS `its``label`"))


def test_a_net_that_is_given_stays_as_it_is(session):
    net = Net(solver(steps=10))
    before = np.array(net.get_weights().flat)
    trained = Trainer(net, workers=1).fit(frame(session, 100))
    assert trained.net is not net
    np.testing.assert_array_equal(net.get_weights().flat, before)
    np.testing.assert_array_equal(trained.net.get_weights().flat, flat(trained))
    assert np.abs(flat(trained) - before).max() > 0.01


def test_epochs_are_counted_from_the_records(session):
    trained = Trainer(solver(), workers=2, epochs=3).fit(frame(session, 200))
    assert trained.outcome.iteration == 3 * 200 // (2 * 20)


def test_what_a_worker_says_reaches_the_driver(session):
    wrong = frame(session, 50).selectExpr("data", "17 as label")
    said = r"column 'label' holds 17, which is no class: .* \(partition \d, row \d+ of the training"
    with pytest.raises(SparkNetError, match=said):
        Trainer(solver(), workers=2).fit(wrong)


def test_fine_tuning_starts_from_weights(session, tmp_path):
    net = Net(solver())
    net.save(tmp_path / "start.caffemodel")
    still = solver(steps=2).replace("base_lr: 0.05", "base_lr: 0")
    trainer = Trainer(still, weights=tmp_path / "start.caffemodel")
    trained = trainer.fit(frame(session, 100))
    np.testing.assert_array_equal(flat(trained), np.asarray(net.get_weights().flat))


def test_a_run_leaves_nothing_behind(spark):
    def look(_):
        import os
        from pathlib import Path

        folder = Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0])
        yield [str(path) for path in folder.glob("sparknet-*")]

    running = threading.active_count()
    files = len(list(Path("/proc/self/fd").iterdir()))
    Trainer(solver(steps=4), workers=2).fit(rdd(spark, 100, 2))
    assert spark.sparkContext.parallelize([0], 1).mapPartitions(look).collect() == [[]]
    assert threading.active_count() <= running
    assert len(list(Path("/proc/self/fd").iterdir())) <= files + 2  # the gateway's own may grow


class Killer:
    """Kills a worker's process in a round of the first attempt."""

    def __init__(self, round: int, rank: int) -> None:
        self.round, self.rank = round, rank
        self.processes: list[int] = []
        self.attempts: list[int] = []

    def __call__(self, event):
        if event["event"] == "workers":
            self.processes = [worker["process"] for worker in event["workers"]]
            self.attempts.append(event["attempt"])
        if event["event"] == "round" and event["round"] == self.round and len(self.attempts) == 1:
            os.kill(self.processes[self.rank], signal.SIGKILL)


def test_a_killed_worker_costs_no_more_than_since_the_snapshot(session, tmp_path):
    data = frame(session, 200)
    whole = Trainer(solver(steps=80), workers=2).fit(data)
    killer = Killer(5, 0)
    trainer = Trainer(
        solver(steps=80),
        workers=2,
        snapshots=str(tmp_path),
        snapshot_every=2,
        deadline=20,
        on_event=killer,
    )
    trained = trainer.fit(data)
    assert killer.attempts == [1, 2]
    assert "round-00000004" in [event["resumed"] for event in events(trained, "start")][1]
    np.testing.assert_array_equal(flat(trained), flat(whole))


def test_a_later_run_goes_on_from_the_newest_snapshot(session, tmp_path):
    data = frame(session, 200)
    whole = Trainer(solver(steps=60), workers=2).fit(data)
    path = f"file://{tmp_path}/kept"
    Trainer(solver(steps=40), workers=2, snapshots=path, snapshot_every=2).fit(data)
    trainer = Trainer(solver(steps=60), workers=2, snapshots=path, snapshot_every=2)
    trained = trainer.fit(data, resume=True)
    assert [event["round"] for event in events(trained, "round")] == [5, 6]
    np.testing.assert_array_equal(flat(trained), flat(whole))
    for other, said in (
        ({"strategy": "slowmo"}, "its strategy is .*'averaging'.*, not .*'slowmo'"),
        ({"seed": 1}, "its order_seed is 0, not 1$"),
        ({"solver": solver().replace("num_output: 8", "num_output: 9")}, "its weights is"),
    ):
        with pytest.raises(FileError, match=f"round-0+6: is of another run: {said}"):
            replace(trainer, **other).fit(data, resume=True)
    alone = replace(trainer, workers=1, steps=70).fit(data, resume=True)
    assert [event["iteration"] for event in events(alone, "round")] == [65, 70]
    assert alone.outcome.samples == 7 * trained.outcome.samples / 6


def test_patience_leaves_the_best_weights(session):
    """Held-out labels that are all wrong: the more it learns, the worse; the first is the best."""
    data = frame(session, 200)
    wrong = frame(session, 100, seed=1).selectExpr("data", "(label + 1) % 4 AS label")
    trainer = Trainer(solver(), validate_every=1, patience=2, metric="loss")
    trained = trainer.fit(data, validation=wrong)
    first = Trainer(solver(steps=10), validate_every=1).fit(data, validation=wrong)
    outcome = trained.outcome
    assert (outcome.reason, outcome.iteration, outcome.best) == ("patience", 30, 10)
    assert events(trained, "stop")[0]["best"] == 10
    assert outcome.metrics == first.outcome.metrics
    np.testing.assert_array_equal(flat(trained), flat(first))


def test_a_listener_that_fails_ends_the_run(session):
    heard: list[str] = []

    def hear(event):
        heard.append(event["event"])
        if event["event"] == "round":
            raise ZeroDivisionError("no luck")

    said = "on_event failed at the event 'round': ZeroDivisionError: no luck"

    with pytest.raises(ListenerError, match=f"^{said}$") as found:
        Trainer(solver(), on_event=hear).fit(frame(session, 50))
    assert isinstance(found.value.__cause__, ZeroDivisionError)
    assert heard[-1] == "round"  # nothing after, no failure of a worker's either
