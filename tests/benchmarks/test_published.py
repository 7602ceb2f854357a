"""The table of published models: a row's figures, or the sentence of a refusal."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")

from benchmarks.published import apart, cosine, measured
from tests.caffe.test_int8 import needs_int8
from tests.onnx.graphs import draw, graph, node, onnx


@needs_int8
def test_figures_of_a_file(tmp_path):
    path = tmp_path / "small.onnx"
    nodes = [node("Gemm", "x w", "features"), node("Relu", "features", "r"), node("Gemm", "r v")]
    constants = {"w": draw(8, 16), "v": draw(16, 4)}
    onnx.save(graph(nodes, {"x": ["n", 8]}, ["features", "y"], constants), str(path))
    cells = measured(path)
    assert cells["outputs"] == "2 of 2"
    assert float(cells["float32"]) < 1e-4
    assert 0.95 < float(cells["int8"]) <= 1
    assert "remark" not in cells


def test_a_file_that_is_refused(tmp_path):
    path = tmp_path / "wide.onnx"
    onnx.save(graph([node("Relu", "x")], {"x": [1, 3, "high", "wide"], "z": ["n"]}), str(path))
    assert measured(path) == {"remark": "input 'x' leaves 2 sizes open: give its shape"}


def test_differences():
    one, other = np.array([3.0, 4.0]), np.array([3.0, 3.5])
    assert apart(other, one) == pytest.approx(0.5 / 4)
    assert cosine(one, other) == pytest.approx(23 / (5 * np.sqrt(21.25)))
