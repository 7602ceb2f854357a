"""Blobs that get other shapes: layers follow when they run, and only those that run."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.native import has_bf16, has_int8
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.test_int8 import calibrated
from tests.caffe.test_skipped_pixels import conv, relu

NET = """
force_backward: true
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "gaussian" std: 0.5 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "flat" type: "Flatten" bottom: "pool" top: "flat" }
layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 0.5 } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""
BOTH = pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])


def make(phase=caffe.TEST, text=NET, **options):
    return caffe.Net.from_proto(parse_net(text), phase, seed=1, **options)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def sized(side: int, phase: int, params: caffe.Net) -> caffe.Net:
    """The net up to its pooling, made for images of this size, with the same parameters."""
    text = NET[: NET.index('layer { name: "flat"')].replace("dim: 8 dim: 8", f"dim: {side} " * 2)
    net = make(phase, text.replace(f"dim: 1 {side}", "dim: 1"))
    for mine, theirs in zip(net.params["conv"], params.params["conv"], strict=True):
        mine.data[...] = theirs.data
    return net


def same(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@BOTH
def test_a_pass_that_ends_before_the_layer_that_would_not_fit(phase):
    """deepdream, style transfer: an InnerProduct follows that nobody runs."""
    net = make(phase)
    want_prob = net.forward(data=draw(1, 1, 8, 8))["prob"].copy()
    for side in (20, 5, 13):
        net.blobs["data"].reshape(1, 1, side, side)
        net.blobs["data"].data[...] = image = draw(1, 1, side, side, seed=side)
        fresh = sized(side, phase, net)
        got = net.forward(end="pool")
        want = fresh.forward(data=image)
        same(got["pool"], want["pool"])
        same(net.blobs["conv"].data, fresh.blobs["conv"].data)
        top = draw(*got["pool"].shape, seed=7)
        same(net.backward(start="pool", pool=top)["data"], fresh.backward(pool=top)["data"])
    assert net.blobs["ip"].shape == (1, 4)
    assert net.blobs["flat"].shape == (1, 72)
    net.blobs["data"].reshape(1, 1, 8, 8)
    same(net.forward(data=draw(1, 1, 8, 8))["prob"], want_prob)


def test_the_layer_that_does_not_fit_is_named_when_it_runs():
    net = make()
    net.blobs["data"].reshape(1, 1, 20, 20)
    message = r"layer 'ip': InnerProduct: .*parameter 0.* 4 x 72 .* 4 x 648"
    for call in (net.forward, net.reshape, lambda: net.forward(start="ip", end="ip")):
        with pytest.raises(LayerError, match=message):
            call()
    assert net.blobs["pool"].shape == (1, 8, 9, 9)
    net.forward(end="flat")
    with pytest.raises(LayerError, match=message):
        net.forward(start="ip")
    net.blobs["data"].reshape(2, 1, 8, 8)
    assert net.forward()["prob"].shape == (2, 4)


def test_gradients_of_shapes_that_have_not_run_are_refused():
    net = make(caffe.TRAIN)
    net.forward()
    net.blobs["data"].reshape(1, 1, 20, 20)
    with pytest.raises(LayerError, match=r"layer 'conv': .*run it forward first"):
        net.backward()
    net.forward(end="conv")
    with pytest.raises(LayerError, match=r"layer 'pool': .*run it forward first"):
        net.backward()
    net.backward(start="conv")


@BOTH
def test_an_inner_blob_is_the_users_to_reshape(phase):
    net = make(phase)
    net.forward()
    flat = draw(3, 72)
    net.blobs["flat"].reshape(3, 72)
    net.blobs["flat"].data[...] = flat
    out = net.forward(start="ip")["prob"]
    scores = flat @ net.params["ip"][0].data.T + net.params["ip"][1].data
    exps = np.exp(scores - scores.max(1, keepdims=True))
    same(out, exps / exps.sum(1, keepdims=True))
    grads = net.backward(start="prob", end="ip", diffs=["flat"], prob=draw(3, 4))
    assert grads["flat"].shape == (3, 72)
    conv = draw(3, 8, 6, 6)
    net.blobs["conv"].reshape(3, 8, 6, 6)
    net.blobs["conv"].data[...] = conv
    assert net.forward(start="relu")["prob"].shape == (3, 4)
    same(net.blobs["pool"].data, np.maximum(conv, 0).reshape(3, 8, 3, 2, 3, 2).max((3, 5)))
    assert net.forward()["prob"].shape == (1, 4)
    assert net.blobs["conv"].shape == (1, 8, 6, 6)


def test_a_reshaped_blob_keeps_its_values():
    """Caffe: blob.cpp, Reshape lets go of memory only where it must grow."""
    for text in (NET, NET.replace("num_output: 8", "num_output: 16")):
        net = make(text=text)
        net.forward(data=draw(1, 1, 8, 8))
        conv, shape = net.blobs["conv"], net.blobs["conv"].shape
        values = np.array(conv.data).ravel()
        conv.reshape(1, 4, 6, 6)
        np.testing.assert_array_equal(conv.data.ravel(), values[:144])
        conv.reshape(*shape)
        np.testing.assert_array_equal(conv.data.ravel(), values)
        conv.reshape(2, *shape[1:])
        np.testing.assert_array_equal(conv.data[0].ravel(), values)
        assert not conv.data[1].any()


def test_what_shares_a_blobs_memory_keeps_its_values():
    """The flat blob looks at the pool's values, in whatever order the engine keeps them."""
    net = make(text=NET.replace("num_output: 8", "num_output: 16"))
    net.forward(end="pool", data=draw(1, 1, 8, 8))
    want = np.array(net.blobs["pool"].data)
    for rows in (5, 1, 2):
        net.blobs["flat"].reshape(rows, 144)
        net.forward(end="pool")
        np.testing.assert_array_equal(net.forward(start="flat", end="flat")["flat"], [want.ravel()])
        np.testing.assert_array_equal(net.blobs["pool"].data, want)


def test_the_same_shape_again_changes_nothing():
    net = make()
    net.forward()
    view = net.blobs["data"].data
    net.blobs["data"].reshape(1, 1, 8, 8)
    assert net.blobs["data"].data is view
    assert not net._runtime._stale


def test_part_of_a_net_for_testing_that_shares_its_blobs():
    net, kept = make(keep_blobs=False), make()
    net.flat_params.copy_from(kept.flat_params)
    for side in (8, 20, 5, 8):
        for one in (net, kept):
            one.blobs["data"].reshape(1, 1, side, side)
        image = draw(1, 1, side, side, seed=side)
        end = None if side == 8 else "pool"
        got, want = (one.forward(data=image, end=end) for one in (net, kept))
        for name, values in want.items():
            same(got[name], values)


FUSED = """
force_backward: true
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 8 dim: 6 dim: 6 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "a" convolution_param { num_output: 8
  kernel_size: 3 pad: 1 weight_filler { type: "gaussian" std: 0.2 } } }
layer { name: "norm" type: "BatchNorm" bottom: "a" top: "a"
  batch_norm_param { use_global_stats: false } }
layer { name: "scale" type: "Scale" bottom: "a" top: "a" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "a" top: "a" }
layer { name: "whole" type: "Pooling" bottom: "a" top: "b"
  pooling_param { pool: AVE global_pooling: true } }
layer { name: "ip" type: "InnerProduct" bottom: "b" top: "c" inner_product_param { num_output: 8
  weight_filler { type: "gaussian" std: 0.2 } } }
layer { name: "norm2" type: "BatchNorm" bottom: "c" top: "c"
  batch_norm_param { use_global_stats: false } }
layer { name: "scale2" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
layer { name: "relu2" type: "ReLU" bottom: "c" top: "c" }
"""


def test_layers_computed_together_beyond_the_part_that_was_reshaped():
    """The second half keeps what its backward pass needs while the first takes another size."""
    nets = [make(caffe.TRAIN, FUSED) for _ in range(2)]
    for net in nets:
        net.forward(x=draw(2, 8, 6, 6))
    nets[0].blobs["x"].reshape(2, 8, 9, 9)
    nets[0].blobs["x"].data[...] = draw(2, 8, 9, 9, seed=1)
    nets[0].forward(end="whole")
    top = draw(2, 8, seed=2)
    for net in nets:
        net.clear_param_diffs()
        net.backward(end="ip", c=top)
    for mine, theirs in zip(*(net.params["scale2"] for net in nets), strict=True):
        assert mine.diff.any()
        same(mine.diff, theirs.diff)
    same(nets[0].blobs["c"].diff, nets[1].blobs["c"].diff)


def test_half_of_a_chain_with_a_blob_of_another_size():
    """A pass that begins within layers that were computed together, with other rows."""
    net = make(caffe.TRAIN, FUSED)
    net.forward(x=draw(2, 8, 6, 6))
    values = draw(5, 8, seed=3)
    net.blobs["c"].reshape(5, 8)
    net.blobs["c"].data[...] = values
    factor, shift = (blob.data for blob in net.params["scale2"])
    same(net.forward(start="scale2")["c"], np.maximum(values * factor + shift, 0))
    with pytest.raises(LayerError, match="layer 'norm2'"):
        net.backward(c=draw(5, 8))


CHAIN = (
    input_layer("data", (4, 3, 20, 20))
    + conv("first", "data", 16, "kernel_size: 3")
    + relu("first")
    + conv("wide", "first", 32)
    + relu("wide")
    + conv("windows", "wide", 32, "kernel_size: 3 group: 32")
    + relu("windows")
    + conv("last", "windows", 8)
    + """layer { name: "ip" type: "InnerProduct" bottom: "last" top: "ip"
          inner_product_param { num_output: 4 weight_filler { type: "msra" } } }"""
)
PRECISIONS = ["float32", *["bf16"] * has_bf16(), *["int8"] * has_int8()]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_batches_of_sizes_that_take_turns(precision):
    """Kernels and packed weights for a size that came before are used again, with newest values."""
    values = draw(5, 3, 20, 20)

    def built() -> caffe.Net:
        net = make(text=CHAIN, precision=precision, keep_blobs=False)
        if precision == "int8":
            net.use_int8(steps)
        return net

    def run(net, size):
        net.blobs["data"].reshape(size, 3, 20, 20)
        return net.forward(data=values[:size])["ip"].copy()

    measured = make(text=CHAIN)
    measured.forward(data=values[:4])
    steps = calibrated(measured)
    net, taken = built(), set()
    for turn, size in enumerate((4, 3, 4, 1, 2, 5, 3, 4, 3, 4)):
        fresh = built()
        net.params["wide"][0].data[...] *= 1.1
        net.params["last_scale"][0].data[...] += turn // 2
        fresh.flat_params[...] = np.array(net.flat_params)
        np.testing.assert_array_equal(run(net, size), run(fresh, size))
        taken.add(net._runtime.engine.memory()["pages"])
    assert max(taken) < 2 * run_memory(built(), values)


def run_memory(net, values):
    """Return the bytes that a net holds after a pass of all records."""
    net.blobs["data"].reshape(*values.shape)
    net.forward(data=values)
    return net._runtime.engine.memory()["pages"]
