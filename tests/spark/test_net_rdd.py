"""net_rdd: SparkNet's Listing 3, with nets, processes and records counted."""

import os
import signal
from collections.abc import Callable
from operator import add
from pathlib import Path

import numpy as np
import pytest

from sparknet import LinearLayer, Net, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.errors import SparkError
from sparknet.loaders import ArrayRecords
from sparknet.spark import Trainer, net_rdd
from sparknet.spark.rdd.net_home import NetHome, NetJob
from sparknet.training import Averaging, simulate

BATCH, STEPS, ROUNDS, WORKERS = 8, 3, 8, 2
POINTS = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
SIDES = (POINTS[:, 0] > POINTS[:, 1]).astype(np.float32)
NET = NetParams(
    "points",
    RDDLayer("data", shape=[BATCH, 4]),
    RDDLayer("label", shape=[BATCH]),
    LinearLayer("ip", "data", num_outputs=2),
    SoftmaxWithLoss("loss", ["ip", "label"]),
)
RATES = {"lr_policy": "step", "stepsize": 10, "gamma": 0.5, "momentum": 0.9}
SOLVER = SolverParams(net=NET, base_lr=0.1, random_seed=1, **RATES)


def make(records, seed=1):
    net = Net(SOLVER.but(random_seed=seed))
    net.set_training_data(records)
    return net


def train(net):
    net.train(STEPS)
    return net.get_weights()


def nets_of(spark, seed=1):
    """Worker w has the records w, w + 2, w + 4 …, as virtual workers that do not shuffle."""
    records = [(POINTS[w::WORKERS], SIDES[w::WORKERS]) for w in range(WORKERS)]
    data = spark.sparkContext.parallelize(records, WORKERS)
    rows = data.flatMap(lambda part: list(zip(*part, strict=True)))
    return net_rdd(rows, lambda records: make(records, seed))


def rounds(spark, nets, step=train, seed=1):
    weights = make((POINTS, SIDES), seed).get_weights()
    for number in range(ROUNDS):
        broadcast = spark.sparkContext.broadcast(weights)
        nets.map(lambda net, broadcast=broadcast: net.set_weights(broadcast.value))
        weights = nets.map(step if number == ROUNDS // 2 else train).mean()
        broadcast.destroy()
    return weights


def flat(weights):
    return np.asarray(weights.flat)


@pytest.fixture(scope="module")
def averaged():
    """The weights of `Trainer`'s averaging with the same batches."""
    trained = simulate(
        SOLVER,
        ArrayRecords(data=POINTS, label=SIDES),
        workers=WORKERS,
        strategy=Averaging(steps=STEPS),
        steps=STEPS * ROUNDS,
        shuffle=False,
        threads=1,
    )
    return flat(trained.weights)


def test_each_net_goes_on_in_whatever_process(spark, averaged):
    nets = nets_of(spark)
    np.testing.assert_array_equal(flat(rounds(spark, nets)), averaged)
    for status in nets.status:
        assert (status.iteration, status.records) == (STEPS * ROUNDS, STEPS * ROUNDS * BATCH)
        assert status.records > 3 * len(POINTS) / WORKERS  # epochs
        assert 1 <= status.built <= 4  # the slots of the session
        assert status.lost == 0
    folders = nets._homes.map(lambda home: home.folder).collect()
    assert all(len(list(Path(folder).glob("state-*"))) == 2 for folder in folders)
    nets.unpersist()
    assert not any(Path(folder).exists() for folder in folders)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_killed_worker_changes_nothing(spark, averaged, tmp_path, steps):
    def killed(net):
        net.train(steps)
        once(tmp_path / "killed", lambda: os.kill(os.getpid(), signal.SIGKILL))
        net.train(STEPS - steps)
        return net.get_weights()

    nets = nets_of(spark)
    np.testing.assert_array_equal(flat(rounds(spark, nets, killed)), averaged)
    assert (tmp_path / "killed").exists()
    assert [status.lost for status in nets.status] == [0, 0]
    nets.unpersist()


def once(mark: Path, act: Callable[[], None]) -> None:
    """Act in one process alone."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    act()


@pytest.mark.parametrize("what", ["state-*", "*"])
def test_a_lost_net_begins_from_the_last_mean(spark, what):
    nets = nets_of(spark)
    mean = flat(nets.map(train).mean())
    folders = nets._homes.map(lambda home: home.folder).collect()

    def lose(net: Net) -> None:
        """Kill each process that has the second net with its history."""
        block = next(net._nets.main.rows.blocks(1, 1, 0))
        if (block["data"] == POINTS[1]).all() and np.any(net.solver.flat_history[0]):
            for path in Path(folders[1]).glob(what):
                path.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    nets.map(lose)
    first, second = nets.map(lambda net: (net.get_weights(), net.iter, net.taken)).collect()
    assert [status.lost for status in nets.status] == [0, 1]
    assert not np.array_equal(flat(first[0]), mean)
    np.testing.assert_array_equal(flat(second[0]), mean)
    assert first[1:] == second[1:] == (STEPS, STEPS * BATCH)
    nets.unpersist()


def test_steps_run_in_order_and_once(spark):
    nets = nets_of(spark)
    nets.map(lambda net: net.train(2))
    first = nets.map(lambda net: net.iter)
    nets.foreach(lambda net: net.train(1))
    assert nets.map(lambda net: net.iter).collect() == [3, 3]
    assert nets.map(lambda net: net.iter).mean() == 3
    assert nets.map(lambda net: net.iter).sum() == 6
    both = nets.map(lambda net: net.get_weights())
    total = nets.map(lambda net: net.get_weights()).reduce(add)
    for late in (first, both):
        with pytest.raises(SparkError, match="the results of this step are gone"):
            late.collect()
    mean = nets.map(lambda net: net.get_weights()).mean()
    np.testing.assert_allclose(flat(total) / 2, flat(mean), rtol=1e-6)
    assert nets.map(lambda net: net.iter).collect() == [3, 3]
    nets.unpersist()


def test_a_failed_step_is_undone(spark):
    nets = nets_of(spark)
    nets.foreach(lambda net: net.train(1))

    def fail(net: Net) -> None:
        net.train(1)
        net.set_training_data((POINTS, SIDES))

    with pytest.raises(SparkError, match="call set_training_data in make"):
        nets.foreach(fail)
    assert nets.map(lambda net: net.iter).collect() == [1, 1]
    nets.unpersist()


@pytest.mark.parametrize(
    ("records", "make", "message"),
    [
        ([POINTS[0]], lambda records: None, "make returned a NoneType: it has to return a Net"),
        ([], make, "partition 0 of the data has no records for its net: repartition it"),
    ],
)
def test_what_is_no_net(tmp_path, monkeypatch, records, make, message):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    home = NetHome.settle("points", 0, records)
    work = NetJob("points", make, 0, [(1, train)], {}, None, False, None)
    with pytest.raises(SparkError, match=f"^{message}"):
        list(work([home]))


def test_what_is_no_rdd():
    with pytest.raises(SparkError, match="net_rdd takes an RDD, not a list"):
        net_rdd([1], make)


@pytest.mark.parametrize("kind", ["tuples", "Rows", "DataFrame"])
def test_a_net_of_the_driver_takes_an_rdd(spark, kind):
    """Rows go by name, whatever their order."""
    from pyspark.sql import Row

    tuples = list(zip(POINTS.tolist(), SIDES.tolist(), strict=True))
    rows = [Row(label=side, data=point) for point, side in tuples]
    data = spark.sparkContext.parallelize(tuples if kind == "tuples" else rows, 3)
    net, other = make((POINTS, SIDES)), Net(SOLVER)
    other.set_training_data(spark.createDataFrame(data) if kind == "DataFrame" else data)
    assert [net.train(20), net.taken] == [other.train(20), other.taken]


def test_weights_in_an_rdd_have_a_sum(spark):
    weights = Net(SOLVER).get_weights()
    total = spark.sparkContext.parallelize([weights, weights, weights], 4).sum()
    np.testing.assert_allclose(flat(total), 3 * flat(weights), rtol=1e-6)


@pytest.mark.slow
def test_the_listing_and_trainer_end_with_the_same_loss(spark):
    """Records, batches, workers and rounds are equal; the records come in another order."""
    rows = [(point.tolist(), float(side)) for point, side in zip(POINTS, SIDES, strict=True)]
    frame = spark.createDataFrame(rows, "data array<float>, label float")
    losses = []
    for seed in (1, 2, 3):
        nets = nets_of(spark, seed)
        listing = rounds(spark, nets, seed=seed)
        nets.unpersist()
        trainer = Trainer(
            SOLVER.but(random_seed=seed),
            Averaging(steps=STEPS),
            workers=WORKERS,
            steps=STEPS * ROUNDS,
        )
        net = make((POINTS, SIDES))
        net.set_validation_data({"data": POINTS, "label": SIDES})
        for weights in (listing, trainer.fit(frame).weights):
            net.set_weights(weights)
            losses.append(float(net.test()["loss"]))
    assert max(losses) < 0.2  # 0.7 before
    assert abs(np.mean(losses[::2]) - np.mean(losses[1::2])) < 0.02
