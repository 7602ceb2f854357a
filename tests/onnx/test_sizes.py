"""Symbolic sizes: their arithmetic, and models that leave heights, widths and more lengths open."""

import operator
import random
from math import floor

import numpy as np
import pytest

import sparknet
from sparknet.errors import FileError
from sparknet.onnx.sizes import Size, evaluate, is_same, symbols
from tests.onnx.graphs import TOLERANCE, draw, graph, node, onnx, run, save

N, L, H = Size.open("N", 29), Size.open("L", 31), Size.open("H", 928)
OPERATIONS = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)


@pytest.mark.parametrize("seed", range(4))
def test_drawn_expressions(seed):
    """Each is what Python computes for other sizes."""
    draws = random.Random(seed)
    for _ in range(500):
        values = {"N": draws.randint(1, 40), "L": draws.randint(1, 60), "H": draws.randint(1, 300)}
        size: int = draws.choice([N, L, H])
        want = evaluate(size, values)
        for _ in range(4):
            other, operation = draws.choice([N, L, H, 2, 3, 1, 5]), draws.choice(OPERATIONS)
            size, want = operation(size, other), operation(want, evaluate(other, values))
        assert evaluate(size, values) == want


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (N * L * 64 // (L * 64), N),
        (N * (L + 1) * 64 // (L + 1), 64 * N),
        ((H + 2 - 3) // 2 + 1, (H + 1) // 2),
        (((H - 1) // 2 + 1 - 1) // 2 + 1, (H + 3) // 4),
        (-(-H // 4), (H + 3) // 4),
        (floor(H * 0.5), H // 2),
        (floor(H * 2.0), 2 * H),
        (L - L, 0),
        (2 * H % 2, 0),
    ],
)
def test_forms_of_one_size(one, other):
    assert is_same(one, other)
    assert str(one) == str(other)


def test_sizes_that_are_equal_for_some_open_sizes():
    assert H // 2 * 2 == H
    assert not is_same(H // 2 * 2, H)
    assert symbols(N * (H // 2)) == {"N", "H"}


def agree(nodes, inputs, folder, shapes, **constants):
    path = save(graph(nodes, inputs, constants=constants), folder)
    net = sparknet.Net(path)
    for shape in shapes:
        feeds = {name: draw(*shape) for name in inputs}
        want = run(path, feeds)["y"]
        got = net.forward(feeds, outputs=["y"])["y"]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=TOLERANCE * max(1e-6, np.abs(want).max()))
    return net


IMAGE = {"x": ["n", 3, "h", "w"]}
NEAREST = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}
MANY = ((1, 3, 16, 24), (2, 3, 17, 33), (3, 3, 40, 18))
SMALLER = node("Conv", "x w", "a", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
LAST = [
    node("Shape", "a", "shape"),
    node("Gather", "shape two", "h"),
    node("Gather", "shape three", "v"),
]
GRID = [
    SMALLER,
    *LAST,
    node("Cast", "v", "f", to=1),
    node("Range", "zero f one", "across"),
    node("Range", "zero_ h one_", "down"),
    node("Cast", "down", "down_f", to=1),
    node("Reshape", "across row", "across2"),
    node("Reshape", "down_f column", "down2"),
    node("Unsqueeze", "h first", "h1"),
    node("Unsqueeze", "v first", "v1"),
    node("Concat", "h1 v1", "area", axis=0),
    node("Expand", "across2 area", "xs"),
    node("ConstantOfShape", "area", "eights", value=onnx.helper.make_tensor("v", 1, [1], [8])),
    node("Add", "xs down2", "sum"),
    node("Mul", "sum eights", "places"),
    node("Reshape", "places flat", "line"),
    node("Reshape", "a lines", "l"),
    node("Add", "l line"),
]
CONSTANTS = {
    "w": draw(4, 3, 3, 3),
    "zero": np.float32(0),
    "one": np.float32(1),
    "zero_": np.array(0),
    "one_": np.array(1),
    "two": np.array(2),
    "three": np.array(3),
    "first": np.array([0]),
    "row": np.array([1, -1]),
    "column": np.array([-1, 1]),
    "flat": np.array([1, 1, -1]),
    "lines": np.array([0, 4, -1]),
    "twice": np.array([1, 1, 2, 2], np.float32),
}
TO_THE_IMAGE = [
    SMALLER,
    node("Shape", "x", "whole"),
    node("Slice", "whole two1 four first", "area"),
    node("Shape", "a", "shape"),
    node("Slice", "shape first two1 first", "lead"),
    node("Concat", "lead area", "to", axis=0),
]
MODELS = {
    "places of a grid": GRID,
    "maxima": [node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])],
    "maxima rounded up": [node("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)],
    "maxima of the same size": [
        node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
    ],
    "a mean": [SMALLER, node("GlobalAveragePool", "a")],
    "twice as large": [SMALLER, node("Resize", "a - twice", **NEAREST)],
    "smoothly twice as large": [SMALLER, node("Resize", "a - twice", mode="linear")],
    "as large as the image": [
        *TO_THE_IMAGE,
        node("Resize", "a - - to", "b", **NEAREST),
        node("Conv", "b w1"),
    ],
    "smoothly as large as the image": [
        *TO_THE_IMAGE,
        node("Resize", "a - - to", "b", mode="linear"),
        node("Concat", "b x", axis=1),
    ],
    "tokens": [
        node("Conv", "x w8", "a", kernel_shape=[8, 8], strides=[8, 8]),
        node("Reshape", "a lines", "l"),
        node("Transpose", "l", "t", perm=[0, 2, 1]),
        node("MatMul", "t l", "s"),
        node("Softmax", "s", "p", axis=-1),
        node("MatMul", "p t"),
    ],
}


@pytest.mark.parametrize("model", MODELS)
def test_images_of_any_size(model, tmp_path):
    more = {
        "two1": np.array([2]),
        "four": np.array([4]),
        "w1": draw(2, 4, 1, 1),
        "w8": draw(4, 3, 8, 8),
    }
    names = {name for one in MODELS[model] for name in one.input}
    known = {name: one for name, one in {**CONSTANTS, **more}.items() if name in names}
    agree(MODELS[model], IMAGE, tmp_path, MANY, **known)


REFUSED = {
    "padding to the same size": (
        [node("Conv", "x w", strides=[2, 2], auto_pad="SAME_UPPER")],
        "its auto_pad with a stride of .* depends on the image's size",
    ),
    "every second pixel": (
        [node("Slice", "x first far two1 two1")],
        "model leaves open|out of range for axis 2",
    ),
    "a number": (
        [*LAST[:2], node("Cast", "h", "f", to=1), node("Div", "x f")],
        "computes with the number of records or the length",
    ),
}


@pytest.mark.parametrize("model", REFUSED)
def test_what_depends_on_the_size(model, tmp_path):
    nodes, says = REFUSED[model]
    constants = {**CONSTANTS, "far": np.array([2**63 - 1]), "two1": np.array([2])}
    if model == "a number":
        nodes = [node("Identity", "x", "a"), *nodes]
    path = save(graph(nodes, IMAGE, constants=constants), tmp_path)
    with pytest.raises(FileError, match=says):
        sparknet.Net(path)


def test_a_height_that_the_exporter_fixed(tmp_path):
    """As readers of lines of text: the height that they leave open must become 1."""
    nodes = [
        node("MaxPool", "x", "a", kernel_shape=[2, 2], strides=[32, 2]),
        node("Shape", "a", "shape"),
        node("Gather", "shape three", "v"),
        node("Unsqueeze", "v first", "v1"),
        node("Concat", "start v1", "to", axis=0),
        node("Reshape", "a to"),
    ]
    shapes = ((1, 3, 16, 24), (2, 3, 16, 33))
    start = np.array([0, 3])
    constants = {"start": start, "first": np.array([0]), "three": np.array(3)}
    net = agree(nodes, IMAGE, tmp_path, shapes, **constants)
    assert net.inputs["x"].shape[2] == 16


def test_a_matrix_over_a_sequence(tmp_path):
    """As rxnmap's distances: one text, whose length is open twice."""
    nodes = [node("MatMul", "d x")]
    path = save(graph(nodes, {"d": [1, "s", "s"], "x": [1, "s", 3]}), tmp_path)
    net = sparknet.Net(path)
    for length in (5, 9, 2):
        feeds = {"d": draw(1, length, length), "x": draw(1, length, 3, seed=1)}
        got = net.forward(feeds)["y"]
        np.testing.assert_allclose(got, run(path, feeds)["y"], rtol=1e-4, atol=1e-5)
