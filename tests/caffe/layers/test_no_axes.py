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

Shape = tuple[int, ...]

READ_FILES_OR_CODE = {kind for kind in LAYERS if getattr(LAYERS[kind], "reads_files", False)} | {
    "HDF5Output", "MemoryData", "Python",
}  # fmt: skip
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
FILLER = "weight_filler { type: 'constant' value: 0.5 }"
AXES = (0, 1, -1)
WINDOWS = (
    f"convolution_param {{ num_output: 2 kernel_size: 1 {FILLER} }}",
    f"convolution_param {{ num_output: 2 kernel_size: 3 pad: 1 axis: 0 {FILLER} }}",
    f"convolution_param {{ num_output: 2 group: 2 kernel_size: 3 pad: 1 {FILLER} }}",
)
OPTIONS: dict[str, tuple[str, ...]] = {
    "Accuracy": tuple(f"accuracy_param {{ axis: {axis} }}" for axis in AXES),
    "ArgMax": ("", "argmax_param { axis: 0 }", "argmax_param { out_max_val: true }"),
    "BatchNorm": ("", "batch_norm_param { use_global_stats: true }"),
    "BN": ("bn_param { bn_mode: LEARN }", "bn_param { frozen: false }"),
    "BatchGather": tuple(f"batch_gather_param {{ axis: {axis} }}" for axis in AXES),
    "Bias": tuple(f"bias_param {{ axis: {a} num_axes: {n} }}" for a in AXES for n in AXES),
    "CenterLoss": (f"center_loss_param {{ num_output: 3 {FILLER.replace('weight', 'center')} }}",),
    "Clip": ("clip_param { min: -1 max: 1 }",),
    "Concat": tuple(f"concat_param {{ axis: {axis} }}" for axis in AXES),
    "Convolution": WINDOWS,
    "ContinuationIndicator": ("continuation_indicator_param { time_step: 2 batch_size: 1 }",),
    "Crop": tuple(f"crop_param {{ axis: {axis} }}" for axis in AXES),
    "Deconvolution": WINDOWS,
    "DepthwiseConvolution": WINDOWS,
    "DetectionOutput": ("detection_output_param { num_classes: 2 nms_param { top_k: 9 } }",),
    "DummyData": ("dummy_data_param { shape { } }", "dummy_data_param { shape { dim: 0 } }"),
    "CumSum": tuple(f"cum_sum_param {{ axis: {axis} }}" for axis in AXES),
    "Eltwise": tuple(f"eltwise_param {{ operation: {o} }}" for o in ("SUM", "PROD", "MAX")),
    "Embed": (f"embed_param {{ num_output: 2 input_dim: 3 {FILLER} }}",),
    "Flatten": tuple(f"flatten_param {{ axis: {axis} }}" for axis in AXES),
    "Gather": ("gather_param { axis: 0 index: 0 }", "gather_param { axis: -1 index: 1 index: 1 }"),
    "GRU": (f"recurrent_param {{ num_output: 2 {FILLER} }}",),
    "HingeLoss": ("", "hinge_loss_param { norm: L2 }"),
    "Im2col": WINDOWS,
    "InfogainLoss": tuple(f"infogain_loss_param {{ axis: {axis} }}" for axis in AXES),
    "InnerDistance": (f"inner_distance_param {{ num_output: 3 {FILLER} }}",),
    "InnerProduct": tuple(
        f"inner_product_param {{ num_output: 2 axis: {axis} transpose: {t} {FILLER} }}"
        for axis, t in product(AXES, ("true", "false"))
    ),
    "Input": ("input_param { shape { } }", "input_param { shape { dim: 0 } }"),
    "Interp": ("interp_param { zoom_factor: 2 }", "interp_param { height: 3 width: 3 }"),
    "LRN": ("", "lrn_param { norm_region: WITHIN_CHANNEL local_size: 3 }"),
    "LSTM": (f"recurrent_param {{ num_output: 2 {FILLER} }}",),
    "MarginInnerProduct": (f"margin_inner_product_param {{ num_output: 3 {FILLER} }}",),
    "MultiBoxLoss": ("multibox_loss_param { num_classes: 2 }",),
    "Math": ("math_param { function: ROUND }", "math_param { function: COS }"),
    "MVN": ("", "mvn_param { across_channels: true }"),
    "Normalize": ("", "norm_param { across_spatial: false channel_shared: false }"),
    "Parameter": ("parameter_param { shape { } }", "parameter_param { shape { dim: 0 } }"),
    "Permute": ("", "permute_param { order: 1 }", "permute_param { order: 0 order: 2 }"),
    "Pooling": tuple(
        f"pooling_param {{ {window} pool: {kind} }}"
        for window in ("kernel_size: 2 pad: 1", "global_pooling: true")
        for kind in ("MAX", "AVE")
    ),
    "PReLU": ("", "prelu_param { channel_shared: true }"),
    "PriorBoxClustered": ("prior_box_param { width: 4 height: 2 }",),
    "PriorBox": ("prior_box_param { min_size: 4 aspect_ratio: 2 }",),
    "Reduction": tuple(
        f"reduction_param {{ axis: {axis} operation: {kind} }}"
        for axis, kind in product(AXES, ("SUM", "ASUM", "SUMSQ", "MEAN"))
    ),
    "Resize": (
        "resize_image_param { height: 3 width: 3 }",
        "resize_image_param { scale_h: 0.5 scale_w: 2 mode: CUBIC }",
    ),
    "Reshape": ("reshape_param { shape { dim: -1 } }", "reshape_param { shape { } }"),
    "RNN": (f"recurrent_param {{ num_output: 2 {FILLER} }}",),
    "ROIPooling": ("roi_pooling_param { pooled_w: 2 pooled_h: 2 }",),
    "Scale": tuple(f"scale_param {{ axis: {a} num_axes: {n} }}" for a in AXES for n in AXES),
    "Slice": tuple(f"slice_param {{ axis: {axis} }}" for axis in AXES),
    "LogSoftmax": tuple(f"softmax_param {{ axis: {axis} }}" for axis in AXES),
    "SizedLike": (
        "sized_like_param { size { bottom: 0 } }",
        "sized_like_param { size { dim: 0 } size { dim: 2 } }",
        "sized_like_param { size { dim: -1 } reshape: true }",
    ),
    "Softmax": tuple(f"softmax_param {{ axis: {axis} }}" for axis in AXES),
    "SoftmaxWithLoss": tuple(f"softmax_param {{ axis: {axis} }}" for axis in AXES),
    "SPP": ("spp_param { pyramid_height: 1 }", "spp_param { pyramid_height: 2 pool: AVE }"),
    "Reverse": tuple(f"reverse_param {{ axis: {axis} }}" for axis in AXES),
    "Transpose": ("", "transpose_param { dim: 1 dim: 0 }"),
    "Tile": tuple(f"tile_param {{ axis: {axis} tiles: 3 }}" for axis in AXES),
    "Upsample": ("upsample_param { scale: 2 }", "upsample_param { upsample_h: 3 upsample_w: 3 }"),
}


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


@pytest.mark.parametrize("kind", sorted(set(LAYERS) - READ_FILES_OR_CODE))
def test_a_result_or_one_sentence(kind):
    layer = LAYERS[kind]
    ran, said = 0, list[str]()
    for count in {layer.bottoms.least, min(layer.bottoms.most or 99, layer.bottoms.least + 1)}:
        for shapes, options in product(bottoms(count), OPTIONS.get(kind, ("",))):
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
        options = f"num_output: 2 axis: {axis} {FILLER} bias_filler {{ type: 'constant' value: 3 }}"
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
