"""Rates, momenta and decays of NVIDIA's and Intel's solvers, against their formulas."""

import numpy as np
import pytest

from sparknet import caffe
from sparknet.caffe.solvers.layer_rates import momentum, weight_decay
from sparknet.caffe.solvers.rate import learning_rate
from sparknet.errors import SolverError, TextError
from sparknet.proto import parse_solver
from sparknet.proto.solver import check_step
from tests.caffe.gradient import input_layer

NET = (
    input_layer("x", (3, 4))
    + input_layer("t", (3, 2))
    + """
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" param { lr_mult: 1 }
        param { lr_mult: 2 decay_mult: 0 } inner_product_param { num_output: 2
        weight_filler { type: "gaussian" std: 0.5 } bias_filler { type: "constant" value: 0.3 } } }
layer { name: "fixed" type: "InnerProduct" bottom: "y" top: "z" param { lr_mult: 0 }
        param { lr_mult: 0 } inner_product_param { num_output: 2
        weight_filler { type: "gaussian" std: 1 } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "t" top: "loss" }
"""
)


def rates(text: str, *iterations: int) -> list[float]:
    solver = parse_solver(text)
    return [learning_rate(solver, iteration, 0) for iteration in iterations]


def test_rates_that_rise_first():
    intel = "base_lr: 0.8 lr_policy: 'fixed' warmup_iter: 4 warmup_start_lr: 0.4"
    np.testing.assert_allclose(rates(intel, 0, 1, 3, 4, 9), [0.4, 0.5, 0.7, 0.8, 0.8])
    nvidia = "base_lr: 0.8 lr_policy: 'fixed' rampup_interval: 4 rampup_lr: 0.4"
    want = [0.4, 0.4 + 0.4 / 16, 0.4 + 0.4 * 9 / 16, 0.8]
    np.testing.assert_allclose(rates(nvidia, 0, 1, 3, 4), want, rtol=1e-6)


def test_the_least_rate():
    poly = "base_lr: 1 lr_policy: 'poly' power: 2 max_iter: 10 min_lr: 0.2"
    np.testing.assert_allclose(rates(poly, 0, 5, 10), [1, 0.2 + 0.8 / 4, 0.2], rtol=1e-6)
    exp = "base_lr: 1 lr_policy: 'exp' gamma: 0.5 min_lr: 0.2"
    np.testing.assert_allclose(rates(exp, 1, 2, 3, 9), [0.5, 0.25, 0.2, 0.2])


def test_rates_of_stages():
    stages = "stagelr: 0.5 stageiter: 2 stagelr: 0.1 stageiter: 9"
    yolo = f"lr_policy: 'multifixed' {stages}"
    np.testing.assert_allclose(rates(yolo, 0, 2, 3, 9, 10), [0.5, 0.5, 0.1, 0.1, 0.1], rtol=1e-6)


def test_momenta_and_decays():
    solver = parse_solver(
        "momentum: 0.5 momentum_policy: 'poly' max_momentum: 0.9 momentum_power: 2 max_iter: 10 "
        "weight_decay: 0.1 weight_decay_policy: 'poly' max_weight_decay: 0.3"
    )
    actual = [momentum(solver, n, 1.0) for n in (0, 5, 10)]
    np.testing.assert_allclose(actual, [0.5, 0.6, 0.9], rtol=1e-6)
    np.testing.assert_allclose([weight_decay(solver, n) for n in (0, 5)], [0.1, 0.2], rtol=1e-6)
    solver = parse_solver("momentum: 0.5 momentum_policy: 'opt'")
    assert momentum(solver, 0, 0.04) == pytest.approx((1 - 0.1) ** 2)
    solver.max_momentum = 0.7
    assert momentum(solver, 0, 0.04) == pytest.approx(0.7)


def trained(options):
    solver = parse_solver(
        f"net_param {{ {NET} }} base_lr: 0.1 lr_policy: 'fixed' weight_decay: 0.01 "
        f"random_seed: 3 max_iter: 99 {options}"
    )
    made = caffe.SGDSolver(solver)
    rng = np.random.default_rng(0)
    made.net.blobs["x"].data[...] = rng.normal(size=(3, 4))
    made.net.blobs["t"].data[...] = rng.normal(size=(3, 2))
    return made


def gradients(made):
    made.net.clear_param_diffs()
    made.net.forward()
    made.net.backward()
    return [np.array(b.diff) for b in made.net.params["ip"]]


def weights(made):
    return [np.array(b.data) for b in made.net.params["ip"]]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ("larc: true larc_eta: 0.5 momentum: 0.9", "larc"),
        ("larc: true larc_eta: 0.5 larc_policy: 'clip' momentum: 0.9", "clip"),
        ("larc: true larc_eta: 0.5 larc_turbo: true momentum: 0.9", "turbo"),
        ("local_lr_auto: true local_gw_ratio: 0.3 momentum: 0.9", "intel"),
    ],
)
def test_rates_by_the_norms_of_layers(options, kind):
    made = trained(options)
    history = [np.zeros_like(w) for w in weights(made)]
    correlations = [0.0, 0.0]
    still = [np.array(b.data) for b in made.net.params["fixed"]]
    for _ in range(4):
        before, slopes = weights(made), gradients(made)
        for n, (w, g) in enumerate(zip(before, slopes, strict=True)):
            size, slope = np.linalg.norm(w), np.linalg.norm(g)
            if kind == "intel":
                local = 0.3 * size / (slope + 0.01 * size)
            else:
                local = 0.1 * 0.5 * size / slope
            if kind == "turbo":
                norm = np.linalg.norm(history[n])
                now = np.sum(g * history[n]) / (slope * norm) if norm else 0
                correlations[n] = 0.95 * correlations[n] + 0.05 * now
                local -= 0.9 * correlations[n]
            rate = min(0.1, local) if kind == "clip" else 0.1 * local
            decay = 0.01 if n == 0 else 0
            history[n] = 0.9 * history[n] + rate * (g + decay * w)
        made.net.clear_param_diffs()
        made.step(1)
        for w, b, h in zip(weights(made), before, history, strict=True):
            np.testing.assert_allclose(w, b - h, rtol=2e-4, atol=2e-6)
    for blob, value in zip(made.net.params["fixed"], still, strict=True):
        np.testing.assert_array_equal(blob.data, value)


def test_a_growing_momentum():
    made = trained("momentum: 0 momentum_policy: 'poly' max_momentum: 0.99")
    before = weights(made)
    slopes = [gradients(made)]
    made.net.clear_param_diffs()
    made.step(1)
    slopes.append(gradients(made))
    middle = weights(made)
    made.net.clear_param_diffs()
    made.step(1)
    for w0, w1, w2, g1 in zip(before, middle, weights(made), slopes[1], strict=True):
        decay = 0.01 if w0.ndim > 1 else 0
        by = 0.1 if w0.ndim > 1 else 0.2
        step = 0.01 * (w0 - w1) + by * (g1 + decay * w1)
        np.testing.assert_allclose(w2, w1 - step, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("larc_policy: 'x'", "unknown larc_policy 'x': it is one of scale, clip"),
        ("momentum_policy: 'poly'", "max_iter is 0, but momentum_policy 'poly' divides by it"),
        ("min_lr: -1", "min_lr is -1, it must be at least 0"),
        ("warmup_iter: -2", "warmup_iter is -2, it must be at least 0"),
        ("larc: true local_lr_auto: true", "larc and local_lr_auto are both set"),
    ],
)
def test_settings(options, says):
    with pytest.raises(SolverError, match=says):
        check_step(parse_solver(f"base_lr: 1 lr_policy: 'fixed' {options}"))


def test_slices_of_gradients():
    made = trained("larc: true")
    made.net.forward()
    made.net.backward()
    with pytest.raises(SolverError, match="larc and local_lr_auto need whole gradients"):
        made.update_slice(0, 4, lambda: 1.0)


def test_tests_that_begin_later():
    made = trained("test_interval: 4 test_offset: 1 test_iter: 1 test_state { }")
    due = []
    for _ in range(10):
        due.append(made._tests_are_due())
        made._iter += 1
    assert [n for n, one in enumerate(due) if one] == [1, 5, 9]


def test_lists_of_devices():
    solver = parse_solver("device_id: [2, 0, 1] richness: 50 base_lr: 1")
    assert (solver.device_id, list(solver.further_device_id)) == (2, [0, 1])
    assert parse_solver("device_id: [3] base_lr: 1").device_id == 3
    with pytest.raises(TextError, match="or ']' in the list of 'device_id'"):
        parse_solver("device_id: [3 4]")
