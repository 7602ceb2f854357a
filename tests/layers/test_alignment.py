"""Crop without an offset: at 0, as in BVLC's Caffe, or aligned, as in HED's."""

import warnings
from collections.abc import Callable

import pytest

from sparknet.errors import LayerError
from sparknet.graph import Graph, build
from sparknet.layers import TEST
from sparknet.proto import ForkWarning, parse_net

Step = tuple[str, str, int, int, int]
"""Type, bottom, kernel, stride, pad."""


def window(name: str, step: Step) -> str:
    type_, bottom, kernel, stride, pad = step
    options = f"kernel_size: {kernel} stride: {stride} pad: {pad}"
    field = "pooling_param" if type_ == "Pooling" else "convolution_param"
    options += "" if type_ == "Pooling" else " num_output: 1"
    return (
        f'layer {{ name: "{name}" type: "{type_}" bottom: "{bottom}" top: "{name}" '
        f"{field} {{ {options} }} }} "
        f'layer {{ name: "{name}r" type: "ReLU" bottom: "{name}" top: "{name}" }} '
    )


def net(steps: dict[str, Step], crop: str = "", size: int = 64, last: str = "") -> str:
    whole = last or list(steps)[-1]
    return (
        'layer { name: "i" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 '
        f"dim: {size} dim: {size} }} }} }} "
        + "".join(window(name, step) for name, step in steps.items())
        + f'layer {{ name: "crop" type: "Crop" bottom: "{whole}" bottom: "data" top: "cut" '
        f"{crop} }}"
    )


def centre(steps: dict[str, Step], blob: str) -> Callable[[float], float]:
    """Where the middle of a blob's pixel lies in the data: layer by layer, pixel by pixel."""
    if blob == "data":
        return float
    type_, bottom, kernel, stride, pad = steps[blob]
    below = centre(steps, bottom)
    if type_ == "Deconvolution":
        return lambda at: below((at + pad - (kernel - 1) / 2) / stride)
    return lambda at: below(at * stride - pad + (kernel - 1) / 2)


def offset(graph: Graph) -> tuple[int, ...]:
    found: tuple[int, ...] = graph.node("crop").plan.values["offset"][2:]
    return found


HED: dict[str, Step] = {
    "conv1_1": ("Convolution", "data", 3, 1, 35),
    "conv1_2": ("Convolution", "conv1_1", 3, 1, 1),
    "pool1": ("Pooling", "conv1_2", 2, 2, 0),
    "conv2": ("Convolution", "pool1", 3, 1, 1),
    "pool2": ("Pooling", "conv2", 2, 2, 0),
    "conv3": ("Convolution", "pool2", 3, 1, 1),
    "up2": ("Deconvolution", "conv2", 4, 2, 0),
    "up3": ("Deconvolution", "conv3", 8, 4, 0),
}


@pytest.mark.parametrize(
    ("steps", "last", "known"),
    [
        (HED, "conv1_2", 34),
        (HED, "up2", 35),
        (HED, "up3", 36),
        ({"c": ("Convolution", "data", 1, 1, 7)}, "c", 7),
        ({"c": ("Convolution", "data", 3, 1, 1)}, "c", 0),
        ({"c": ("Convolution", "data", 6, 2, 9), "u": ("Deconvolution", "c", 4, 2, 1)}, "u", 7),
    ],
)
def test_the_path_gives_the_offset(steps, last, known):
    where = centre(steps, last)
    first = [at for at in range(100) if where(at) == 0]
    assert first == [known]
    text = net(steps, last=last)
    assert offset(build(parse_net(text, dialect="hed"), TEST)) == (known, known)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert offset(build(parse_net(text), TEST)) == (0, 0)
    said = [str(one.message) for one in caught if one.category is ForkWarning]
    assert len(said) == bool(known)
    if known:
        assert "layer 'crop' (Crop) has no offset and cuts at 0" in said[0]
        assert f'at {known}: dialect="hed"' in said[0]


def test_rows_and_columns_of_their_own():
    text = net({"c": ("Convolution", "data", 1, 1, 0)}).replace("pad: 0", "pad_h: 3 pad_w: 5")
    assert offset(build(parse_net(text, dialect="hed"), TEST)) == (3, 5)


def test_a_crop_on_the_path():
    """What an aligned crop has cut off counts for the next one."""
    text = net({"c": ("Convolution", "data", 1, 1, 7)}) + (
        'layer { name: "wide" type: "Convolution" bottom: "cut" top: "wide" convolution_param '
        "{ num_output: 1 kernel_size: 3 pad: 4 dilation: 2 } } "
        'layer { name: "again" type: "Crop" bottom: "wide" bottom: "c" top: "y" '
        "crop_param { offset: 0 } } "
        'layer { name: "third" type: "Crop" bottom: "wide" bottom: "cut" top: "z" }'
    )
    text = text.replace('bottom: "c" top: "y" crop_param', 'bottom: "data" top: "y" crop_param')
    graph = build(parse_net(text, dialect="hed"), TEST)
    assert offset(graph) == (7, 7)
    assert graph.node("again").plan.values["offset"][2:] == (0, 0)
    assert graph.node("third").plan.values["offset"][2:] == (2, 2)


def test_a_crop_of_the_file_on_the_path():
    """A pixel of `cut` lies 7 - 3 rows and 7 - 4 columns before data's, one of `small` 4 behind."""
    text = net({"c": ("Convolution", "data", 1, 1, 7)}, "crop_param { offset: 3 offset: 4 }") + (
        'layer { name: "small" type: "Convolution" bottom: "data" top: "small" '
        "convolution_param { num_output: 1 kernel_size: 9 } } "
        'layer { name: "last" type: "Crop" bottom: "cut" bottom: "small" top: "y" }'
    )
    graph = build(parse_net(text, dialect="hed"), TEST)
    assert graph.node("last").plan.values["offset"][2:] == (8, 7)
    of_other_axes = text.replace("crop_param { offset: 3", "crop_param { axis: 3 offset: 3")
    of_other_axes = of_other_axes.replace("offset: 3 offset: 4", "offset: 4")
    with pytest.raises(LayerError, match="'crop' on its path crops other axes"):
        build(parse_net(of_other_axes, dialect="hed"), TEST)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"c": ("Pooling", "data", 2, 2, 0)}, "one bottom's pixels are 2 of the other's"),
        ({"c": ("Convolution", "data", 5, 1, 0)}, "the offset would be -2"),
        ({"c": ("Convolution", "data", 2, 1, 2)}, "the offset would be 1.5"),
    ],
)
def test_what_cannot_be_aligned(steps, message):
    with pytest.raises(LayerError, match=f"layer 'crop': Crop: cannot be aligned: {message}"):
        build(parse_net(net(steps), dialect="hed"), TEST)


def test_a_layer_without_coordinates_on_the_path():
    text = net({"c": ("Convolution", "data", 1, 1, 7)})
    broken = text.replace(
        'layer { name: "crop"',
        'layer { name: "f" type: "Reshape" bottom: "c" top: "f" reshape_param { shape '
        '{ dim: 0 dim: 0 dim: 0 dim: -1 } } } layer { name: "crop"',
    ).replace('type: "Crop" bottom: "c"', 'type: "Crop" bottom: "f"')
    with pytest.raises(LayerError, match=r"'f' \(Reshape\) on its path has no coordinates"):
        build(parse_net(broken, dialect="hed"), TEST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert offset(build(parse_net(broken), TEST)) == (0, 0)


def test_what_the_file_says_counts():
    text = net({"c": ("Convolution", "data", 1, 1, 7)}, "crop_param { offset: 2 }")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert offset(build(parse_net(text, dialect="hed"), TEST)) == (2, 2)
        assert offset(build(parse_net(text), TEST)) == (2, 2)


def test_huge_strides_are_no_work():
    chain = {"c0": ("Convolution", "data", 1, 1, 1)}
    for n in range(1, 200):
        chain[f"c{n}"] = ("Deconvolution", f"c{n - 1}", 1, 2**31 - 1, 0)
    with pytest.raises(LayerError):
        build(parse_net(net(chain), dialect="hed"), TEST)
