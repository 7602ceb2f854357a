"""A snapshot of four workers is resumed by one, two, three and six; also one of version 0.1.0.

What they begin with is computed by numpy from the files, which this module reads by itself.
"""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparknet.comm.collectives import Comm
from sparknet.loaders.order import Order
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import (
    AllReduce,
    Auto,
    Averaging,
    Downpour,
    ElasticAveraging,
    Strategy,
)
from sparknet.training.workers.rounds import Outcome, work
from tests.training import small
from tests.training.checkpoints.test_snapshot import ALL, MIDDLE, TEXT

RECORDED = Path(__file__).parent / "snapshots"
OTHERS = [1, 2, 3, 6]
STRATEGIES: list[Strategy] = [*ALL, Auto(), Downpour(steps=4), Downpour(steps=4, codec="int8")]


def run(folder, strategy, plan, size, resume=None, identity=None):
    """Outcomes, learners and events."""
    events = []
    learners = [small.learner(rank, size, TEXT, middle=MIDDLE) for rank in range(size)]

    def one(rank: int, comm: Comm) -> Outcome:
        seed, draws = learners[rank].solver.net.random_state
        learners[rank].solver.net.random_state = (seed + rank, draws)
        hooks = Hooks(events.append, store=FolderStore(folder), resume=resume)
        hooks.identity = identity or {}
        known = replace(plan, records=small.RECORDS, batch_size=small.BATCH)
        return work(learners[rank], strategy, comm, known, hooks)

    return small.together(size, one), learners, events


def of_files(folder):
    """Each worker's arrays."""
    shared = {}
    if (folder / "shared.state").exists():
        shared = stored(folder / "shared.state")[1]
    found = []
    for number in range(len([*folder.glob("worker-*.state")])):
        header, own = stored(folder / f"worker-{number}.state")
        if isinstance(header["arrays"], dict):
            own = {name: {**shared, **own}[digest] for name, digest in header["arrays"].items()}
        found.append(own)
    return found


def stored(path):
    data = path.read_bytes()
    end = 16 + int(np.frombuffer(data[8:16], "<u8")[0])
    header = json.loads(data[16:end])
    arrays = {}
    for name, size in header.get("stored", header["arrays"]):
        arrays[name] = np.frombuffer(data, "<f4", size, end)
        end += 4 * size
    return header, arrays


def mean(parts, name):
    return np.mean([part[name].astype(np.float64) for part in parts], axis=0)


def joined(parts, name):
    """The slices of the workers, of which earlier versions stored the whole buffers."""
    size, cut = len(parts[0]["weights"]), []
    for rank, part in enumerate(parts):
        begin, end = size * rank // len(parts), size * (rank + 1) // len(parts)
        cut.append(part[name][begin:end] if len(part[name]) == size else part[name])
    return np.concatenate(cut)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    """Snapshots of four workers after eight iterations, one of each strategy."""
    folder = tmp_path_factory.mktemp("of-four")
    for number, strategy in enumerate(STRATEGIES):
        plan = RunPlan(steps=8, snapshot_every=1, keep=1)
        run(folder / str(number), strategy, plan, 4)
    return folder


def check_beginning(folder, strategy, size, **how):
    """What workers have that make no step."""
    store = FolderStore(folder)
    [round] = store.rounds()
    parts = of_files(Path(store.path(round)))
    sliced = isinstance(strategy, AllReduce)
    _, learners, events = run(folder, strategy, RunPlan(steps=1), size, round, **how)
    expected = mean(parts, "weights")
    if isinstance(strategy, ElasticAveraging):
        expected = mean(parts, "strategy center")
    history = (joined if sliced else mean)(parts, "history 0")
    for learner in learners:
        np.testing.assert_array_equal(learner.weights, expected.astype(np.float32))
        np.testing.assert_array_equal(learner.histories[0], history.astype(np.float32))
        assert learner.iter == parts_iteration(folder, round)
    [note] = [event["text"] for event in events if event["event"] == "note"]
    assert note.startswith(f"the snapshot is of 4 workers, and {size} go on from it")
    assert ("history 0" in note) == (
        len({part["history 0"].tobytes() for part in parts}) > 1 and not sliced
    )


def parts_iteration(folder: Path, round: int) -> int:
    header, _ = stored(folder / f"round-{round:08d}" / "worker-0.state")
    iteration: int = header["numbers"]["learner"]["iteration"]
    return iteration


@pytest.mark.parametrize("size", OTHERS)
@pytest.mark.parametrize("number", range(len(STRATEGIES)), ids=map(repr, STRATEGIES))
def test_others_begin_with_the_means(snapshots, number, size):
    check_beginning(snapshots / str(number), STRATEGIES[number], size)


@pytest.mark.parametrize("size", OTHERS)
@pytest.mark.parametrize("number", range(len(STRATEGIES)), ids=map(repr, STRATEGIES))
def test_others_train_on(snapshots, tmp_path, number, size):
    """They see as many records as four workers would have, and end with the same weights."""
    folder = tmp_path / "run"
    shutil.copytree(snapshots / str(number), folder)
    [round] = FolderStore(folder).rounds()
    plan = RunPlan(steps=20, snapshot_every=2)
    outcomes, learners, _ = run(folder, STRATEGIES[number], plan, size, round)
    for learner in learners[1:]:
        np.testing.assert_array_equal(learner.weights, learners[0].weights)
    assert outcomes[0].iteration in {20, 21}
    if not isinstance(STRATEGIES[number], Downpour):  # which is not exact
        most = size * small.BATCH
        assert 0 <= outcomes[0].samples - outcomes_of_four(STRATEGIES[number]) < most
    back = FolderStore(folder).rounds()[-1]
    outcomes, *_ = run(folder, STRATEGIES[number], RunPlan(steps=24), 4, back)
    assert outcomes[0].iteration in {24, 25}


def outcomes_of_four(strategy: Strategy) -> int:
    """The samples of 20 iterations of four workers; of a warm-up those of one."""
    return small.BATCH * (4 * (20 - strategy.warmup) + strategy.warmup)


RECORDED_OF: dict[str, Strategy] = {
    "allreduce": AllReduce(steps=4),
    "averaging": Averaging(steps=4, codec="int8", warmup=3),
    "elastic": ElasticAveraging(every=4),
}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("name", RECORDED_OF)
@pytest.mark.parametrize("version", ["0.1.0", "format-1"])
def test_snapshots_of_earlier_versions(tmp_path, version, name, size):
    folder = tmp_path / "run"
    shutil.copytree(RECORDED / version / name, folder)
    strategy, known = RECORDED_OF[name], {"identity": {"seed": 7}}
    if size != 4:
        check_beginning(folder, strategy, size, **known)
    outcomes, learners, _ = run(folder, strategy, RunPlan(steps=20), size, 3, **known)
    assert outcomes[0].iteration in {20, 21}
    for learner in learners[1:]:
        np.testing.assert_array_equal(learner.weights, learners[0].weights)


def test_each_array_is_stored_once(tmp_path):
    """Averaging: the weights, which the center equals, and each worker's own history."""
    run(tmp_path, Averaging(4), RunPlan(steps=8, snapshot_every=2), 4)
    folder = tmp_path / "round-00000002"
    shared = stored(folder / "shared.state")[1]
    own = [stored(folder / f"worker-{rank}.state")[1] for rank in range(4)]
    assert len(shared) == 1
    assert [len(one) for one in own] == [1] * 4
    parts = of_files(folder)
    assert [sorted(part) for part in parts] == [["history 0", "strategy center", "weights"]] * 4


def test_all_reduce_stores_slices(tmp_path):
    run(tmp_path, AllReduce(4), RunPlan(steps=8, snapshot_every=2), 4)
    parts = of_files(tmp_path / "round-00000002")
    size = len(parts[0]["weights"])
    assert sum(len(part["history 0"]) for part in parts) == size


@pytest.mark.parametrize(
    ("size", "rounds", "steps", "iteration", "rate"),
    [(2, 4, 8, 12, 0.025), (6, 1, 3, 12, 0.025), (1, 8, 16, 12, 0.025), (4, 1, 4, 12, 0.025)],
)
def test_records_are_the_clock(tmp_path, size, rounds, steps, iteration, rate):
    """The rate falls at iteration 9 of four workers, however many there are by then."""
    strategy = Averaging(2)
    run(tmp_path, strategy, RunPlan(steps=8, snapshot_every=4), 4)
    outcomes, learners, events = run(tmp_path, strategy, RunPlan(steps=12), size, 4)
    assert {one.iteration for one in outcomes} == {iteration}
    seen = [event for event in events if event["event"] == "round"]
    assert sum(event["steps"] for event in seen) == steps
    assert outcomes[0].samples == small.BATCH * (8 * 4 + steps * size)
    assert learners[0].rate == pytest.approx(rate)
    ends = [8 + (2 * (number + 1) * size) / 4 for number in range(len(seen) - 1)]
    assert [event["iteration"] for event in seen[:-1]] == [int(end) for end in ends]


@pytest.mark.parametrize(
    ("first", "then", "warmup", "steps"),
    [(4, 3, 0, 3), (4, 2, 0, 3), (2, 4, 0, 6), (3, 1, 0, 4), (4, 2, 4, 1), (2, 4, 2, 5)],
)
def test_an_epoch_has_each_record_once(tmp_path, monkeypatch, first, then, warmup, steps):
    """Also where the first worker has taken more, because it trained alone at first."""
    strategy, seen = Averaging(2, warmup=warmup), Counter[bytes]()

    class Feed(small.ArrayFeed):
        def load(self) -> int:
            batch = self.batches.next()
            seen.update(row.tobytes() for row in batch["x"])
            self.net.blobs["x"].data[...] = batch["x"]
            self.net.blobs["t"].data[...] = batch["t"]
            return len(batch["x"])

    monkeypatch.setattr(small, "ArrayFeed", Feed)
    run(tmp_path, strategy, RunPlan(steps=warmup + steps, snapshot_every=100), first)
    [round] = FolderStore(tmp_path).rounds()
    left = small.RECORDS // small.BATCH - warmup - first * steps
    end, rest = divmod(left, first)
    assert (rest, left % then) == (0, 0)
    run(tmp_path, strategy, RunPlan(steps=warmup + steps + end), then, round)
    assert set(seen.values()) == {1}
    assert len(seen) == small.RECORDS


def test_what_slow_workers_left_comes_first():
    """Numbers of workers that change again and again, each taking what it can."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        length, seen = int(rng.integers(1, 40)), Counter[int]()
        cursors = [{"epoch": 0, "position": 0}]
        for size in rng.integers(1, 7, 5):
            orders = [
                Order(length, shuffle=False, rank=rank, size=int(size)) for rank in range(size)
            ]
            for order in orders:
                order.seek({"of": json.loads(json.dumps(cursors))})
                counts = int(rng.integers(0, 9))
                places = order._places(np.arange(counts))
                assert [*places % length] == [*order.next(counts)]
                seen.update(places.tolist())
            cursors = [order.cursor for order in orders]
        assert set(seen.values()) <= {1}
        rest = Order(length, shuffle=False)
        rest.seek({"of": cursors})
        seen.update(rest._places(np.arange(200)).tolist())
        assert set(seen.values()) == {1}
        assert sorted(seen)[:200] == list(range(200))


def test_the_rounding_errors_of_all_are_kept(tmp_path):
    """What is owed to the next mean, or in sum to a server, does not change."""
    for strategy in (Averaging(4, codec="int8"), Downpour(steps=4, codec="int8")):
        folder = tmp_path / strategy.name
        run(folder, strategy, RunPlan(steps=8, snapshot_every=1, keep=1), 4)
        [round] = FolderStore(folder).rounds()
        parts = of_files(Path(FolderStore(folder).path(round)))
        owed = mean(parts, "codec's own errors")

        def one(rank, comm, strategy=strategy, folder=folder, round=round):
            learner = small.learner(rank, 3, TEXT, middle=MIDDLE)
            hooks = Hooks(store=FolderStore(folder), resume=round)
            plan = RunPlan(steps=8, records=small.RECORDS, batch_size=small.BATCH)
            work(learner, strategy, comm, plan, hooks)
            own, means = comm.feedback("int8", learner.weights.size)
            return np.array(own), np.array(means), comm.bounds(learner.weights.size)[rank]

        for own, means, (begin, end) in small.together(3, one):
            factor = 4 / 3 if isinstance(strategy, Downpour) else 1
            np.testing.assert_allclose(own, owed * factor, rtol=1e-6, atol=1e-12)
            if isinstance(strategy, Averaging):
                expected = joined(parts, "codec's errors of means")[begin:end]
                np.testing.assert_array_equal(means, expected)
