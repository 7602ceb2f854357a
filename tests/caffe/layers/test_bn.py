"""BN in the senses of SegNet and PSPNet, and BatchNorm with NVIDIA's scale and bias."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, run
from tests.caffe.layers.oracle import blocked, layer_text, passes
from tests.caffe.layers.passing import draw, same, set_params

SEGNET = "bn_param { scale_filler { value: 1.5 } shift_filler { value: 0.25 } }"
INFERENCE = "bn_param { bn_mode: INFERENCE scale_filler { value: 1.5 } }"
PSPNET = "bn_param { slope_filler { value: 1.5 } bias_filler { value: 0.25 } momentum: 0.75 }"
FROZEN = "bn_param { slope_filler { value: 1.5 } frozen: true }"
NVIDIA = "batch_norm_param { scale_filler { value: 1.5 } bias_filler { value: 0.25 } }"


def each(values):
    return np.asarray(values).reshape(1, -1, 1, 1)


def normal(x, eps):
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    return (x - each(mean)) / np.sqrt(each(variance) + eps)


@pytest.mark.parametrize("phase", [0, 1])
def test_segnet_takes_the_batch_in_both_phases(phase):
    x = draw(3, 4, 5, 2) * 2 + 1
    net = run(layer_text("BN", SEGNET, top="y m v"), {"x": x}, phase=phase)
    same(net.blobs["y"].data, normal(x, 1e-9) * 1.5 + 0.25, 1e-4, 1e-4)
    same(net.blobs["m"].data, each(x.mean((0, 2, 3))), 1e-5, 1e-5)
    same(net.blobs["v"].data, each(x.var((0, 2, 3))), 1e-5, 1e-5)


def test_segnet_in_inference_is_a_scale():
    x = draw(2, 4, 3, 3)
    net = build(layer_text("BN", INFERENCE), {"x": x}, phase=1)
    scale, shift = draw(1, 4, 1, 1, seed=3), draw(1, 4, 1, 1, seed=4)
    set_params(net, {"l": [scale, shift]})
    net.forward()
    same(net.blobs["y"].data, x * scale + shift)


def test_pspnet_averages_statistics():
    x = draw(3, 4, 5, 2) * 2 + 1
    net = build(layer_text("BN", PSPNET), {"x": x})
    assert [blob.data.shape for blob in net.params["l"]] == [(1, 4, 1, 1)] * 4
    for turn in range(2):
        net.forward()
        share = 1 - 0.75 ** (turn + 1)
        same(net.params["l"][2].data, each(x.mean((0, 2, 3))) * share, 1e-4, 1e-5)
        same(net.params["l"][3].data, each(x.var((0, 2, 3))) * share, 1e-4, 1e-5)
    same(net.blobs["y"].data, normal(x, 1e-5) * 1.5 + 0.25, 1e-4, 1e-4)


@pytest.mark.parametrize(("options", "phase"), [(PSPNET, 1), (FROZEN, 0)])
def test_pspnet_by_running_statistics(options, phase):
    x = draw(2, 4, 3, 3)
    net = build(layer_text("BN", options), {"x": x}, phase=phase)
    slope, bias, mean = (draw(1, 4, 1, 1, seed=seed) for seed in (1, 2, 3))
    variance = draw(1, 4, 1, 1, seed=4) ** 2 + 0.1
    set_params(net, {"l": [slope, bias, mean, variance]})
    net.forward()
    same(net.blobs["y"].data, (x - mean) / np.sqrt(variance + 1e-5) * slope + bias, 1e-4, 1e-4)
    same(net.params["l"][2].data, mean, 0, 0)


@pytest.mark.parametrize("options", [SEGNET, INFERENCE, PSPNET, FROZEN])
@pytest.mark.parametrize("top", ["x", "y"])
def test_gradients(options, top):
    own = 'layer { name: "copy" type: "Power" bottom: "i" top: "x" }\n'
    text = own + layer_text("BN", options, top=top)
    learned = {"l": [draw(1, 3, 1, 1, seed=1), draw(1, 3, 1, 1, seed=2)]}
    net = build(text, {"i": draw(2, 3, 3, 2)})
    if len(net.params["l"]) > 2:
        learned["l"] += [draw(1, 3, 1, 1, seed=3), draw(1, 3, 1, 1, seed=4) ** 2 + 0.2]
    set_params(net, learned)
    x = draw(2, 3, 3, 2, seed=7)
    net.blobs["i"].data[...] = x
    net.forward()
    rng = np.random.default_rng(5)
    dy = rng.uniform(-1, 1, net.blobs[top].data.shape).astype(np.float32)
    net.blobs[top].diff[...] = dy
    net.clear_param_diffs()
    net.backward()
    slope = learned["l"][0]
    by_batch = options in (SEGNET, PSPNET)
    if by_batch:
        hat, spread = normal(x, 1e-5), 1 / np.sqrt(each(x.var((0, 2, 3))) + 1e-5)
    elif options == FROZEN:
        spread = 1 / np.sqrt(learned["l"][3] + 1e-5)
        hat = (x - learned["l"][2]) * spread
    else:
        hat, spread = x, np.ones((1, 3, 1, 1))
    dx = dy * slope * spread
    if by_batch:
        dx -= slope * spread * (each(dy.mean((0, 2, 3))) + hat * each((dy * hat).mean((0, 2, 3))))
    same(net.blobs["i"].diff, dx, 1e-3, 1e-4)
    if options != FROZEN:
        same(net.params["l"][0].diff, each((dy * hat).sum((0, 2, 3))), 1e-3, 1e-3)
        same(net.params["l"][1].diff, each(dy.sum((0, 2, 3))), 1e-3, 1e-4)


def test_nvidias_gradients():
    x = draw(2, 2, 2, 3)
    y, dy, net = passes(layer_text("BatchNorm", NVIDIA), {"x": x})
    hat = normal(x, 1e-5)
    same(y, hat * 1.5 + 0.25, 1e-4, 1e-4)
    same(net.params["l"][3].diff, (dy * hat).sum((0, 2, 3)), 1e-3, 1e-3)
    same(net.params["l"][4].diff, dy.sum((0, 2, 3)), 1e-3, 1e-4)
    spread = 1 / np.sqrt(each(x.var((0, 2, 3))) + 1e-5)
    mean, slant = each(dy.mean((0, 2, 3))), hat * each((dy * hat).mean((0, 2, 3)))
    same(net.blobs["x"].diff, 1.5 * spread * (dy - mean - slant), 1e-3, 1e-4)


@pytest.mark.parametrize("options", [NVIDIA, "batch_norm_param { scale_bias: true }"])
def test_nvidia_in_the_test_phase(options):
    x = draw(2, 4, 3, 3)
    net = build(layer_text("BatchNorm", options), {"x": x}, phase=1)
    mean, variance = draw(4, seed=1), draw(4, seed=2) ** 2 + 0.1
    slope, bias = draw(4, seed=3), draw(4, seed=4)
    set_params(net, {"l": [mean * 2, variance * 2, [2], slope, bias]})
    net.forward()
    want = (x - each(mean)) / np.sqrt(each(variance) + 1e-5) * each(slope) + each(bias)
    same(net.blobs["y"].data, want, 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("kind", "options"), [("BN", PSPNET), ("BN", INFERENCE), ("BatchNorm", NVIDIA)]
)
def test_a_convolution_before_it_takes_it_in(kind, options):
    """A net for testing whose blobs are not kept folds the layer into the convolution."""
    from sparknet.caffe import Net
    from sparknet.proto import parse_net
    from tests.caffe.gradient import input_layer

    x = draw(2, 3, 6, 6)
    text = input_layer("x", x.shape) + blocked(16) + layer_text(kind, options, "x0", "x0")
    nets = [Net.from_proto(parse_net(text), 1, seed=3, keep_blobs=keep) for keep in (True, False)]
    count = len(nets[0].params["l"])
    for net in nets:
        for index, blob in enumerate(net.params["l"]):
            values = draw(*blob.data.shape, seed=9 + index)
            if kind == "BatchNorm" and index == 2:
                values[...] = 1
            squared = index == (1 if kind == "BatchNorm" else 3) and count > 2
            blob.data[...] = values**2 + 0.1 if squared else values
        net.params["front"][0].data[...] = draw(*net.params["front"][0].data.shape, seed=2)
        net.blobs["x"].data[...] = x
        net.forward()
    same(nets[0].blobs["x0"].data, nets[1].blobs["x0"].data, 1e-4, 1e-4)


def test_fields_of_two_forks():
    with pytest.raises(LayerError, match="bn_mode is of SegNet's BN, momentum of PSPNet's"):
        build(
            layer_text("BN", "bn_param { bn_mode: LEARN momentum: 0.5 }"), {"x": draw(1, 2, 2, 2)}
        )


def test_statistics_never_learn():
    params = "param { lr_mult: 1 } " * 4
    net = build(layer_text("BN", f"{params} {PSPNET}"), {"x": draw(1, 2, 2, 2)}, force=False)
    rates = [param.lr_mult for param in net._runtime.graph.params]
    assert rates == [1, 1, 0, 0]
    frozen = build(layer_text("BN", FROZEN), {"x": draw(1, 2, 2, 2)}, force=False)
    assert [param.lr_mult for param in frozen._runtime.graph.params] == [0, 0, 0, 0]
