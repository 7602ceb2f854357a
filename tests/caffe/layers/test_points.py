"""Convolutions of single pixels in the test phase, and what may follow them: images of one pixel,
pixels of few channels, a line through all values; and windows over short rows of bfloat16."""

import pytest

from sparknet import caffe
from sparknet.native import has_bf16, onednn_isa
from tests.caffe.layers.test_mobile import planes
from tests.fuzz.kernels.case import Case, check, message
from tests.fuzz.kernels.sizes import text

FORWARD = {"phase": "TEST", "keep_blobs": False, "backward": False}
needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

SIZES = [
    # records, inputs, outputs, height, width
    (1, 960, 240, 1, 1),
    (8, 240, 960, 1, 1),
    (3, 672, 168, 1, 1),
    (17, 34, 33, 1, 1),
    (70, 66, 100, 1, 1),
    (1, 2, 7, 1, 1),
    (2, 16, 16, 57, 31),
    (1, 64, 24, 29, 13),
    (2, 128, 32, 9, 5),
    (1, 2, 1, 15, 14),
    (3, 72, 24, 14, 15),
    (2, 6, 17, 3, 3),
]
FUNCTIONS = {
    "none": "",
    "relu": 'type: "ReLU"',
    "above zero": 'type: "Clip" clip_param { min: 0.25 max: 1.5 }',
    "hard swish": 'type: "HardSwish"',
    "swish": 'type: "Swish" swish_param { beta: 1.7 }',
    "gelu": 'type: "GELU"',
}


def points(sizes: tuple[int, ...], function: str, summed: bool, bias: bool = True) -> Case:
    records, inputs, outputs, height, width = sizes
    options = f"num_output: {outputs} kernel_size: 1 bias_term: {str(bias).lower()}"
    layers = text("y", "Convolution", "x", "y", f"convolution_param {{ {options} }}")
    blob, shapes = "y", {"x": (records, inputs, height, width)}
    if summed:
        shapes["z"] = (records, outputs, height, width)
        layers += text("sum", "Eltwise", "y z", "s")
        blob = "s"
    if FUNCTIONS[function]:
        layers += f'layer {{ name: "f" {FUNCTIONS[function]} bottom: "{blob}" top: "{blob}" }} '
    return Case("chain", layers, shapes).but(**FORWARD)


def method(case: Case, name: str) -> str:
    """Which loops compute a layer."""
    net = caffe.Net.from_proto(
        message(case, {}), caffe.TEST, keep_blobs=False, precision=case.precision
    )
    net.forward()
    number = [node.name for node in net.graph.nodes].index(name)
    return str(net._runtime.engine.methods(number)["forward"])


@needs_bf16
@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_points_in_bfloat16(sizes, function, summed):
    case = points(sizes, function, summed, bias=function != "relu").but(precision="bf16")
    for threads in (1, 2):
        assert not check(case.but(threads=threads))
    assert "AMX" in onednn_isa() or method(case, "y").startswith("points: ")


@needs_bf16
@pytest.mark.parametrize("sizes", [(1, 21, 16, 1, 1), (2, 16, 64, 9, 9), (2, 256, 16, 9, 9)])
def test_other_points_stay_where_they_were(sizes):
    case = points(sizes, "swish", False).but(precision="bf16")
    assert not check(case)
    assert method(case, "y").startswith("oneDNN ")


@needs_bf16
@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("function", ["none", "relu", "hard swish", "swish"])
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 960, 7, 7, 5, 1, 2, 1),
        (1, 672, 14, 13, 5, 2, 2, 1),
        (2, 33, 9, 11, 3, 1, 1, 1),
        (3, 16, 5, 13, 3, 1, 1, 1),
        (1, 40, 20, 3, 3, 3, 0, 1),
        (1, 72, 12, 12, 3, 1, 2, 2),
        (1, 24, 6, 5, 5, 1, 4, 1),
        (3, 144, 1, 1, 5, 1, 2, 1),
    ],
    ids=str,
)
def test_windows_over_short_rows(sizes, function, summed):
    layers, inputs = planes(sizes, function, summed)
    case = Case("chain", layers, inputs, "bf16").but(**FORWARD)
    for threads in (1, 2):
        assert not check(case.but(threads=threads))


@pytest.mark.parametrize("options", ["power: 2 scale: 0.3", "scale: 0 shift: 2", "power: 0"])
def test_other_powers(options):
    """Which are no lines, or not through all values."""
    layers = text(
        "y", "Convolution", "x", "y", "convolution_param { num_output: 8 kernel_size: 1 }"
    )
    layers += text("line", "Power", "y", "line", f"power_param {{ {options} }}")
    layers += text("end", "Flatten", "line", "end")
    assert not check(Case("chain", layers, {"x": (2, 16, 5, 5)}).but(**FORWARD))


def test_a_line_takes_no_time_of_its_own():
    layers = text(
        "y", "Convolution", "x", "y", "convolution_param { num_output: 8 kernel_size: 1 }"
    )
    layers += text("line", "Power", "y", "line", "power_param { scale: 0.2 shift: 0.5 }")
    layers += (
        'layer { name: "f" type: "Clip" clip_param { min: 0 max: 1 } bottom: "line" top: "f" } '
    )
    case = Case("chain", layers, {"x": (2, 16, 5, 5)}).but(**FORWARD)
    net = caffe.Net.from_proto(message(case, {}), caffe.TEST, keep_blobs=False)
    net.time_layers(True)
    net.forward()
    assert list(net.layer_times()[0][2:]) == [0, 0]
