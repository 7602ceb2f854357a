"""Updates against their formulas, in slices, and gradients that are overwritten."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet import caffe
from sparknet.caffe.solvers import Solver, get_solver
from sparknet.errors import ArrayError, SpecError
from sparknet.native import NDArray, set_threads, threads
from sparknet.native.solver import SolverPass
from sparknet.proto import parse_net
from tests.caffe.solvers import oracle, small

NUMBERS = {
    "sgd": (0.9,),
    "nesterov": (0.9,),
    "adagrad": (1e-8,),
    "rmsprop": (0.95, 1e-8),
    "adadelta": (0.95, 1e-6),
    "adam": (0.9, 0.999, 1e-8),
    "adamw": (0.9, 0.999, 1e-8),
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
def test_formula(kind, iter_size, clip, decay, l1, factors, seed):
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
        is_apart = solver.rule == "adamw"
        prepared = oracle.prepared(
            flat.astype(np.float64), weights, 1 / param.iter_size, param.clip_gradients,
            0 * decays if is_apart else decays,
            param.regularization_type == "L1",
        )  # fmt: skip
        weights = weights - rates * decays * weights * is_apart
        name = solver.rule.removesuffix("w")
        numbers = solver._settings()[: 3 if name == "adam" else None]
        extra = (time,) if name == "adam" else ()
        step = getattr(oracle, name)(prepared, history, rates, *numbers, *extra)
        weights = weights - step
        solver.apply_update()
        np.testing.assert_allclose(flat, step, rtol=2e-3, atol=2e-5)
        np.testing.assert_allclose(solver.net.flat_params, weights, rtol=2e-3, atol=2e-5)
    mine = np.concatenate([array.ravel() for array in solver.history])
    np.testing.assert_allclose(mine, np.concatenate(history), rtol=2e-3, atol=2e-5)


def stepped(rule, size, count):
    """Three steps over buffers of made-up numbers."""
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(size, np.float32) for _ in range(2)]
    arrays += [np.abs(rng.standard_normal(size, np.float32)) for _ in range(2)]
    buffers = [NDArray(array) for array in arrays]
    ends = [*sorted(rng.integers(0, size, count - 1).tolist()), size]
    factors = rng.uniform(0, 2, count).tolist()
    used = 2 if rule in ("adadelta", "adam", "adamw") else 1
    step = SolverPass(buffers[0], buffers[1], buffers[2 : 2 + used], ends, factors, factors)
    extra = (0.3,) if rule.startswith("adam") else ()
    for _ in range(3):
        step.take(rule, NUMBERS[rule] + extra, rate=0.1, decay=0.01, clip=0.9, share=0.5)
    return [np.array(buffer) for buffer in buffers]


@pytest.mark.parametrize("rule", NUMBERS)
def test_any_number_of_threads(rule):
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


def test_buffers_are_checked():
    one, other = NDArray.zeros((4,)), NDArray.zeros((5,))
    step = SolverPass(one, other, [NDArray.zeros((4,))], [4], [1], [1])
    with pytest.raises(ArrayError, match="of one size"):
        step.take("sgd", (0.9,), rate=1.0)
    step = SolverPass(one, NDArray.zeros((4,)), [], [4], [1], [1])
    with pytest.raises(ArrayError, match="missing"):
        step.take("sgd", (0.9,), rate=1.0)


DROPOUT = small.NET.replace(
    'layer { name: "ip2"',
    'layer { name: "drop" type: "Dropout" bottom: "h" top: "h" }\nlayer { name: "ip2"',
)


@pytest.mark.parametrize("kind", small.KINDS)
def test_slices_make_a_whole_update(kind):
    text = "weight_decay: 0.01 clip_gradients: 0.1 iter_size: 2"
    whole, pieces = small.make_solver(kind, text), small.make_solver(kind, text)
    size = whole.net.flat_params.size
    for number in range(3):
        losses = [solver.compute_gradient(lambda s=solver, n=number: small.feed(s, n))
                  for solver in (whole, pieces)]  # fmt: skip
        assert losses[0] == losses[1]
        whole.apply_update()
        norm = pieces.net.flat_diffs.norm2()
        for begin, end in ((0, 7), (7, 7), (7, 18), (18, size)):
            pieces.seek(whole.iter - 1)
            pieces.update_slice(begin, end, lambda n=norm: n)
    assert whole.iter == pieces.iter == 3
    # Whole updates are a device's, whose roots may be rounded otherwise.
    near = 1e-6 if whole.net.device not in (None, "cpu") else 0.0
    np.testing.assert_allclose(small.weights(whole), small.weights(pieces), rtol=near, atol=near)
    for one, other in zip(whole.flat_history, pieces.flat_history, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=near, atol=near)
        assert one.norm2() > 0


def test_seek_finds_the_rate():
    text = 'lr_policy: "multistep" stepvalue: 2 stepvalue: 5 gamma: 0.1'
    walked, jumped = small.make_solver("SGD", text), small.make_solver("SGD", text)
    rates = []
    for _ in range(8):
        rates.append(walked.lr)
        small.train(walked, 1)
    for iteration, rate in enumerate(rates):
        jumped.seek(iteration)
        assert jumped.lr == rate
    assert rates[1:3] == pytest.approx([0.05, 0.005])
    assert rates[7] == pytest.approx(0.0005)


def test_the_rate_of_the_current_iteration_while_training():
    solver = small.make_solver("Adam", 'base_lr: 0.5 lr_policy: "step" stepsize: 2 gamma: 0.1')
    seen: list[float] = []
    solver.add_callback(lambda: seen.append(solver.lr))
    small.train(solver, 5)
    assert seen == pytest.approx([0.5, 0.5, 0.05, 0.05, 0.005])
    assert solver.lr == pytest.approx(0.005)


def test_random_numbers_go_on_in_another_net():
    nets = [caffe.Net.from_proto(parse_net(DROPOUT), caffe.TRAIN, seed=seed) for seed in (1, 2)]
    for net in nets:
        for name in ("ip1", "ip2"):
            net.params[name][0].data[...] = 1
        net.blobs["x"].data[...] = np.arange(12).reshape(4, 3)
    nets[0].forward()
    nets[1].random_state = nets[0].random_state

    def drawn(net):
        net.forward()
        return np.array(net.blobs["h"].data)

    first, second = ([drawn(net) for _ in range(3)] for net in nets)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])
    with pytest.raises(SpecError, match="2 draws do not fit"):
        nets[0].random_state = (1, [0, 0])
