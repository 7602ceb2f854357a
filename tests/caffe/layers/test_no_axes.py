"""Blobs without axes and blobs without values: every layer type gives a result or one sentence."""

import random
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from sparknet.errors import SparkNetError
from sparknet.layers import LAYERS
from tests.caffe.gradient import build, run
from tests.caffe.layers.oracle import layer_text, passes, values
from tests.fuzz.layer_cases import CASES

Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = (
    (), (0,), (1,), (3,), (2, 0), (0, 3), (2, 3), (2, 0, 3), (2, 3, 4, 4), (0, 2, 4, 4),
    (2, 0, 4, 4), (2, 2, 0, 4), (2, 2, 4, 0), (1, 1, 1, 1), (2, 2, 2, 2, 0),
    (2,) + (1,) * 12 + (0,),
)  # fmt: skip
WANT_AXES = {
    "BoxAnnotatorOHEM", "BoxGroupOutput", "BoxOutput", "Convolution3D",
    "ConvolutionDepthwise", "CtcLoss", "DecodeBBox", "Deconvolution3D", "DenseCRF",
    "DetectionEvaluate", "DetectionOutput",
    "FrcnnOutput", "GRU", "LSTM", "LSTMUnit", "MultiBoxLoss",
    "MultiStageMeanfield", "Pooling3D", "Proposal", "PSROIPooling",
    "Reorg", "ROIAlign", "ROIPooling", "ScaleRoute", "YoloDetectionOutput",
    "Yolov3DetectionOutput",
    "GridSample", "TrueBoxes",
}  # fmt: skip
"""Types for which none of these blobs has the axes that they need."""
AXIS = {
    "Accuracy": "accuracy",
    "BatchGather": "batch_gather",
    "Bias": "bias",
    "Concat": "concat",
    "Crop": "crop",
    "CumSum": "cum_sum",
    "Flatten": "flatten",
    "InfogainLoss": "infogain_loss",
    "Reduction": "reduction",
    "Reverse": "reverse",
    "Scale": "scale",
    "Slice": "slice",
    **dict.fromkeys(("LogSoftmax", "Softmax", "SoftmaxWithLoss"), "softmax"),
}
"""Types that have an axis, and their options' name."""


def options_of(kind: str) -> list[str]:
    """Those of the fuzzers' cases, and some axes."""
    axes = (0, 1, -1) if kind in AXIS else ()
    found = [case.options for case in CASES[kind]]
    return [*found, *(f"{AXIS[kind]}_param {{ axis: {axis} }}" for axis in axes)]


def arrays(shapes):
    counts = (np.arange(np.prod(shape, dtype=int)) % 2 for shape in shapes)
    return {
        f"x{n}": count.astype(np.float32).reshape(shape)
        for n, (count, shape) in enumerate(zip(counts, shapes, strict=True))
    }


def bottoms(count: int) -> Iterator[tuple[Shape, ...]]:
    """All for one bottom; for more a choice, the same shape for each among it."""
    yield from ((shape,) * count for shape in SHAPES)
    if count > 1:
        rng = random.Random(count)
        yield from (tuple(rng.choice(SHAPES) for _ in range(count)) for _ in range(60))


@pytest.mark.parametrize("kind", sorted(CASES))
def test_a_result_or_one_sentence(kind):
    layer = LAYERS[kind]
    ran, said = 0, list[str]()
    for count in {layer.bottoms.least, min(layer.bottoms.most or 99, layer.bottoms.least + 1)}:
        for shapes, options in product(bottoms(count), options_of(kind)):
            bottom = " ".join(f"x{number}" for number in range(count))
            top = " ".join(f"y{number}" for number in range(layer.tops.least))
            try:
                net = run(layer_text(kind, options, bottom, top), arrays(shapes))
                ran += 1
                blobs = [np.array(net.blobs[name].data) for name in top.split()]
                # The logarithm of 0, and what 0 divides, are what numpy says they are.
                assert kind in ("Log", "Div") or all(np.isfinite(blob).all() for blob in blobs)
                net.backward()
            except SparkNetError as error:
                said.append(str(error))
    assert all("layer 'l': " in message and "\n" not in message for message in said)
    assert ran or kind in WANT_AXES


@pytest.mark.parametrize(
    "kind", ["AbsVal", "BNLL", "ELU", "Exp", "Log", "Permute", "Power", "ReLU", "ReLU6", "Sigmoid",
             "Split", "Swish", "TanH", "Threshold"],
)  # fmt: skip
def test_a_scalar_is_worth_what_a_vector_of_one_is(kind):
    for value in (-1.5, 0.25, 2.0):
        scalar = np.array(value, np.float32)
        if kind == "Log":
            scalar = abs(scalar)
        results = []
        for x in (scalar, scalar.reshape(1)):
            net = run(layer_text(kind), {"x": x})
            net.blobs["y"].diff[...] = 3
            if kind != "Threshold":
                net.backward()
            results.append((net.blobs["y"].data, net.blobs["x"].diff))
        (y, dx), (y1, dx1) = results
        assert (y.shape, dx.shape, y1.shape) == ((), (), (1,))
        assert (float(y), float(dx)) == (float(y1[0]), float(dx1[0]))


@pytest.mark.parametrize("before", ["Reduction", "EuclideanLoss"])
def test_permute_behind_what_leaves_no_axes(before):
    x = values(2, 3)
    first = layer_text(before, "", "x z" if before == "EuclideanLoss" else "x", "s")
    inputs = {"x": x, "z": x[::-1].copy()} if before == "EuclideanLoss" else {"x": x}
    text = first.replace('"l"', '"first"') + layer_text("Permute", bottom="s")
    y, dy, net = passes(text, inputs)
    want = ((x - inputs["z"]) ** 2).sum() / 4 if "z" in inputs else x.sum()
    np.testing.assert_allclose(y, want, rtol=1e-5)
    slope = (x - inputs["z"]) / 2 if "z" in inputs else np.ones_like(x)
    np.testing.assert_allclose(net.blobs["x"].diff, dy * slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (2, 0, 3), (2, 3, 0, 4)])
def test_sums_and_products_of_nothing(shape):
    x = np.zeros(shape, np.float32)
    for axis in range(len(shape)):
        y = passes(layer_text("Reduction", f"reduction_param {{ axis: {axis} }}"), {"x": x})[0]
        np.testing.assert_array_equal(y, x.sum(tuple(range(axis, len(shape)))))
        options = f"num_output: 2 axis: {axis} bias_filler {{ type: 'constant' value: 3 }}"
        text = layer_text("InnerProduct", f"inner_product_param {{ {options} }}")
        y, dy, net = passes(text, {"x": x})
        np.testing.assert_array_equal(y, np.full((*shape[:axis], 2), 3))
        want = dy.reshape(-1, 2).sum(0)
        np.testing.assert_allclose(net.params["l"][1].diff, want, rtol=1e-5)
        y = passes(
            layer_text("Concat", f"concat_param {{ axis: {axis} }}", "x z"), {"x": x, "z": x}
        )
        assert y[0].shape == np.concatenate([x, x], axis).shape
        order = [axis, *(other for other in range(len(shape)) if other != axis)]
        y = passes(layer_text("Permute", f"permute_param {{ order: {axis} }}"), {"x": x})[0]
        assert y.shape == x.transpose(order).shape


def test_prior_boxes_of_an_empty_image():
    text = layer_text("PriorBox", "prior_box_param { min_size: 4 }", "x z")
    for shape in ((1, 3, 0, 4), (1, 3, 4, 0)):
        with pytest.raises(SparkNetError, match="layer 'l': PriorBox: the image is empty"):
            build(text, {"x": values(1, 2, 2, 2), "z": np.zeros(shape, np.float32)})
