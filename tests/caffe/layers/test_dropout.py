"""Dropout: what holds of any sample."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.native import set_threads, threads
from tests.caffe.gradient import build, check_gradients, run

COPY = 'layer { name: "copy" type: "Power" bottom: "x" top: "c" }\n'


def layer(ratio: float, bottom: str = "x", top: str = "y") -> str:
    return (
        f'layer {{ name: "l" type: "Dropout" bottom: "{bottom}" top: "{top}" '
        f"dropout_param {{ dropout_ratio: {ratio} }} }}\n"
    )


@pytest.mark.parametrize("ratio", [0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("in_place", [False, True])
def test_train(ratio, in_place):
    x = np.random.default_rng(0).uniform(0.5, 2, (100, 400)).astype(np.float32)
    net = build(COPY + layer(ratio, "c", "c") if in_place else layer(ratio), {"x": x})
    top = net.blobs[net.outputs[0]]
    net.forward()
    y, scale = np.array(top.data), np.float32(1 / (1 - ratio))
    kept = y != 0
    assert abs(kept.mean() - (1 - ratio)) <= 6 * np.sqrt(ratio * (1 - ratio) / x.size)
    np.testing.assert_allclose(y[kept], (x * scale)[kept], rtol=1e-6)
    top.diff[...] = x
    net.backward()
    np.testing.assert_allclose(net.blobs["x"].diff, x * scale * kept, rtol=1e-6)
    if ratio:
        net.forward()
        assert not np.array_equal(top.data != 0, kept)


@pytest.mark.parametrize("in_place", [False, True])
def test_copies_when_testing(in_place):
    x = np.random.default_rng(0).uniform(0.5, 2, (3, 4))
    text = COPY + layer(0.5, "c", "c") if in_place else layer(0.5)
    check_gradients(text, {"x": x}, phase=caffe.TEST)
    net = run(text, {"x": x}, caffe.TEST)
    assert np.array_equal(net.blobs[net.outputs[0]].data, x.astype(np.float32))


def masks(number):
    caffe.set_random_seed(5)
    net = build(layer(0.5), {"x": np.ones((300, 1000))})
    set_threads(number)
    found = []
    for _ in range(2):
        net.forward()
        net.blobs["y"].diff[...] = 1
        net.backward()
        assert np.array_equal(net.blobs["y"].data, net.blobs["x"].diff)
        found.append(np.array(net.blobs["y"].data))
    return found


def test_one_seed_one_mask_for_any_number_of_threads():
    before = threads()
    try:
        one, two, three = masks(1), masks(2), masks(3)
    finally:
        set_threads(before)
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)
    assert not np.array_equal(one[0], one[1])


@pytest.mark.parametrize("channels", [16, 20])
def test_behind_a_convolution(channels):
    text = (
        'layer { name: "conv" type: "Convolution" bottom: "x" top: "c" convolution_param { '
        f"num_output: {channels} kernel_size: 3 "
        'weight_filler { type: "gaussian" std: 0.4 } } }\n'
        + layer(0.4, "c")
        + 'layer { name: "conv2" type: "Convolution" bottom: "y" top: "z" convolution_param { '
        'num_output: 2 kernel_size: 1 weight_filler { type: "gaussian" std: 1 } } }\n'
    )
    net = build(text, {"x": np.random.default_rng(1).normal(size=(3, 4, 9, 8))})
    net.forward()
    net.blobs["z"].diff[...] = 1
    net.backward()
    c, y = np.array(net.blobs["c"].data), np.array(net.blobs["y"].data)
    kept = y != 0
    assert abs(kept.mean() - 0.6) < 6 * np.sqrt(0.24 / y.size)
    np.testing.assert_allclose(y, kept * c / np.float32(0.6), rtol=1e-6)
    want = kept * np.array(net.blobs["y"].diff) / np.float32(0.6)
    np.testing.assert_allclose(net.blobs["c"].diff, want, rtol=1e-6)


@pytest.mark.parametrize("kind", ["Dropout", "SpatialDropout"])
@pytest.mark.parametrize(("phase", "drops"), [(caffe.TRAIN, 1), (caffe.TEST, 1), (caffe.TEST, 0)])
def test_in_place_behind_any_layout(kind, phase, drops):
    """The same values are dropped as of a blob in plain rows, forward and backward."""
    options = f"dropout_param {{ sample_weights_test: {'true' if drops else 'false'} }}"
    found = []
    for front in ("LogSoftmax", "Convolution"):
        text = (
            f'layer {{ name: "f" type: "{front}" bottom: "x" top: "y" '
            "convolution_param { num_output: 16 kernel_size: 1 } }"
            f'layer {{ name: "l" type: "{kind}" bottom: "y" top: "y" {options} }}'
            'layer { name: "s" type: "LogSoftmax" bottom: "y" top: "z" }'
        )
        caffe.set_random_seed(1)
        net = build(text, {"x": np.random.default_rng(1).normal(size=(3, 16, 5, 4))}, phase)
        if front == "Convolution":
            net.params["f"][0].data[...] = np.random.default_rng(2).normal(size=(16, 16, 1, 1))
        net.forward()
        net.blobs["z"].diff[...] = np.random.default_rng(3).normal(size=(3, 16, 5, 4))
        net.backward()
        y, dy = np.array(net.blobs["y"].data), np.array(net.blobs["y"].diff)
        assert np.array_equal(y != 0, dy != 0)
        found.append(y != 0)
    assert np.array_equal(*found)
    assert 0.3 < found[0].mean() < 0.7 if drops else found[0].all()
