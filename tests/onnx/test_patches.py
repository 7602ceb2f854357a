"""Patches that are added up to images again: Col2Im, PyTorch's fold."""

import numpy as np
import pytest

import sparknet
from sparknet.errors import FileError
from tests.onnx.graphs import TOLERANCE, draw, graph, node, onnx, run


@pytest.mark.parametrize(
    ("image", "patch", "rows", "how"),
    [
        ((6, 8), (2, 2), 12, {"strides": [2, 2]}),
        ((5, 6), (3, 2), 15, {}),
        ((7, 7), (3, 3), 16, {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((6, 6), (2, 3), 36, {"dilations": [2, 1], "pads": [1, 0, 1, 2]}),
        ((6, 5), (3, 3), 9, {"pads": [0, 1, 1, 1], "strides": [2, 2]}),
    ],
)
def test_patches(image, patch, rows, how, tmp_path):
    path = tmp_path / "model.onnx"
    constants = {"image": np.array(image), "patch": np.array(patch)}
    shape = (3 * patch[0] * patch[1], rows)
    nodes = [node("Col2Im", "x image patch", **how)]
    onnx.save(graph(nodes, {"x": ["n", *shape]}, constants=constants, opset=18), str(path))
    net = sparknet.Net(str(path))
    for records in (1, 3):
        feeds = {"x": draw(records, *shape)}
        want = run(path, feeds)["y"]
        got = net.forward(feeds, outputs=["y"])["y"]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * np.abs(want).max())


@pytest.mark.parametrize(
    ("shape", "image", "says"),
    [
        ((12, 11), (6, 8), r"\[N, 12, 11\] are no patches of \[2, 2\] of an image of \[6, 8\]"),
        ((12, 12), (7, 8), "its patches leave out the end of the image"),
    ],
)
def test_no_patches(shape, image, says, tmp_path):
    path = tmp_path / "model.onnx"
    constants = {"image": np.array(image), "patch": np.array([2, 2])}
    nodes = [node("Col2Im", "x image patch", strides=[2, 2])]
    onnx.save(graph(nodes, {"x": ["n", *shape]}, constants=constants, opset=18), str(path))
    with pytest.raises(FileError, match=rf"node 'Col2Im_y' \(Col2Im\): {says}"):
        sparknet.Net(str(path))
