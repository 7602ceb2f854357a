"""Gradients that are overwritten instead of cleared and added to: nobody may notice."""

import numpy as np
import pytest

from sparknet.caffe.solvers import solver_from_text
from sparknet.errors import LayerError
from sparknet.native import set_threads, threads

LAYERS = """
  layer { name: "data" type: "Input" top: "data"
    input_param { shape { dim: 4 dim: 6 dim: 9 dim: 9 } } }
  layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
    convolution_param { num_output: 5 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "one" type: "InnerProduct" bottom: "conv" top: "one" param { name: "shared" }
    inner_product_param { num_output: 3 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "two" type: "InnerProduct" bottom: "conv" top: "two" param { name: "shared" }
    inner_product_param { num_output: 3 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "idle" type: "InnerProduct" bottom: "conv" top: "idle"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "silence" type: "Silence" bottom: "idle" }
  layer { name: "sum" type: "Eltwise" bottom: "one" bottom: "two" top: "sum" }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "sum" bottom: "label" top: "loss" }
"""


def solver(iter_size=1, idle=2):
    layers = LAYERS.replace("num_output: 2 ", f"num_output: {idle} ")
    made = solver_from_text(
        f'type: "SGD" base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 random_seed: 3 '
        f"iter_size: {iter_size} snapshot_after_train: false net_param {{ {layers} }}"
    )
    rng = np.random.default_rng(5)
    made.net.blobs["data"].data[...] = rng.standard_normal((4, 6, 9, 9), np.float32)
    made.net.blobs["label"].data[...] = [0, 1, 2, 1]
    return made


def plainly(made, steps):
    """What `step` does, each thing by itself."""
    last = len(made.net.layers) - 1
    for _ in range(steps):
        made.net.clear_param_diffs()
        for _ in range(made.param.iter_size):
            made.net._forward(0, last)
            made.net._backward(last, 0)
        made.apply_update()


@pytest.mark.parametrize("iter_size", [1, 3])
def test_overwritten_gradients_are_cleared_ones_to_the_bit(iter_size):
    one, other = solver(iter_size), solver(iter_size)
    one.step(3)
    plainly(other, 3)
    assert np.array_equal(one.net.flat_params, other.net.flat_params)
    assert np.array_equal(one.net.flat_diffs, other.net.flat_diffs)


@pytest.fixture
def two_threads():
    before = threads()
    set_threads(2)
    yield
    set_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("idle", [2, 400])
def test_gradients_that_no_pass_reaches_become_zero(idle):
    """The larger ones by two threads."""
    made = solver(idle=idle)
    for blob in made.net.params["idle"]:
        blob.diff[...] = 7
    made.compute_gradient()
    assert not any(blob.diff.any() for blob in made.net.params["idle"])
    assert all(made.net.params[name][0].diff.any() for name in ("conv", "one"))


def test_a_gradient_left_over_is_not_added_to():
    made, fresh = solver(), solver()
    made.net.flat_diffs.fill(1e6)
    made.compute_gradient()
    fresh.compute_gradient()
    assert np.array_equal(made.net.flat_diffs, fresh.net.flat_diffs)


def test_who_looks_before_the_passes_finds_zeros():
    made = solver()
    seen: list[float] = []
    made.step(1)
    made.add_callback(lambda: seen.append(float(np.abs(made.net.flat_diffs).max())))
    made.step(1)
    assert seen == [0]


def test_what_a_callback_leaves_is_added_to():
    made, plain = solver(), solver()
    made.add_callback(lambda: made.net.flat_diffs.fill(0.5))
    made.step(1)
    plain.compute_gradient()
    np.asarray(plain.net.flat_diffs)[...] += np.float32(0.5)
    plain.apply_update()
    np.testing.assert_allclose(made.net.flat_params, plain.net.flat_params, rtol=1e-5, atol=1e-6)


def test_a_pass_that_fails_leaves_zeros():
    made = solver()
    made.step(1)
    assert np.abs(made.net.flat_diffs).max() > 0
    made.net.blobs["label"].data[...] = 9
    with pytest.raises(LayerError, match="label 9"):
        made.step(1)
    assert np.abs(made.net.flat_diffs).max() == 0


def test_a_callback_of_the_net_sees_zeros_before_the_backward_pass():
    made = solver()
    seen: list[float] = []
    made.step(1)
    made.net.after_forward(lambda layer: seen.append(float(np.abs(made.net.flat_diffs).max())))
    made.step(1)
    assert max(seen) == 0
