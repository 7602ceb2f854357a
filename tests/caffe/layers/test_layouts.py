"""Layers between convolutions, whose data is in oneDNN's blocked layouts: same values, and the
same for any number of threads."""

import numpy as np
import pytest

from sparknet import native
from tests.caffe.gradient import biased, build
from tests.caffe.layers import test_activations, test_bn, test_normalization
from tests.caffe.layers.oracle import layer_text, same_in_any_number_of_threads, values
from tests.caffe.layers.passing import backward, draw, same


def conv(bottom: str, top: str, channels: int) -> str:
    return (
        f'layer {{ name: "{top}" type: "Convolution" bottom: "{bottom}" top: "{top}" '
        f"convolution_param {{ num_output: {channels} kernel_size: 3 pad: 1 "
        'weight_filler { type: "xavier" } } }\n'
    )


def net_with(middle: str, tops: int = 1, channels: tuple[int, ...] = (32, 32)) -> str:
    text = "".join(conv("x", f"a{i}", many) for i, many in enumerate(channels))
    text += middle
    return text + "".join(conv(f"m{i}", f"y{i}", 16) for i in range(tops))


def one(kind: str, options: str, bottoms: str = "a0", tops: int = 1) -> str:
    below = "".join(f'bottom: "{name}" ' for name in bottoms.split())
    above = "".join(f'top: "m{i}" ' for i in range(tops))
    return f'layer {{ name: "l" type: "{kind}" {below} {above} {options} }}\n'


LRN = [
    "local_size: 5 alpha: 0.5 beta: 0.75",
    "local_size: 3 alpha: 0.5 beta: 0.75 k: 2",
    "local_size: 5 alpha: 0.7 beta: 0.5",
    "local_size: 1 alpha: 0.2 beta: 0.75",
    "local_size: 99 alpha: 5 beta: 0.75",
    "local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL",
    "local_size: 5 alpha: 0.5 beta: 0.4 k: 9 norm_region: WITHIN_CHANNEL",
]
MVN = [
    "",
    "normalize_variance: false",
    "across_channels: true",
    "across_channels: true normalize_variance: false",
]
GEOMETRY = [
    "kernel_size: 2 stride: 2",
    "kernel_size: 3 stride: 2",
    "kernel_size: 3 stride: 2 pad: 1",
    "kernel_size: 3 pad: 2",
    "kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 0",
    "kernel_size: 3 stride: 2 round_mode: FLOOR",
]
SHARED = "channel_shared: true "
GLOBAL = "pooling_param { pool: AVE global_pooling: true }"
MAX = "operation: MAX"
UNIFORM = 'filler { type: "uniform" }'
ALONE = {
    **{
        name: (spec.split('"')[1], spec.split('"')[2])
        for name, (spec, *_) in test_activations.CASES.items()
    },
    **{f"PReLU {one}": ("PReLU", f"prelu_param {{ {one}{UNIFORM} }}") for one in ("", SHARED)},
    **{f"LRN {one}": ("LRN", f"lrn_param {{ {one} }}") for one in LRN},
    **{
        f"{method} {sizes}": ("Pooling", f"pooling_param {{ pool: {method} {sizes} }}")
        for method in ("MAX", "AVE")
        for sizes in GEOMETRY
    },
    **{
        f"{kind} {axis}": (kind, f"softmax_param {{ axis: {axis} }}")
        for kind in ("Softmax", "LogSoftmax")
        for axis in (1, 2)
    },
    "batch norm": ("BatchNorm", ""),
    "running statistics": ("BatchNorm", "batch_norm_param { use_global_stats: true eps: 1 }"),
    "scale": ("Scale", f"scale_param {{ bias_term: true {UNIFORM} }}"),
    "scale records": ("Scale", f"scale_param {{ bias_term: true axis: 0 num_axes: 2 {UNIFORM} }}"),
    "scale all": ("Scale", f"scale_param {{ bias_term: true num_axes: 0 {UNIFORM} }}"),
    "bias": ("Bias", f"bias_param {{ {UNIFORM} }}"),
    "bias of records": ("Bias", f"bias_param {{ axis: 0 num_axes: 2 {UNIFORM} }}"),
    "bias of all": ("Bias", f"bias_param {{ num_axes: 0 {UNIFORM} }}"),
}
"""Behind a convolution values lie in blocks of channels, padded where 20 are no multiple."""
CASES = {
    **{
        f"{name} of {channels}": net_with(one(*layer), channels=(channels,))
        for name, layer in ALONE.items()
        for channels in (3, 16, 20)
    },
    **{
        f"{options} of {channels}": net_with(
            one("Eltwise", f"eltwise_param {{ {options} }}", bottoms), channels=(channels, channels)
        )
        for options in ("operation: PROD", "stable_prod_grad: false operation: PROD", "", MAX)
        for channels, bottoms in ((16, "a0 a1"), (20, "a1 a0"), (8, "x a0"))
    },
    **{
        f"axpy of {channels}": net_with(
            one("Pooling", GLOBAL, "a2").replace('"l"', '"s"').replace('"m0"', '"s"')
            + one("Axpy", "", "s a0 a1"),
            channels=(channels, channels, channels),
        )
        for channels in (3, 16, 20)
    },
    "concat": net_with(one("Concat", "", "a0 a1")),
    "concat uneven": net_with(one("Concat", "", "a0 a1"), channels=(24, 5)),
    "concat three": net_with(one("Concat", "", "a0 a1 a2"), channels=(16, 64, 20)),
    "concat items": net_with(one("Concat", "concat_param { axis: 0 }", "a0 a1")),
    "concat rows": net_with(one("Concat", "concat_param { axis: 2 }", "a0 a1")),
    "concat with plain": net_with(one("Concat", "", "a0 x")),
    "slice": net_with(one("Slice", "", "a0", 2), 2),
    "slice uneven": net_with(one("Slice", "slice_param { slice_point: 5 }", "a0", 2), 2),
    "slice rows": net_with(one("Slice", "slice_param { axis: 3 slice_point: 4 }", "a0", 2), 2),
    "permute": net_with(one("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }")),
    "permute uneven": net_with(one("Permute", "permute_param { order: 3 order: 1 }"), 1, (13,)),
    "shuffle": net_with(one("ShuffleChannel", "shuffle_channel_param { group: 4 }")),
    "shuffle uneven": net_with(
        one("ShuffleChannel", "shuffle_channel_param { group: 3 }"), 1, (12,)
    ),
    "upsample": net_with(one("Upsample", "upsample_param { scale: 2 }")),
    "upsample uneven": net_with(one("Upsample", "upsample_param { scale: 3 }"), 1, (13,)),
    "interp": net_with(one("Interp", "interp_param { height: 9 width: 11 }")),
    "interp cropped": net_with(
        one("Interp", "interp_param { zoom_factor: 2 pad_beg: -1 pad_end: -2 }"), 1, (13,)
    ),
    "reshape": net_with(
        one("Reshape", "reshape_param { shape { dim: 0 dim: 16 dim: -1 dim: 7 } }")
    ),
    "crop": net_with(
        one("Crop", "crop_param { axis: 1 offset: 3 offset: 0 offset: 0 }", "a0 a1"), 1, (32, 16)
    ),
    "tile": net_with(one("Tile", "tile_param { tiles: 2 }")),
    "reduction": net_with(one("Reduction", "reduction_param { axis: 3 }")).split(
        'layer { name: "y0"'
    )[0],
}


@pytest.fixture(autouse=True)
def restore_threads():
    before = native.threads()
    yield
    native.set_threads(before)


def run(text):
    """Forward and backward; inner blobs, not looked at before, keep their layouts in between."""
    net = build(text, {"x": draw(2, 8, 8, 7)})
    rng = np.random.default_rng(0)
    for name, blobs in net.params.items():
        for blob in blobs:
            values = rng.standard_normal(blob.data.shape)
            blob.data[...] = np.abs(values) + 0.1 if name == "l" else values
    own = {f"own {i}": np.array(blob.data) for i, blob in enumerate(net.params.get("l", ()))}
    net.forward()
    backward(net)
    found = {f"data {name}": np.array(blob.data) for name, blob in net.blobs.items()}
    found |= {f"diff {name}": np.array(blob.diff) for name, blob in net.blobs.items()}
    for i, blob in enumerate(net.params.get("l", ())):
        found[f"learned {i}"] = np.array(blob.diff)
    return found | own


def plain(text, found):
    """The middle layer alone on plain blobs, given what the net gave it."""
    middle = next(line for line in text.splitlines() if 'name: "l"' in line) + "\n"
    bottoms = [part.split('"')[1] for part in middle.split("bottom: ")[1:]]
    bottoms = list(dict.fromkeys(bottoms))
    net = build(middle, {name: found[f"data {name}"] for name in bottoms})
    for i, blob in enumerate(net.params.get("l", ())):
        blob.data[...] = found[f"own {i}"]
    net.forward()
    for name in net.outputs:
        net.blobs[name].diff[...] = found[f"diff {name}"]
    net.clear_param_diffs()
    net.backward()
    want = {f"data {name}": np.array(net.blobs[name].data) for name in net.outputs}
    for name in bottoms:
        if name != "x":
            want[f"diff {name}"] = np.array(net.blobs[name].diff)
    for i, blob in enumerate(net.params.get("l", ())):
        want[f"learned {i}"] = np.array(blob.diff)
    return want


@pytest.mark.parametrize("case", CASES)
def test_blocked_equals_plain(case):
    """Values that only move are closer than sums in another order."""
    actual = run(CASES[case])
    for key, want in plain(CASES[case], actual).items():
        largest = np.nanmax(np.abs(want), initial=1, where=np.isfinite(want))
        near = (2e-4, 2e-5 * largest) if " of " in case else (1e-5, 1e-6)
        same(actual[key], want, *near)


@pytest.mark.parametrize("case", CASES)
def test_number_of_threads(case):
    """The layer itself computes the same bits; what convolutions give may differ in the last."""
    text = next(line for line in CASES[case].splitlines() if 'name: "l"' in line)
    actual = run(CASES[case])
    results = []
    for threads in (1, 2, 5):
        native.set_threads(threads)
        results.append(plain(text, actual))
    for other in results[1:]:
        for key, want in results[0].items():
            np.testing.assert_array_equal(other[key], want)


LARGE = (8, 16, 20, 20)
THREADS = [
    *((*layer, (1, 200_003)) for layer in list(ALONE.values())[: len(test_activations.CASES)]),
    ("PReLU", "", (9, 5, 60, 60)),
    ("BN", test_bn.PSPNET, (4, 8, 9, 9)),
    ("Im2col", "convolution_param { kernel_size: 3 pad: 1 }", (2, 16, 20, 20)),
    *(("LRN", f"lrn_param {{ {one} }}", (8, 16, 12, 12)) for one in LRN),
    *(("MVN", f"mvn_param {{ {one} }}", LARGE) for one in MVN),
    *(
        ("Normalize", f"norm_param {{ across_spatial: {a} channel_shared: {b} }}", LARGE)
        for a, b in test_normalization.NORMALIZE_OPTIONS
    ),
    # With stride beyond the kernel a window is empty: plain loops.
    *(
        ("Pooling", f"pooling_param {{ pool: {method} kernel_size: 2 stride: 3 }}", LARGE)
        for method in ("MAX", "AVE", "STOCHASTIC")
    ),
    *(
        ("SPP", f"spp_param {{ pyramid_height: 3 pool: {method} }}", LARGE)
        for method in ("MAX", "AVE")
    ),
    *(
        ("Scale", f"scale_param {{ bias_term: true {axes} }}", shape)
        for axes in ("", "num_axes: 0", "axis: 0 num_axes: -1")
        for shape in ((8, 24, 20, 20), (300, 700), (1, 1, 90000))
    ),
]


@pytest.mark.parametrize(("kind", "options", "shape"), THREADS)
def test_threads(kind, options, shape):
    x = np.abs(values(*shape)) if "STOCHASTIC" in options else np.sin(values(*shape)) + 1.1
    same_in_any_number_of_threads(layer_text(kind, options), {"x": x})


def test_threads_of_a_loss():
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(3, 7, 100, 90)), "t": rng.integers(0, 7, (3, 100, 90))}
    same_in_any_number_of_threads(layer_text("SoftmaxWithLoss", "", "x t"), inputs)


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_threads_in_sequences(kind):
    text = (
        f'layer {{ name: "l" type: "{kind}" bottom: "x" bottom: "cont" top: "y" '
        'recurrent_param { num_output: 70 weight_filler { type: "constant" value: 0.01 } } }'
    )
    results = []
    for threads in (1, 2, 5):
        native.set_threads(threads)
        net = build(text, {"x": draw(6, 20, 40), "cont": np.ones((6, 20))})
        net.forward()
        backward(net)
        results.append([np.array(net.blobs["y"].data), np.array(net.blobs["x"].diff)])
        results[-1] += [np.array(blob.diff) for blob in net.params["l"]]
    for other in results[1:]:
        for got, want in zip(other, results[0], strict=True):
            same(got, want, 1e-4, 1e-5)


def test_threads_change_between_the_passes():
    """What the forward pass found is still there when the engine has made its primitives anew."""
    texts = {
        'layer { name: "l" type: "BatchReindex" bottom: "xb" bottom: "i" top: "y" '
        "loss_weight: 1 }": [1, 0, 2],
        'layer { name: "l" type: "Filter" bottom: "xb" bottom: "i" top: "y" loss_weight: 1 }': [
            0,
            1,
            1,
        ],
    }
    for text, numbers in texts.items():
        diffs = []
        for after in (1, 2):
            native.set_threads(1)
            net = build(biased("x") + text, {"x": draw(3, 4), "i": np.array(numbers)}, force=False)
            net.forward()
            native.set_threads(after)
            backward(net)
            diffs.append(np.array(net.blobs["xb"].diff))
            assert diffs[-1].any()
        np.testing.assert_array_equal(diffs[0], diffs[1])
