"""One worker trains as without a strategy, bit for bit; several end with equal weights."""

import numpy as np
import pytest

from sparknet.training.schedule import RunPlan
from sparknet.training.strategies import (
    BMUF,
    STRATEGIES,
    AllReduce,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)
from sparknet.training.workers.rounds import work
from tests.training import small

ALL: list[Strategy] = [
    *(kind() for kind in STRATEGIES.values()),
    AllReduce(steps=4),
    AllReduce(steps=4, codec="int8"),
    Averaging(steps=4),
    Averaging(steps=4, momentum="average"),
    Averaging(steps=4, momentum="reset", warmup=5),
    Averaging(seconds=0.001),
    BMUF(steps=4),
    DiLoCo(steps=4),
    DiLoCo(steps=9, fragments=2, overlap=3),
    DynamicAveraging(threshold=0.01, check_every=3),
    DynamicAveraging(threshold=0.5, check_every=3, measure="absolute", sync_at_least_every=9),
    ElasticAveraging(every=4),
    Downpour(steps=4),
    Downpour(steps=4, push_every=3, pull_every=2),
    Averaging(steps=4, codec="int8"),
    SlowMo(steps=4, codec="fp16"),
    SlowMo(steps=4, beta=0.5),
]
SOLVER = (
    'weight_decay: 0.01 clip_gradients: 0.5 iter_size: 2 lr_policy: "step" stepsize: 5 gamma: 0.5'
)


@pytest.mark.parametrize("strategy", ALL, ids=repr)
def test_one_worker_is_plain_training(strategy):
    plain = small.learner(text=SOLVER, middle=small.BATCH_NORM + small.DROPOUT)
    plain.step(22)
    learner = small.learner(text=SOLVER, middle=small.BATCH_NORM + small.DROPOUT)
    [outcome] = small.together(1, lambda _, comm: work(learner, strategy, comm, RunPlan(steps=22)))
    assert np.array_equal(small.weights(plain), small.weights(learner))
    assert (outcome.iteration, outcome.samples, outcome.reason) == (22, 22 * 2 * 4, "steps")


@pytest.mark.parametrize("strategy", ALL, ids=repr)
def test_workers_end_with_the_same_weights(strategy):
    learners = [small.learner(rank, 3, SOLVER, middle=small.BATCH_NORM) for rank in range(3)]
    start = small.weights(learners[0])
    outcomes = small.together(
        3, lambda rank, comm: work(learners[rank], strategy, comm, RunPlan(steps=22))
    )
    for learner in learners[1:]:
        assert np.array_equal(small.weights(learner), small.weights(learners[0]))
    assert not np.allclose(start, small.weights(learners[0]))
    assert {outcome.iteration for outcome in outcomes} == {learners[0].iter}
