"""Layers and losses of forks: Reorg, Flip, SpatialDropout, R-FCN's and NVIDIA's losses."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import biased, build, check_gradients, run
from tests.caffe.layers.oracle import layer_text, passes
from tests.caffe.layers.passing import backward, draw, same, set_params


def reorganised(x, stride, reverse):
    """Darknet's reorg_cpu: the sizes of the input are those of the side with more channels."""
    num, channels, high, wide = x.shape
    out = channels // stride**2
    y = np.zeros_like(x)
    for n, c, h, w in np.ndindex(*x.shape):
        offset = c // out
        row, column = h * stride + offset // stride, w * stride + offset % stride
        far = column + wide * stride * (row + high * stride * (c % out + out * n))
        near = w + wide * (h + high * (c + channels * n))
        if reverse:
            y.ravel()[far] = x.ravel()[near]
        else:
            y.ravel()[near] = x.ravel()[far]
    size = (high * stride, wide * stride) if reverse else (high // stride, wide // stride)
    return y.reshape(num, -1, *size)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "stride"), [((2, 8, 4, 6), 2), ((1, 9, 3, 3), 3)])
def test_reorg(reverse, shape, stride):
    x = draw(*shape)
    text = layer_text(
        "Reorg", f"reorg_param {{ stride: {stride} reverse: {str(reverse).lower()} }}"
    )
    net = run(text, {"x": x})
    same(net.blobs["y"].data, reorganised(x, stride, reverse), 0, 0)
    backward(net)
    check_gradients(text, {"x": x[:1, : 2 * stride**2, :stride, :stride]})


def test_reorg_that_does_not_divide():
    with pytest.raises(LayerError, match="the 6 channels do not divide by the stride's square, 4"):
        build(layer_text("Reorg", "reorg_param { stride: 2 }"), {"x": draw(1, 6, 4, 4)})


@pytest.mark.parametrize(
    ("words", "axes"),
    [("", 3), ("flip_width: false flip_height: true", 2), ("flip_height: true", (2, 3))],
)
def test_flip(words, axes):
    x, text = draw(2, 3, 4, 5), layer_text("Flip", f"flip_param {{ {words} }}")
    net = run(text, {"x": x})
    same(net.blobs["y"].data, np.flip(x, axes), 0, 0)
    gradients = backward(net)["y"]
    same(net.blobs["x"].diff, np.flip(gradients, axes), 0, 0)


def test_spatial_dropout_drops_whole_channels():
    x = np.abs(draw(8, 64, 3, 3)) + 1
    text = layer_text("SpatialDropout", "dropout_param { dropout_ratio: 0.25 }")
    y, dy, net = passes(text, {"x": x})
    kept = (y != 0).reshape(512, 9)
    assert (kept.all(1) | ~kept.any(1)).all()
    assert 0.65 < kept[:, 0].mean() < 0.85
    mask = (y != 0) / 0.75
    same(y, x * mask, 1e-5, 1e-6)
    same(net.blobs["x"].diff, dy * mask, 1e-5, 1e-6)
    same(passes(text, {"x": x}, phase=1)[0], x, 0, 0)


@pytest.mark.parametrize("phase", [0, 1])
def test_spatial_dropout_in_place_behind_a_convolution(phase):
    """A convolution leaves its values in blocks of channels."""
    conv = (
        'layer { name: "conv" type: "Convolution" bottom: "x" top: "c" '
        "convolution_param { num_output: 16 kernel_size: 3 } }\n"
    )
    drop = 'layer { name: "drop" type: "SpatialDropout" bottom: "c" top: "c" }\n'
    x, weights = draw(2, 16, 7, 7), draw(16, 16, 3, 3, seed=1)
    found = []
    for text in (conv, conv + drop):
        net = build(text, {"x": x}, phase=phase)
        set_params(net, {"conv": [weights, np.zeros(16, np.float32)]})
        net.forward()
        found.append(net.blobs["c"].data.copy())
    want, got = found
    by = 1 if phase else np.where(got.any((2, 3), keepdims=True), 2, 0)
    same(got, want * by, 1e-5, 1e-5)


@pytest.mark.parametrize("kind", ["Dropout", "SpatialDropout"])
@pytest.mark.parametrize("top", ["x", "y"])
def test_scale_train_false(kind, top):
    """The values that stay are as they are; in TEST all of them shrink (R-FCN)."""
    options = "dropout_param { dropout_ratio: 0.25 scale_train: false }"
    own = 'layer { name: "copy" type: "Power" bottom: "i" top: "x" }\n'
    x = np.abs(draw(4, 16, 2, 2)) + 1
    y, dy, net = passes(own + layer_text(kind, options, top=top), {"i": x}, top=top)
    same(y, np.where(y != 0, x, 0), 1e-6)
    same(net.blobs["i"].diff, np.where(y != 0, dy, 0), 1e-6)
    y, dy, net = passes(own + layer_text(kind, options, top=top), {"i": x}, top=top, phase=1)
    same(y, x * 0.75, 1e-6)
    same(net.blobs["i"].diff, dy * 0.75, 1e-6)


def test_values_are_dropped_in_the_test_phase_where_segnet_says_so():
    text = layer_text("Dropout", "dropout_param { sample_weights_test: true }")
    y = passes(text, {"x": np.ones((10, 100), np.float32)}, phase=1)[0]
    assert set(np.unique(y)) == {0.0, 2.0}


def test_rows_of_weights_with_length_one():
    x, weights = draw(3, 5), draw(4, 5, seed=2) * 3
    text = layer_text(
        "InnerProduct", "inner_product_param { num_output: 4 normalize: true bias_term: false }"
    )
    net = build(text, {"x": x})
    set_params(net, {"l": [weights]})
    net.forward()
    rows = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    same(net.params["l"][0].data, rows, 1e-5)
    same(net.blobs["y"].data, x @ rows.T, 1e-4, 1e-5)
    gradients = backward(net)["y"]
    same(net.blobs["x"].diff, gradients @ rows, 1e-4, 1e-5)
    same(net.params["l"][0].diff, gradients.T @ x, 1e-4, 1e-5)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


LABELS = np.array([2, 0, 3, 1, 0, 0], np.float32)


@pytest.mark.parametrize("kind", ["SoftmaxWithLoss", "SoftmaxWithLossOHEM"])
@pytest.mark.parametrize(
    ("options", "divisor"), [("", 5), ("normalization: PRE_FIXED pre_fixed_normalizer: 7", 7)]
)
def test_softmax_losses(kind, options, divisor):
    x = draw(6, 4)
    tops = "loss p each" if kind.endswith("OHEM") else "loss p"
    text = layer_text(kind, f"loss_param {{ ignore_label: 3 {options} }}", "x l", tops)
    net = run(text, {"x": x, "l": LABELS}, force=False)
    used, places = LABELS != 3, np.arange(6)
    each = np.where(used, -np.log(softmax(x)[places, LABELS.astype(int)]), 0)
    same(net.blobs["loss"].data, np.float32(each.sum() / divisor), 1e-5)
    if kind.endswith("OHEM"):
        same(net.blobs["each"].data, each, 1e-4, 1e-5)
    one = layer_text(kind, f"loss_param {{ ignore_label: 3 {options} }}", "xb l", "loss")
    check_gradients(biased("x") + one, {"x": x, "l": LABELS}, of=[], force=False, tolerance=2e-2)


def test_class_weights():
    x, labels = draw(2, 3, 2, 2), np.array([0, 1, 2, 1, 0, 2, 2, 1], np.float32).reshape(2, 1, 2, 2)
    options = (
        "loss_param { weight_by_label_freqs: true "
        "class_weighting: 0.5 class_weighting: 2 class_weighting: 1.25 }"
    )
    net = run(layer_text("SoftmaxWithLoss", options, "x l"), {"x": x, "l": labels}, force=False)
    flat = labels.astype(int).reshape(2, 2, 2)
    chosen = np.take_along_axis(softmax(x), flat[:, None], 1)[:, 0]
    want = -(np.log(chosen) * np.array([0.5, 2, 1.25])[flat]).mean()
    same(net.blobs["y"].data, np.float32(want), 1e-5)
    text = biased("x") + layer_text("SoftmaxWithLoss", options, "xb l")
    check_gradients(text, {"x": x, "l": labels}, of=[], force=False)


def test_a_weight_for_each_class():
    options = "loss_param { weight_by_label_freqs: true class_weighting: 1 }"
    with pytest.raises(LayerError, match="needs a class_weighting for each of the 4 classes"):
        build(layer_text("SoftmaxWithLoss", options, "x l"), {"x": draw(6, 4), "l": LABELS})


def test_smooth_l1_of_each_region():
    a, b = draw(3, 4, 1, 1) * 2, draw(3, 4, 1, 1, seed=1)
    w = np.array([1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1], np.float32).reshape(a.shape)
    options = "loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 8 }"
    text = layer_text("SmoothL1LossOHEM", options, "a b w", "loss each")
    net = run(text, {"a": a, "b": b, "w": w})
    size = np.abs(w * (a - b))
    each = np.where(size < 1, size**2 / 2, size - 0.5).sum(1, keepdims=True)
    same(net.blobs["each"].data, each, 1e-5, 1e-6)
    same(net.blobs["loss"].data, np.float32(each.sum() / 8), 1e-5)
    text = layer_text("SmoothL1LossOHEM", options, "a b w", "loss")
    check_gradients(text, {"a": a, "b": b, "w": w}, of=["a", "b"], kinks=())


def test_l1():
    a, b = draw(3, 4), draw(3, 4, seed=1)
    net = run(layer_text("L1Loss", "", "a b"), {"a": a, "b": b})
    same(net.blobs["y"].data, np.float32(np.abs(a - b).sum() / 3), 1e-5)
    check_gradients(layer_text("L1Loss", "", "a b"), {"a": a + 5 * np.sign(a - b), "b": b})


def test_the_regions_with_the_largest_losses():
    rng = np.random.default_rng(4)
    regions = np.zeros((8, 5), np.float32)
    regions[:, 0] = [0, 0, 0, 0, 1, 1, 1, 1]
    losses = rng.permutation(8).astype(np.float32)
    labels, weights = rng.integers(1, 9, 8).astype(np.float32), draw(8, 12)
    options = "box_annotator_ohem_param { roi_per_img: 2 ignore_label: -1 }"
    text = layer_text("BoxAnnotatorOHEM", options, "r s l w", "kept inside")
    inputs = {"r": regions, "s": losses, "l": labels, "w": weights}
    net = run(text, inputs, force=False)
    taken = {
        i for part in (range(4), range(4, 8)) for i in sorted(part, key=lambda i: -losses[i])[:2]
    }
    mask = np.array([i in taken for i in range(8)])
    same(net.blobs["kept"].data.ravel(), np.where(mask, labels, -1))
    same(net.blobs["inside"].data.reshape(8, 12), weights * mask[:, None])


def test_losses_that_are_no_numbers():
    options = "box_annotator_ohem_param { roi_per_img: 2 }"
    text = layer_text("BoxAnnotatorOHEM", options, "r s l w", "kept inside")
    inputs = {"r": np.zeros((2, 5)), "s": [0, float("nan")], "l": [1, 1], "w": draw(2, 4)}
    net = build(text, inputs, force=False)
    with pytest.raises(LayerError, match="the loss of region 1 is nan"):
        net.forward()
