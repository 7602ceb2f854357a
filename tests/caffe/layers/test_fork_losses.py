"""The losses of R-FCN and NVIDIA, BoxAnnotatorOHEM, class weights and fixed divisors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import biased, check_gradients
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import build, draw, same


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


LABELS = np.array([2, 0, 3, 1, 0, 0], np.float32)


@pytest.mark.parametrize("kind", ["SoftmaxWithLoss", "SoftmaxWithLossOHEM"])
@pytest.mark.parametrize(
    ("options", "divisor"), [("", 5), ("normalization: PRE_FIXED pre_fixed_normalizer: 7", 7)]
)
def test_softmax_losses(kind: str, options: str, divisor: float) -> None:
    x = draw(6, 4)
    tops = "loss p each" if kind.endswith("OHEM") else "loss p"
    text = layer_text(kind, f"loss_param {{ ignore_label: 3 {options} }}", "x l", tops)
    net = build(text, {"x": x, "l": LABELS}, force=False)
    net.forward()
    used, places = LABELS != 3, np.arange(6)
    each = np.where(used, -np.log(softmax(x)[places, LABELS.astype(int)]), 0)
    same(net.blobs["loss"].data, np.float32(each.sum() / divisor), 1e-5)
    if kind.endswith("OHEM"):
        same(net.blobs["each"].data, each, 1e-4, 1e-5)
    one = layer_text(kind, f"loss_param {{ ignore_label: 3 {options} }}", "xb l", "loss")
    check_gradients(biased("x") + one, {"x": x, "l": LABELS}, of=[], force=False, tolerance=2e-2)


def test_class_weights() -> None:
    x, labels = draw(2, 3, 2, 2), np.array([0, 1, 2, 1, 0, 2, 2, 1], np.float32).reshape(2, 1, 2, 2)
    options = (
        "loss_param { weight_by_label_freqs: true "
        "class_weighting: 0.5 class_weighting: 2 class_weighting: 1.25 }"
    )
    net = build(layer_text("SoftmaxWithLoss", options, "x l"), {"x": x, "l": labels}, force=False)
    net.forward()
    flat = labels.astype(int).reshape(2, 2, 2)
    chosen = np.take_along_axis(softmax(x), flat[:, None], 1)[:, 0]
    want = -(np.log(chosen) * np.array([0.5, 2, 1.25])[flat]).mean()
    same(net.blobs["y"].data, np.float32(want), 1e-5)
    text = biased("x") + layer_text("SoftmaxWithLoss", options, "xb l")
    check_gradients(text, {"x": x, "l": labels}, of=[], force=False)


def test_a_weight_for_each_class() -> None:
    options = "loss_param { weight_by_label_freqs: true class_weighting: 1 }"
    with pytest.raises(LayerError, match="needs a class_weighting for each of the 4 classes"):
        build(layer_text("SoftmaxWithLoss", options, "x l"), {"x": draw(6, 4), "l": LABELS})


def test_smooth_l1_of_each_region() -> None:
    a, b = draw(3, 4, 1, 1) * 2, draw(3, 4, 1, 1, seed=1)
    w = np.array([1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1], np.float32).reshape(a.shape)
    options = "loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 8 }"
    text = layer_text("SmoothL1LossOHEM", options, "a b w", "loss each")
    net = build(text, {"a": a, "b": b, "w": w})
    net.forward()
    size = np.abs(w * (a - b))
    each = np.where(size < 1, size**2 / 2, size - 0.5).sum(1, keepdims=True)
    same(net.blobs["each"].data, each, 1e-5, 1e-6)
    same(net.blobs["loss"].data, np.float32(each.sum() / 8), 1e-5)
    text = layer_text("SmoothL1LossOHEM", options, "a b w", "loss")
    check_gradients(text, {"a": a, "b": b, "w": w}, of=["a", "b"], kinks=())


def test_smooth_l1_of_each_place() -> None:
    a, b, inside, outside = (draw(3, 4, 1, 2, seed=seed) for seed in range(4))
    inputs = {"a": a, "b": b, "i": inside, "o": outside}
    net = build(layer_text("SmoothL1Loss", "", "a b i o", "loss each"), inputs)
    net.forward()
    size = np.abs(inside * (a - b))
    each = (outside * np.where(size < 1, size**2 / 2, size - 0.5)).sum(1, keepdims=True)
    same(net.blobs["each"].data, each, 1e-5, 1e-6)
    same(net.blobs["loss"].data, np.float32(each.sum() / 3), 1e-5)


def test_l1() -> None:
    a, b = draw(3, 4), draw(3, 4, seed=1)
    net = build(layer_text("L1Loss", "", "a b"), {"a": a, "b": b})
    net.forward()
    same(net.blobs["y"].data, np.float32(np.abs(a - b).sum() / 3), 1e-5)
    check_gradients(layer_text("L1Loss", "", "a b"), {"a": a + 5 * np.sign(a - b), "b": b})


def test_the_regions_with_the_largest_losses() -> None:
    rng = np.random.default_rng(4)
    regions = np.zeros((8, 5), np.float32)
    regions[:, 0] = [0, 0, 0, 0, 1, 1, 1, 1]
    losses = rng.permutation(8).astype(np.float32)
    labels, weights = rng.integers(1, 9, 8).astype(np.float32), draw(8, 12)
    options = "box_annotator_ohem_param { roi_per_img: 2 ignore_label: -1 }"
    text = layer_text("BoxAnnotatorOHEM", options, "r s l w", "kept inside")
    inputs = {"r": regions, "s": losses, "l": labels, "w": weights}
    net = build(text, inputs, force=False)
    net.forward()
    taken = {
        i for part in (range(4), range(4, 8)) for i in sorted(part, key=lambda i: -losses[i])[:2]
    }
    mask = np.array([i in taken for i in range(8)])
    same(net.blobs["kept"].data.ravel(), np.where(mask, labels, -1))
    same(net.blobs["inside"].data.reshape(8, 12), weights * mask[:, None])


def test_losses_that_are_no_numbers() -> None:
    options = "box_annotator_ohem_param { roi_per_img: 2 }"
    text = layer_text("BoxAnnotatorOHEM", options, "r s l w", "kept inside")
    inputs = {"r": np.zeros((2, 5)), "s": [0, float("nan")], "l": [1, 1], "w": draw(2, 4)}
    net = build(text, inputs, force=False)
    with pytest.raises(LayerError, match="the loss of region 1 is nan"):
        net.forward()
