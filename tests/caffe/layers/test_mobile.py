"""What mobile nets are made of, in the test phase: a window for each channel with a function behind
it, and squeeze-and-excitation."""

import numpy as np
import pytest

from sparknet import caffe
from sparknet.native import has_bf16, onednn_isa
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.fuzz.kernels.case import Case, check, draw_params, message
from tests.fuzz.kernels.sizes import text

FORWARD = {"phase": "TEST", "keep_blobs": False, "backward": False}
needs_avx512 = pytest.mark.skipif("AVX-512" not in onednn_isa(), reason="no AVX-512")

PLANES = [
    # records, channels, height, width, side, stride, pad, dilation
    (1, 480, 14, 14, 5, 1, 2, 1),
    (2, 33, 7, 7, 3, 1, 1, 1),
    (1, 100, 29, 31, 7, 1, 3, 1),
    (2, 72, 57, 28, 3, 2, 1, 1),
    (1, 17, 15, 13, 5, 2, 2, 1),
    (1, 40, 20, 3, 3, 3, 0, 1),
    (1, 16, 40, 40, 3, 1, 4, 4),
    (3, 144, 1, 1, 5, 1, 2, 1),
]
FUNCTIONS = {
    "none": "",
    "relu": 'type: "ReLU"',
    "relu6": 'type: "ReLU6"',
    "above zero": 'type: "Clip" clip_param { min: 0.25 max: 1.5 }',
    "swish": 'type: "Swish" swish_param { beta: 1.7 }',
    "hard swish": 'type: "HardSwish"',
}


def planes(
    sizes: tuple[int, ...], function: str, summed: bool
) -> tuple[str, dict[str, tuple[int, ...]]]:
    records, channels, height, width, side, stride, pad, dilation = sizes
    options = f"kernel_size: {side} stride: {stride} pad: {pad} dilation: {dilation}"
    layers = text(
        "y",
        "Convolution",
        "x",
        "y",
        f"convolution_param {{ num_output: {channels} group: {channels} {options} }}",
    )
    blob, inputs = "y", {"x": (records, channels, height, width)}
    if summed:
        reach = dilation * (side - 1) + 1
        places = ((n + 2 * pad - reach) // stride + 1 for n in (height, width))
        inputs["z"] = (records, channels, *places)
        layers += text("sum", "Eltwise", "y z", "s")
        blob = "s"
    if FUNCTIONS[function]:
        layers += f'layer {{ name: "f" {FUNCTIONS[function]} bottom: "{blob}" top: "{blob}" }} '
    # Its reader finds what fills up the last block to be zero.
    reader = "convolution_param { num_output: 8 kernel_size: 1 }"
    return layers + text("last", "Convolution", blob, "last", reader), inputs


@needs_avx512
@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("sizes", PLANES, ids=str)
def test_a_window_for_each_channel(sizes, function, summed):
    layers, inputs = planes(sizes, function, summed)
    for threads in (1, 2):
        case = Case("chain", layers, inputs, threads=threads).but(**FORWARD)
        assert not check(case)
    net = caffe.Net.from_proto(message(case, {}), caffe.TEST, keep_blobs=False)
    net.time_layers(True)
    net.forward()
    names = [node.name for node in net.graph.nodes]
    methods = net._runtime.engine.methods(names.index("y"))
    assert methods["forward"].startswith("planes: ")
    times = net._runtime.times()[0]
    assert all(times[names.index(name)] == 0 for name in ("sum", "f") if name in names)


@pytest.mark.skipif(not has_bf16(), reason="no bfloat16")
@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [(2, 16, 13, 15, 3, 1, 1, 1), (1, 16, 9, 8, 5, 1, 2, 1), (1, 16, 40, 40, 3, 1, 4, 4)],
    ids=str,
)
def test_windows_of_sixteen_channels(sizes, summed):
    """In bfloat16 two neighbouring pixels lie in a vector."""
    layers, inputs = planes(sizes, "hard swish", summed)
    assert not check(Case("chain", layers, inputs, "bf16").but(**FORWARD))


@needs_avx512
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize(
    ("inputs", "ends"),
    [
        (3, ("swish", "swish")),
        (16, ("relu6", "none")),
        (40, ("above zero", "relu")),
        (112, ("swish", "swish")),
    ],
)
@pytest.mark.parametrize("sizes", PLANES, ids=str)
def test_points_before_them(sizes, inputs, ends, precision):
    if precision == "bf16" and not has_bf16():
        pytest.skip("no bfloat16")
    layers, shapes = planes(sizes, ends[1], False)
    records, channels, height, width = shapes["x"]
    front = text(
        "wide",
        "Convolution",
        "w",
        "x",
        f"convolution_param {{ num_output: {channels} kernel_size: 1 }}",
    )
    if FUNCTIONS[ends[0]]:
        front += f'layer {{ name: "f0" {FUNCTIONS[ends[0]]} bottom: "x" top: "x" }} '
    shape = {"w": (records, inputs, height, width)}
    case = Case("chain", front + layers, shape, precision).but(**FORWARD)
    for threads in (1, 2):
        assert not check(case.but(threads=threads))
    net = caffe.Net.from_proto(message(case, {}), caffe.TEST, keep_blobs=False, precision=precision)
    net.forward()
    number = [node.name for node in net.graph.nodes].index("wide")
    is_joined = net._runtime.engine.methods(number)["forward"].startswith("expanded: ")
    # In bfloat16 two channels are multiplied at once, and AMX has its own products.
    suits = inputs % 2 == 0 and sizes[4] < 7 and "AMX" not in onednn_isa()
    assert is_joined == (height * width >= 100 and (precision == "float32" or suits))


@needs_avx512
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize(("function", "summed"), [("relu", False), ("swish", True)])
@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize(
    ("records", "groups", "height", "columns", "side", "stride"),
    [(2, 13, 28, 28, 3, 1), (1, 55, 7, 7, 3, 1), (1, 6, 57, 30, 3, 2), (2, 26, 15, 13, 5, 2)],
)
def test_groups_of_few_channels(
    records, groups, height, columns, side, stride, width, function, summed, precision
):
    if precision == "bf16" and not has_bf16():
        pytest.skip("no bfloat16")
    channels = groups * width
    sizes = (records, channels, height, columns, side, stride, side // 2, 1)
    layers, inputs = planes(sizes, function, summed)
    layers = layers.replace(f"group: {channels}", f"group: {groups}")
    case = Case("chain", layers, inputs, precision).but(**FORWARD)
    for threads in (1, 2):
        assert not check(case.but(threads=threads))
    net = caffe.Net.from_proto(message(case, {}), caffe.TEST, keep_blobs=False, precision=precision)
    net.forward()
    number = [node.name for node in net.graph.nodes].index("y")
    assert net._runtime.engine.methods(number)["forward"].startswith("groups: ")


@needs_avx512
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_groups_of_large_images(precision):
    """Parts of an image that a cache holds, one plane after the other."""
    if precision == "bf16" and not has_bf16():
        pytest.skip("no bfloat16")
    layers, inputs = planes((1, 48, 112, 112, 3, 2, 1, 1), "relu", False)
    case = Case("chain", layers.replace("group: 48", "group: 6"), inputs, precision)
    for threads in (1, 2):
        assert not check(case.but(**FORWARD, threads=threads))


def test_the_mean_of_each_channel():
    """Behind channels that fill no vector, whose layout oneDNN had plain loops for."""
    for channels, size in ((48, 13), (21, 7), (104, 1), (7, 5), (300, 3)):
        front = f"convolution_param {{ num_output: {channels} kernel_size: 1 }}"
        mean = "pooling_param { pool: AVE global_pooling: true }"
        layers = text("y", "Convolution", "x", "y", front) + text("m", "Pooling", "y", "m", mean)
        shape = {"x": (2, 16, size, size + 1)}
        for precision in ("float32", *(["bf16"] if has_bf16() else [])):
            case = Case("pooling", layers, shape, precision).but(**FORWARD)
            assert not check(case), case


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize(
    "shape", [(3, 21, 5, 4), (2, 40, 7, 7), (1, 24, 3, 3), (2, 128, 9, 9)], ids=str
)
def test_a_factor_for_each_channel_of_each_record(shape, precision):
    """Its values and both gradients, in the layout that a convolution has made."""
    if precision == "bf16" and not has_bf16():
        pytest.skip("no bfloat16")
    front = f"convolution_param {{ num_output: {shape[1]} kernel_size: 1 }}"
    layers = (
        input_layer("x", (shape[0], 16, *shape[2:]))
        + input_layer("gate", shape[:2])
        + text("y", "Convolution", "x", "y", front)
        + text("s", "Scale", "y gate", "s", "scale_param { axis: 0 num_axes: 2 }")
    )
    message = parse_net("force_backward: true " + layers)
    net = caffe.Net.from_proto(message, caffe.TRAIN, seed=1, precision=precision)
    draw_params(net, 3)
    rng = np.random.default_rng(2)
    net.forward(
        **{name: rng.standard_normal(net.blobs[name].data.shape, np.float32) for name in net.inputs}
    )
    slopes = rng.standard_normal(shape, np.float32)
    net.blobs["s"].diff[...] = slopes
    net.backward()
    values, gate = (np.array(net.blobs[name].data, np.float64) for name in ("y", "gate"))
    factors = gate[:, :, None, None]
    near = {"rtol": 1e-5, "atol": 1e-5}
    if precision == "bf16":
        near = {"rtol": 2**-6, "atol": 0.05}
    np.testing.assert_allclose(net.blobs["s"].data, values * factors, **near)
    np.testing.assert_allclose(net.blobs["y"].diff, slopes * factors, **near)
    want = (slopes * values).sum((2, 3))
    near["atol"] *= 10
    np.testing.assert_allclose(net.blobs["gate"].diff, want, **near)
