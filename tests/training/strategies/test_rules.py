"""Each strategy against its rule, written down once more in numpy over whole arrays."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from sparknet.comm.local_comm import LocalComm
from sparknet.errors import SettingError
from sparknet.net.learner import SolverLearner
from sparknet.training.events import Event, OnEvent
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)
from sparknet.training.strategies.averaging import effort, mean_unequal
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.comm import VirtualComm, perform
from sparknet.training.workers.rounds import work
from tests.training import small

Array = np.ndarray[Any, Any]
Rule = Callable[[Array, list[Array], float], tuple[Array, list[Array]]]
"""x and all x_i, and the last rate, to the next x and x_i."""

FIXED = "momentum: 0.5 base_lr: 0.02"
TEXT = 'weight_decay: 0.01 lr_policy: "step" stepsize: 8 gamma: 0.5'


def learners(size: int, middle: str = "", text: str = TEXT) -> list[SolverLearner]:
    return [small.learner(rank, size, text, middle=middle) for rank in range(size)]


def set_weights(learner: SolverLearner, values: Array) -> None:
    np.asarray(learner.weights)[...] = values


def by_rule(size: int, rounds: int, steps: int, rule: Rule, middle: str = "") -> list[Array]:
    """x after each round, by learners that train one after the other."""
    group = learners(size, middle)
    x = small.weights(group[0]).astype(np.float64)
    seen = []
    for _ in range(rounds):
        for learner in group:
            learner.step(steps)
        own = [small.weights(learner).astype(np.float64) for learner in group]
        x, own = rule(x, own, group[0].last_rate)
        for learner, values in zip(group, own, strict=True):
            set_weights(learner, values)
        seen.append(x)
    return seen


def by_strategy(
    size: int,
    rounds: int,
    steps: int,
    strategy: Strategy,
    middle: str = "",
    on_event: OnEvent | None = None,
) -> Array:
    group = learners(size, middle)
    plan, hooks = RunPlan(steps=rounds * steps), Hooks(on_event=on_event)
    small.together(size, lambda rank, comm: work(group[rank], strategy, comm, plan, hooks))
    return small.weights(group[0])


def shared(rule: Callable[[Array, Array, float], Array]) -> Rule:
    """A rule of x, the mean of the x_i, and the rate, after which all have the next x."""

    def whole(x: Array, own: list[Array], rate: float) -> tuple[Array, list[Array]]:
        x = rule(x, np.mean(own, axis=0), rate)
        return x, [x] * len(own)

    return whole


class Velocity:
    """Outer rules keep a velocity between rounds."""

    def __init__(self, rule):
        self.value: Array | float = 0.0
        self.rule = rule

    def __call__(self, x: Array, mean: Array, rate: float) -> Array:
        moved: Array
        moved, self.value = self.rule(x, mean, self.value, rate)
        return moved


def slow_mo(x, mean, u, rate):
    u = 0.5 * u + (x - mean) / rate
    return x - 0.8 * rate * u, u


def diloco(x, mean, v, rate):
    v = 0.9 * v + (x - mean)
    return x - 0.7 * ((x - mean) + 0.9 * v), v


def bmuf(x, mean, delta, rate):
    delta = 0.4 * delta - 1.2 * (x - mean)
    return x + delta, delta


RULES: dict[str, tuple[Strategy, Callable[[], Rule]]] = {
    "averaging": (Averaging(steps=4), lambda: shared(lambda x, mean, rate: mean)),
    "slowmo": (
        SlowMo(steps=4, beta=0.5, alpha=0.8, momentum="keep"),
        lambda: shared(Velocity(slow_mo)),
    ),
    "diloco": (DiLoCo(steps=4), lambda: shared(Velocity(diloco))),
    "bmuf": (
        BMUF(steps=4, block_momentum=0.4, block_lr=1.2, momentum="keep"),
        lambda: shared(Velocity(bmuf)),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    strategy, rule = RULES[name]
    expected = by_rule(3, 5, 4, rule())
    assert np.allclose(by_strategy(3, 5, 4, strategy), expected[-1], rtol=1e-4, atol=1e-6)
    assert not np.allclose(expected[-1], expected[-2], atol=1e-3)


@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_codecs_change_little(codec):
    """What is rounded off in one round comes back in the next."""
    expected = by_rule(3, 8, 4, RULES["averaging"][1]())[-1]
    found = by_strategy(3, 8, 4, Averaging(4, codec=codec))
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert 0 < error < {"fp16": 1e-3, "int8": 3e-2}[codec]


def test_elastic_averaging():
    alpha = 0.25

    def rule(x: Array, own: list[Array], rate: float) -> tuple[Array, list[Array]]:
        moved = x + alpha * sum(one - x for one in own)
        return moved, [one - alpha * (one - x) for one in own]

    found = by_strategy(3, 5, 4, ElasticAveraging(alpha=alpha, every=4))
    assert np.allclose(found, by_rule(3, 5, 4, rule)[-1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("measure", ["relative", "absolute"])
def test_dynamic_averaging(measure):
    threshold = {"relative": 0.15, "absolute": 1.2}[measure]
    synchronised: list[bool] = []
    farthest: list[float] = []
    passed = [0]

    def rule(x: Array, own: list[Array], rate: float) -> tuple[Array, list[Array]]:
        order = 2 if measure == "relative" else 1
        far = [np.linalg.norm(one - x, order) for one in own]
        farthest.append(max(far) / (np.linalg.norm(x) if measure == "relative" else 1))
        passed[0] += 3
        synchronised.append(farthest[-1] > threshold or passed[0] >= 12 or len(synchronised) == 9)
        if not synchronised[-1]:
            return x, own
        passed[0] = 0
        mean = np.mean(own, axis=0)
        return mean, [mean] * len(own)

    expected = by_rule(3, 10, 3, rule)[-1]
    strategy = DynamicAveraging(threshold, 3, 12, measure)
    events: list[Event] = []
    weights = by_strategy(3, 10, 3, strategy, on_event=events.append)
    assert np.allclose(weights, expected, rtol=1e-4, atol=1e-6)
    assert 2 < sum(synchronised) < 9, synchronised
    rounds = [event for event in events if event["event"] == "round"]
    assert [event["synchronised"] for event in rounds][:9] == synchronised[:9]
    assert np.allclose([event["divergence"] for event in rounds], farthest, rtol=1e-3)


@pytest.mark.parametrize("name", RULES)
def test_statistics_are_averaged_linearly(name):
    """Whatever a rule does to weights, BatchNorm's sums become the workers' mean."""
    middle = small.BATCH_NORM
    [(begin, end)] = learners(1, middle)[0].statistics
    strategy, made = RULES[name]
    rule = made()

    def aside(x: Array, own: list[Array], rate: float) -> tuple[Array, list[Array]]:
        mean = np.mean(own, axis=0)[begin:end]
        x, own = rule(x, own, rate)
        for values in (x, *own):
            values[begin:end] = mean
        return x, own

    expected = by_rule(3, 3, 4, aside, middle)[-1]
    found = by_strategy(3, 3, 4, strategy, middle)
    assert np.allclose(found[begin:end], expected[begin:end], rtol=1e-4, atol=1e-5)
    assert found[begin:end].max() > 5  # the count of batches, at least


KINDS = {
    "SGD": "",
    "Nesterov": 'type: "Nesterov"',
    "Adam": 'type: "Adam" base_lr: 0.01',
    "AdaGrad": 'type: "AdaGrad" momentum: 0',
    "RMSProp": 'type: "RMSProp" momentum: 0 base_lr: 0.01 rms_decay: 0.9',
    "AdaDelta": 'type: "AdaDelta" delta: 1e-4 base_lr: 1',
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_reduce_is_a_larger_batch(kind):
    """K workers of batch b are one of batch K b; clipping sees the whole gradient's norm."""
    text = f"{KINDS[kind]} {TEXT} clip_gradients: 0.3 iter_size: 2"
    single = small.learner(text=text, batch=12)
    single.step(20)
    group = [small.learner(rank, 3, text) for rank in range(3)]
    plan = RunPlan(steps=20)
    small.together(3, lambda rank, comm: work(group[rank], AllReduce(steps=7), comm, plan))
    assert np.allclose(small.weights(group[0]), small.weights(single), rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(group[0].histories, single.histories, strict=True):
        assert np.allclose(np.array(mine), np.array(theirs), rtol=1e-3, atol=1e-5)


def test_unequal_work_is_normalised():
    """FedNova: x - (Σ p_i a_i) Σ p_i (x - x_i) / a_i."""
    counts, momentum = [2, 5, 9], 0.9
    group = learners(3)
    x = small.weights(group[0]).astype(np.float64)
    for learner, count in zip(group, counts, strict=True):
        learner.step(count)
    own = [small.weights(learner).astype(np.float64) for learner in group]
    efforts = [sum(sum(momentum**k for k in range(n)) for n in range(1, c + 1)) for c in counts]
    assert [effort(count, momentum) for count in counts] == pytest.approx(efforts)
    pulls = [(x - one) / far for one, far in zip(own, efforts, strict=True)]
    expected = x - np.mean(efforts) * np.mean(pulls, axis=0)
    center = learners(1)[0].weights

    small.together(3, lambda rank, comm: mean_unequal(group[rank], comm, center, counts, None))
    for learner in group:
        assert np.allclose(small.weights(learner), expected, rtol=1e-5, atol=1e-6)
        assert learner.iter == 5
    assert effort(7, 0.0) == 7


def momenta(group: Sequence[SolverLearner]) -> list[Array]:
    return [np.array(learner.histories[0]) for learner in group]


@pytest.mark.parametrize("momentum", ["keep", "average", "reset"])
def test_inner_momentum(momentum):
    """A drop of the rate at the end of the round (iteration 8) rescales what was averaged."""
    apart, group = learners(3), learners(3)
    for learner in apart:
        learner.step(8)
    before = momenta(apart)
    strategy = Averaging(steps=8, momentum=momentum)
    small.together(3, lambda rank, comm: work(group[rank], strategy, comm, RunPlan(steps=8)))
    expected = {
        "keep": before,
        "average": [np.mean(before, axis=0) / 2] * 3,
        "reset": [np.zeros_like(before[0])] * 3,
    }[momentum]
    for found, wanted in zip(momenta(group), expected, strict=True):
        assert np.allclose(found, wanted, rtol=1e-5, atol=1e-8)
    assert not np.allclose(before[0], before[1])


def test_only_momentum_can_be_reset():
    adam = small.learner(text='type: "Adam"')
    [comm] = LocalComm.group(1)
    with pytest.raises(SettingError, match="BMUF: only the momentum of SGD and Nesterov"):
        work(adam, BMUF(), comm, RunPlan(steps=1))


def test_warm_up():
    """Worker 0 trains alone; then all go on from there, histories and iteration too."""
    alone = small.learner(0, 2, TEXT)
    alone.step(6)
    group = learners(2)
    strategy = Averaging(steps=4, warmup=6)
    small.together(2, lambda rank, comm: work(group[rank], strategy, comm, RunPlan(steps=6)))
    for learner in group:
        assert np.array_equal(small.weights(learner), small.weights(alone))
        assert np.array_equal(momenta([learner])[0], momenta([alone])[0])
        assert learner.iter == 6
        assert learner.rate == alone.rate


@pytest.mark.parametrize("strategy", [Averaging, Downpour, DynamicAveraging, ElasticAveraging])
def test_unequal_beginnings(strategy):
    """The workers' weights differ in the first round; after a warm-up nothing is left of that."""

    def weights(steps, **settings):
        group = learners(2)
        made = strategy(**settings)
        small.together(2, lambda rank, comm: work(group[rank], made, comm, RunPlan(steps=steps)))
        return [small.weights(learner) for learner in group]

    usual, other = weights(20), weights(20, unequal=0.5)
    assert not np.allclose(usual[1], other[1], rtol=1e-3)
    for equal, unequal in zip(weights(3, warmup=3), weights(3, warmup=3, unequal=0.5), strict=True):
        np.testing.assert_array_equal(equal, unequal)


# -- Downpour ----------------------------------------------------------------------------------


class Timed:
    """A learner whose steps take simulated time."""

    def __init__(self, inner: SolverLearner, comm: VirtualComm, each: float) -> None:
        self._inner, self._comm, self._each = inner, comm, each

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def step(self, count):
        done = self._inner.step(count)
        self._comm.spend(count * self._each)
        return done


def virtual(size, work):
    """What each rank's work gives, on a network that takes no time."""
    comms = VirtualComm.group(size, Cluster(latency=0.0, bandwidth=1e30))
    found = perform(comms[0].stage, lambda rank: work(rank, comms[rank]))
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found


class Served:
    """Downpour, event by event: the server's weights, and what each worker knows of them."""

    def __init__(self, strategy: Downpour, times: Sequence[float], steps: int) -> None:
        self.strategy, self.times, self.steps = strategy, times, steps
        self.group = learners(len(times))
        self.weights = small.weights(self.group[0]).astype(np.float64)
        self.clocks = [0.0] * len(times)
        self.count, self.stale = 0, list[int]()
        """The pushes so far, and the staleness of each of them."""

    def run(self) -> Array:
        size, end = len(self.times), self.steps * len(self.times) / self.strategy.push_every
        while self.count < end:
            self.round(min(self.count + self.strategy.steps * size / self.strategy.push_every, end))
        return self.weights

    def round(self, wanted: float) -> None:
        """All workers begin with the server's weights, and meet when each has seen the end."""
        size, end = len(self.times), self.steps * len(self.times) / self.strategy.push_every
        based = [self.weights.copy() for _ in self.times]
        known, own = [self.count] * size, [0] * size
        hands: set[int] = set()
        left: set[int] = set()
        push, pull = self.strategy.push_every, self.strategy.pull_every
        for learner in self.group:
            set_weights(learner, self.weights)
        ready = [clock + each * push for clock, each in zip(self.clocks, self.times, strict=True)]
        while len(left) < size:
            at, one = min((ready[one], one) for one in range(size) if one not in left)
            learner = self.group[one]
            self.clocks[one] = at
            learner.step(push)
            moved = small.weights(learner).astype(np.float64)
            staleness = self.count - known[one]
            excess = max(0, staleness - (size * pull - 1))
            most = self.strategy.max_staleness
            counts = staleness <= (max(15, 2 * size - 1) if most is None else most)
            self.weights += counts * self.strategy.damping**excess * (moved - based[one])
            self.count += 1
            self.stale.append(staleness)
            own[one] += 1
            based[one] = moved
            if own[one] % pull == 0:
                based[one], known[one] = self.weights.copy(), self.count
                set_weights(learner, self.weights)
            if known[one] >= wanted:
                hands.add(one)
            if known[one] >= end or len(hands) == size:
                left.add(one)
            ready[one] = at + self.times[one] * push
        self.clocks = [max(self.clocks)] * size


TIMES = [1.0, 1.37, 10.03]
DOWNPOURS = [
    Downpour(steps=4),
    Downpour(steps=5, push_every=2, damping=0.5),
    Downpour(steps=6, pull_every=3, max_staleness=8),
]


@pytest.mark.parametrize("strategy", DOWNPOURS, ids=repr)
def test_downpour(strategy):
    group = learners(3, text=FIXED)
    events: list[Event] = []

    def train(rank, comm):
        learner, hooks = Timed(group[rank], comm, TIMES[rank]), Hooks(on_event=events.append)
        return work(learner, strategy, comm, RunPlan(steps=30), hooks)

    virtual(3, train)
    rule = Served(strategy, TIMES, 30)
    rule.group = learners(3, text=FIXED)
    expected = rule.run()
    assert np.allclose(small.weights(group[0]), expected, rtol=1e-4, atol=1e-5)
    assert max(rule.stale) > 8, rule.stale
    assert [one.iter for one in group] == [30] * 3
    rounds = [event for event in events if event["event"] == "round"]
    dropped = sum(
        staleness > (15 if strategy.max_staleness is None else strategy.max_staleness)
        for staleness in rule.stale
    )
    assert sum(event["dropped_pushes"] for event in rounds) == dropped
    assert bool(dropped) == (strategy.max_staleness is not None or max(rule.stale) > 15)


def test_a_slow_worker_costs_downpour_its_own_share_only():
    """Three workers of four make a step a second, one a tenth: 3.1 of 4 steps are free."""
    group = learners(4, text=FIXED)

    def train(rank: int, comm: VirtualComm) -> float:
        each = 10.0 if rank == 3 else 1.0
        work(Timed(group[rank], comm, each), Downpour(), comm, RunPlan(steps=200))
        return comm.clock()

    seconds = virtual(4, train)[0]
    assert 4 * 200 / seconds == pytest.approx(3.1, rel=0.05)


@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_downpours_codecs_change_little(codec):
    def trained(strategy: Downpour) -> Array:
        group = learners(3, text=FIXED)

        def train(rank: int, comm: VirtualComm) -> None:
            work(Timed(group[rank], comm, TIMES[rank]), strategy, comm, RunPlan(steps=40))

        virtual(3, train)
        return small.weights(group[0])

    expected, found = trained(Downpour()), trained(Downpour(codec=codec))
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert 0 < error < {"fp16": 1e-3, "int8": 3e-2}[codec]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (partial(DynamicAveraging, threshold=-0.5), "threshold must be at least 0, not -0.5"),
        (partial(DynamicAveraging, check_every=0), "check_every must be at least 1, not 0"),
        (
            partial(RunPlan, steps=4, patience=2, validate_every=0),
            "patience=2 counts validations, and there are none",
        ),
    ],
)
def test_settings_that_are_refused(made, says):
    with pytest.raises(SettingError, match=says):
        made()
