"""What architectures of timm and transformers need, node by node."""

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.onnx import read_model
from tests.onnx.graphs import agree, draw, graph, node, onnx, refused

INT = onnx.TensorProto.INT64
PLACES = np.array([[0, 1, 2, 3, 4], [6, 5, 4, 3, 1]])


@pytest.mark.parametrize("records", ["n", 2])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_places_along_any_axis_of_a_table(axis, records, tmp_path):
    model = graph(
        [node("Gather", "table ids", axis=axis)],
        {"ids": [records, 5]},
        constants={"table": draw(7, 8, 9)},
        types={"ids": INT},
    )
    agree(model, {"ids": PLACES}, tmp_path)


def test_columns_of_a_table(tmp_path):
    """As LayoutLMv3 looks up how far words lie apart: weight.t()[:, distances]."""
    model = graph(
        [
            node("Gather", "table ids", "g", axis=1),
            node("Transpose", "g", "t", perm=[1, 0, 2]),
            node("Relu", "t"),
        ],
        {"ids": ["n", 5]},
        constants={"table": draw(4, 9)},
        types={"ids": INT},
    )
    agree(model, {"ids": PLACES}, tmp_path, types=["Embed", "ReLU", "Permute"])


@pytest.mark.parametrize(
    ("order", "shape", "size"),
    [
        ("x v", ("n", 4, 5), 5),
        ("v x", ("n", 4, 5), 4),
        ("x v", ("n", 5), 5),
        ("v x", (4, 5), 4),
        ("x v", (5,), 5),
    ],
)
@pytest.mark.parametrize("is_constant", [True, False])
def test_a_product_with_a_vector(order, shape, size, is_constant, tmp_path):
    x, v = draw(*(3 if one == "n" else int(one) for one in shape)), draw(size, seed=1)
    inputs, feeds = {"x": shape}, {"x": x}
    if not is_constant:
        inputs, feeds = {**inputs, "v": (size,)}, {**feeds, "v": v}
    model = graph([node("MatMul", order)], inputs, constants={"v": v} if is_constant else {})
    agree(model, feeds, tmp_path)


def test_a_product_with_a_vector_over_the_records(tmp_path):
    refused(
        graph([node("MatMul", "x x")], {"x": ["n"]}),
        tmp_path,
        r"\(MatMul\): it sums over the records",
    )


@pytest.mark.parametrize("outside", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("size", [(6, 7), (9, 11), (12, 7)])
def test_smoothing_where_nothing_shrinks(mode, outside, size, tmp_path):
    """As models resize their table of positions, often to the size that it has."""
    resize = node("Resize", "x - - size", mode=mode, antialias=1, exclude_outside=outside)
    model = graph(
        [resize], {"x": [1, 2, 6, 7]}, constants={"size": np.array([1, 2, *size])}, opset=18
    )
    agree(model, {"x": draw(1, 2, 6, 7)}, tmp_path)


def test_gelu_of_half_floats(tmp_path):
    """The root of 2 is 1.4140625 there."""
    nodes = [
        node("Div", "x root", "a"),
        node("Erf", "a", "b"),
        node("Add", "b one", "c"),
        node("Mul", "x c", "d"),
        node("Mul", "d half"),
    ]
    constants = {
        "root": np.float32(np.float16(2**0.5)),
        "one": np.float32(1),
        "half": np.float32(0.5),
    }
    model = graph(nodes, {"x": ["n", 50]}, constants=constants)
    agree(model, {"x": 2 * draw(2, 50)}, tmp_path, types=["Power", "GELU", "Power"])


@pytest.mark.parametrize(
    ("equation", "first", "second"),
    [
        ("...qhd,...khd->...hqk", ("n", 3, 4, 5), (2, 6, 4, 5)),
        ("...qhd,...khd->...hqk", (4, 4, 5), (6, 4, 5)),
        ("...qhd,...khd->...hqk", ("n", 2, 3, 4, 5), (2, 2, 6, 4, 5)),
        ("b...d,de->b...e", ("n", 3, 4, 5), (5, 6)),
        ("...ij,jk->...ik", ("n", 3, 4, 5), (5, 6)),
        ("...ij,...jk->...ik", (3, 4, 5), (3, 5, 6)),
    ],
)
def test_einsum_with_an_ellipsis(equation, first, second, tmp_path):
    """As LongT5's attention within blocks is exported by torch.export."""
    is_open = first[0] == "n" and second[0] == 2
    sizes = [2 if one == "n" else int(one) for one in first]
    model = graph(
        [node("Einsum", "a b", equation=equation)],
        {"a": first, "b": ("n", *second[1:]) if is_open else second},
    )
    agree(model, {"a": draw(*sizes), "b": draw(*second, seed=1)}, tmp_path)


def test_einsum_that_spreads_its_ellipsis(tmp_path):
    path = tmp_path / "model.onnx"
    made = node("Einsum", "a b", equation="...ij,...jk->...ik")
    onnx.save(graph([made], {"a": [2, 3, 4, 5], "b": [2, 1, 5, 6]}), str(path))
    with pytest.raises(FileError, match="it spreads the axes of its ellipsis over each other"):
        read_model(path)
