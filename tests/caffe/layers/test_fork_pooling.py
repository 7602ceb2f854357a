"""PSROIPooling, ROIAlign, Pooling3D, Convolution3D and the forks' ways to round sizes."""

import math

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw, same, set_params

REGIONS = np.array(
    [[0, 0, 0, 40, 40], [1, 8, 16, 25, 31], [1, 30, 30, 12, 9], [0, -30, 10, 200, 11.6]], np.float32
)


def psroi(x, regions, outputs, group, scale):
    """Bin (i, j) of output c is the mean over its pixels in channel (c group + i) group + j."""
    y = np.zeros((len(regions), outputs, group, group))
    for n, (image, x1, y1, x2, y2) in enumerate(regions):
        starts = [math.floor(v + 0.5) * scale for v in (y1, x1)]
        ends = [(math.floor(v + 0.5) + 1) * scale for v in (y2, x2)]
        for c, i, j in np.ndindex(*y.shape[1:]):
            spans = []
            for k, at, size in ((0, i, x.shape[2]), (1, j, x.shape[3])):
                each = max(ends[k] - starts[k], 0.1) / group
                low, high = (
                    math.floor(at * each + starts[k]),
                    math.ceil((at + 1) * each + starts[k]),
                )
                spans.append(slice(min(max(low, 0), size), min(max(high, 0), size)))
            part = x[int(image), (c * group + i) * group + j][tuple(spans)]
            y[n, c, i, j] = part.mean() if part.size else 0
    return y


def align(x, regions, size, scale, pad):
    """Every corner of the bins, by the four pixels round it."""
    y = np.zeros((len(regions), x.shape[1], size + 1, size + 1))
    for n, (image, x1, y1, x2, y2) in enumerate(regions):
        wide, high = (x2 - x1 + 1) * pad, (y2 - y1 + 1) * pad
        begin = [(y1 - high) * scale - 0.5, (x1 - wide) * scale - 0.5]
        end = [(y2 + high) * scale - 0.5, (x2 + wide) * scale - 0.5]
        if end[0] <= begin[0] or end[1] <= begin[1]:
            continue
        for i, j in np.ndindex(size + 1, size + 1):
            at = [b + k * (e - b) / size for b, e, k in zip(begin, end, (i, j), strict=True)]
            if any(a < -0.5 or a > s - 0.5 for a, s in zip(at, x.shape[2:], strict=True)):
                continue
            at = [min(max(a, 0), s - 1) for a, s in zip(at, x.shape[2:], strict=True)]
            for h, w in np.ndindex(*x.shape[2:]):
                near = max(0, 1 - abs(at[0] - h)) * max(0, 1 - abs(at[1] - w))
                y[n, :, i, j] += near * x[int(image), :, h, w]
    return y


PSROI = layer_text(
    "PSROIPooling",
    "psroi_pooling_param { spatial_scale: 0.125 output_dim: 2 group_size: 3 }",
    bottom="x r",
)
ALIGN = layer_text(
    "ROIAlign",
    "roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: 0.125 pad_ratio: 0.25 }",
    bottom="x r",
)


def test_psroi_pooling():
    inputs = {"x": draw(2, 18, 5, 6), "r": REGIONS}
    net = run(PSROI, inputs)
    same(net.blobs["y"].data, psroi(inputs["x"], REGIONS, 2, 3, 0.125), 1e-5, 1e-6)
    check_gradients(PSROI, {"x": draw(1, 18, 3, 3), "r": [[0, 0, 0, 20, 20]]}, of=["x"])


def test_roi_align():
    inputs = {"x": draw(2, 3, 5, 6), "r": REGIONS}
    net = run(ALIGN, inputs)
    same(net.blobs["y"].data, align(inputs["x"], REGIONS, 2, 0.125, 0.25), 1e-4, 1e-5)
    check_gradients(ALIGN, {"x": draw(1, 2, 4, 4), "r": [[0, 1, 2, 20, 25]]}, of=["x"])


@pytest.mark.parametrize("text", [PSROI, ALIGN])
def test_a_region_of_no_image(text):
    net = build(text, {"x": draw(1, 18, 5, 6), "r": [[1, 0, 0, 9, 9]]})
    with pytest.raises(LayerError, match="region 0 is of image 1: there are 1"):
        net.forward()


def test_roi_pooling_of_wider_regions():
    """A share of its size more on each side is the same region written wider."""
    options = "roi_pooling_param {{ pooled_h: 2 pooled_w: 3 spatial_scale: 0.5 pad_ratio: {} }}"
    x, one = draw(1, 2, 12, 12), [[0, 6, 8, 13, 15]]
    wide = [[0, 6 - 2, 8 - 2, 13 + 2, 15 + 2]]
    results = []
    for regions, pad in ((one, 0.25), (wide, 0)):
        net = run(layer_text("ROIPooling", options.format(pad), "x r"), {"x": x, "r": regions})
        results.append(np.array(net.blobs["y"].data))
    same(results[0], results[1], 0, 0)


def pooled3d(x, kernel, stride, pad, method):
    pads = (0, pad, pad)
    sizes = [
        -(-(s + 2 * p - k) // t) + 1
        for s, k, t, p in zip(x.shape[2:], kernel, stride, pads, strict=True)
    ]
    y = np.zeros((*x.shape[:2], *sizes))
    for at in np.ndindex(*sizes):
        spans, whole = [], 1
        for o, s, k, t, p in zip(at, x.shape[2:], kernel, stride, pads, strict=True):
            begin = o * t - p
            whole *= min(begin + k, s + p) - begin
            spans.append(slice(max(begin, 0), min(begin + k, s)))
        part = x[(slice(None), slice(None), *spans)].reshape(*x.shape[:2], -1)
        y[(slice(None), slice(None), *at)] = part.max(2) if method == "MAX" else part.sum(2) / whole
    return y


@pytest.mark.parametrize("method", ["MAX", "AVE"])
@pytest.mark.parametrize("field", ["pooling3d_param", "pooling_param"])
def test_pooling3d(method, field):
    options = (
        f"{field} {{ pool: {method} kernel_size: 3 kernel_depth: 2 stride: 2 temporal_stride: 2 "
        "pad: 1 }"
    )
    x, text = draw(1, 2, 3, 4, 5), layer_text("Pooling3D", options)
    net = run(text, {"x": x})
    same(net.blobs["y"].data, pooled3d(x, (2, 3, 3), (2, 2, 2), 1, method), 1e-5, 1e-6)
    spread = np.random.default_rng(0).permutation(x.size).reshape(x.shape) / 7
    check_gradients(text, {"x": spread})


@pytest.mark.parametrize(
    ("kind", "plain"), [("Convolution3D", "Convolution"), ("Deconvolution3D", "Deconvolution")]
)
@pytest.mark.parametrize("field", ["convolution3d_param", "convolution_param"])
def test_convolution3d_is_a_convolution_with_three_sizes(kind, plain, field):
    x = draw(1, 2, 4, 5, 6)
    options = (
        f"{field} {{ num_output: 3 kernel_size: 3 kernel_depth: 2 stride: 2 pad: 1 "
        'temporal_pad: 1 weight_filler { type: "gaussian" } }'
    )
    same_words = (
        "convolution_param { num_output: 3 kernel_size: [2, 3, 3] stride: [1, 2, 2] "
        "pad: [1, 1, 1] }"
    )
    ours = build(layer_text(kind, options), {"x": x})
    theirs = build(layer_text(plain, same_words), {"x": x})
    set_params(theirs, {"l": [blob.data for blob in ours.params["l"]]})
    ours.forward(), theirs.forward()
    same(ours.blobs["y"].data, theirs.blobs["y"].data, 0, 0)


def test_convolution_depthwise_has_a_group_for_each_channel():
    x = draw(2, 4, 5, 5)
    options = "convolution_param { num_output: 4 kernel_size: 3 pad: 1 }"
    net = build(layer_text("ConvolutionDepthwise", options), {"x": x})
    assert net.params["l"][0].data.shape == (4, 1, 3, 3)
    weights = draw(4, 1, 3, 3, seed=4)
    set_params(net, {"l": [weights, np.zeros(4)]})
    net.forward()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = sum(
        padded[:, :, i : i + 5, j : j + 5] * weights[None, :, 0, i, j, None, None]
        for i, j in np.ndindex(3, 3)
    )
    same(net.blobs["y"].data, want, 1e-4, 1e-5)


@pytest.mark.parametrize("words", ["hole: 2", "hole_h: 2 hole_w: 2", "dilation_h: 2 dilation_w: 2"])
def test_dilation_by_other_names(words):
    x, weights = draw(1, 2, 7, 7), draw(3, 2, 3, 3, seed=2)
    tops = []
    for option in (words, "dilation: 2"):
        text = layer_text(
            "Convolution", f"convolution_param {{ num_output: 3 kernel_size: 3 {option} }}"
        )
        net = build(text, {"x": x})
        set_params(net, {"l": [weights, np.zeros(3)]})
        net.forward()
        tops.append(np.array(net.blobs["y"].data))
    same(tops[0], tops[1], 0, 0)


def test_two_names_of_dilation():
    text = layer_text(
        "Convolution", "convolution_param { num_output: 3 kernel_size: 3 hole: 2 dilation: 2 }"
    )
    with pytest.raises(LayerError, match="dilation and hole mean the same: give one of them"):
        build(text, {"x": draw(1, 2, 7, 7)})


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("", 4),
        ("ceil_mode: true", 4),
        ("ceil_mode: false", 3),
        ("torch_pooling: true", 3),
        ("round_mode: FLOOR", 3),
    ],
)
def test_the_pooled_size_is_rounded_as_the_fork_says(words, size):
    text = layer_text("Pooling", f"pooling_param {{ kernel_size: 3 stride: 2 {words} }}")
    net = build(text, {"x": draw(1, 1, 8, 8)})
    assert net.blobs["y"].data.shape == (1, 1, size, size)


def test_rounding_that_contradicts_itself():
    text = layer_text(
        "Pooling", "pooling_param { kernel_size: 3 ceil_mode: true round_mode: FLOOR }"
    )
    with pytest.raises(LayerError, match="contradict each other"):
        build(text, {"x": draw(1, 1, 8, 8)})
