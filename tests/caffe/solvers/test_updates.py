"""Each update against its formula, and the same on any number of threads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.caffe.solvers import Solver, get_solver
from sparknet.errors import ArrayError
from sparknet.native import NDArray, set_threads, threads
from sparknet.native.solver import SolverPass
from tests.caffe.solvers import oracle, small

NUMBERS = {
    "sgd": (0.9,),
    "nesterov": (0.9,),
    "adagrad": (1e-8,),
    "rmsprop": (0.95, 1e-8),
    "adadelta": (0.95, 1e-6),
    "adam": (0.9, 0.999, 1e-8),
}


@given(
    kind=st.sampled_from(small.KINDS),
    iter_size=st.sampled_from([1, 3]),
    clip=st.sampled_from([-1.0, 0.0, 0.5, 1e6]),
    decay=st.sampled_from([0.0, 0.01, 1.0]),
    l1=st.booleans(),
    factors=st.lists(st.tuples(st.sampled_from([0, 0.5, 2]), st.sampled_from([0, 1])),
                     min_size=4, max_size=4),
    seed=st.integers(0, 1000),
)  # fmt: skip
@settings(max_examples=60)
def test_formula(
    kind: str,
    iter_size: int,
    clip: float,
    decay: float,
    l1: bool,
    factors: list[tuple[float, float]],
    seed: int,
) -> None:
    text = f"iter_size: {iter_size} clip_gradients: {clip} weight_decay: {decay} "
    text += 'regularization_type: "L1"' if l1 else ""
    described = small.settings(kind, text)
    wide = iter(factors)
    for layer in described.net_param.layer:
        if layer.type == "InnerProduct":
            for _ in range(2):
                rate, own = next(wide)
                layer.param.add(lr_mult=rate, decay_mult=own)
    solver = get_solver(described)
    compare(solver, factors, np.random.default_rng(seed))


def compare(solver: Solver, factors: list[tuple[float, float]], rng: np.random.Generator) -> None:
    """Some updates by gradients made up here."""
    param, sizes = solver.param, np.diff(solver.net._runtime.parameters.offsets)
    rates = np.repeat([rate for rate, _ in factors], sizes) * param.base_lr
    decays = np.repeat([own for _, own in factors], sizes) * param.weight_decay
    weights = np.array(solver.net.flat_params, np.float64)
    history = [np.zeros(weights.size) for _ in range(solver.histories)]
    flat = np.asarray(solver.net.flat_diffs)
    for time in range(1, 4):
        flat[:] = rng.standard_normal(weights.size)
        prepared = oracle.prepared(
            flat.astype(np.float64), weights, 1 / param.iter_size, param.clip_gradients, decays,
            param.regularization_type == "L1",
        )  # fmt: skip
        numbers = solver._settings()[: 3 if solver.rule == "adam" else None]
        extra = (time,) if solver.rule == "adam" else ()
        step = getattr(oracle, solver.rule)(prepared, history, rates, *numbers, *extra)
        weights = weights - step
        solver.apply_update()
        np.testing.assert_allclose(flat, step, rtol=2e-3, atol=2e-5)
        np.testing.assert_allclose(solver.net.flat_params, weights, rtol=2e-3, atol=2e-5)
    mine = np.concatenate([array.ravel() for array in solver.history])
    np.testing.assert_allclose(mine, np.concatenate(history), rtol=2e-3, atol=2e-5)


def stepped(rule: str, size: int, count: int) -> list[np.ndarray[Any, Any]]:
    """Three steps over buffers of made-up numbers."""
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(size, np.float32) for _ in range(2)]
    arrays += [np.abs(rng.standard_normal(size, np.float32)) for _ in range(2)]
    buffers = [NDArray(array) for array in arrays]
    ends = [*sorted(rng.integers(0, size, count - 1).tolist()), size]
    factors = rng.uniform(0, 2, count).tolist()
    used = 2 if rule in ("adadelta", "adam") else 1
    step = SolverPass(buffers[0], buffers[1], buffers[2 : 2 + used], ends, factors, factors)
    extra = (0.3,) if rule == "adam" else ()
    for _ in range(3):
        step.take(rule, NUMBERS[rule] + extra, rate=0.1, decay=0.01, clip=0.9, share=0.5)
    return [np.array(buffer) for buffer in buffers]


@pytest.mark.parametrize("rule", NUMBERS)
def test_any_number_of_threads(rule: str) -> None:
    before, results = threads(), []
    try:
        for count in (1, 2, 5):
            set_threads(count)
            results.append(stepped(rule, 300_001, 7))
    finally:
        set_threads(before)
    for one, other in pairwise(results):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert np.isfinite(results[0][0]).all()


@pytest.mark.parametrize("kind", small.KINDS)
def test_training_twice_gives_the_same_weights(kind: str) -> None:
    text = "weight_decay: 0.01 clip_gradients: 0.5"
    first, second = small.made(kind, text), small.made(kind, text)
    assert np.array_equal(small.weights(first), small.weights(second))
    small.train(first, 5)
    small.train(second, 5)
    assert np.array_equal(small.weights(first), small.weights(second))


def test_frozen_parameters_stay() -> None:
    described = small.settings("SGD", "weight_decay: 0.1")
    described.net_param.layer[2].param.add(lr_mult=0)
    solver = get_solver(described)
    before = solver.net.params["ip1"][0].data.copy()
    small.train(solver, 3)
    assert np.array_equal(solver.net.params["ip1"][0].data, before)
    assert not solver.history[0].any()


def test_buffers_are_checked() -> None:
    one, other = NDArray.zeros((4,)), NDArray.zeros((5,))
    step = SolverPass(one, other, [NDArray.zeros((4,))], [4], [1], [1])
    with pytest.raises(ArrayError, match="of one size"):
        step.take("sgd", (0.9,), rate=1.0)
    step = SolverPass(one, NDArray.zeros((4,)), [], [4], [1], [1])
    with pytest.raises(ArrayError, match="missing"):
        step.take("sgd", (0.9,), rate=1.0)
