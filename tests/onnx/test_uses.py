"""A .onnx where a prototxt or a caffemodel is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparknet import Net, WeightCollection
from sparknet.cli import main
from tests.onnx.graphs import draw, graph, node, onnx, run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    nodes = [
        node("Conv", "data conv1.weight conv1.bias", "a"),
        node("BatchNormalization", "a bn1.weight b m v", "c"),
        node("Relu", "c", "d"),
        node("GlobalAveragePool", "d", "e"),
        node("Flatten", "e", "f"),
        node("Gemm", "f fc.weight fc.bias", "scores", transB=1),
        node("Softmax", "scores", "prob", axis=1),
    ]
    constants = {
        "conv1.weight": draw(4, 3, 3, 3),
        "conv1.bias": draw(4),
        "bn1.weight": draw(4, seed=3),
        "b": draw(4),
        "m": draw(4, seed=2),
        "v": np.abs(draw(4)) + 0.5,
        "fc.weight": draw(5, 4),
        "fc.bias": draw(5),
    }
    path = tmp_path / "model.onnx"
    onnx.save(graph(nodes, {"data": ["n", 3, 8, 8]}, ["prob"], constants), str(path))
    return path


def test_net_and_weights(model: Path) -> None:
    x = draw(4, 3, 8, 8)
    net = Net(model)
    np.testing.assert_allclose(
        net.forward({"data": x})["prob"], run(model, {"data": x})["prob"], atol=1e-5
    )
    assert list(net.net.params) == ["conv1", "bn1", "bn1_scale", "fc"]
    weights = WeightCollection.load(model)
    np.testing.assert_array_equal(weights["fc"][1], net.net.params["fc"][1].data)


def test_layers_work_in_place(model: Path) -> None:
    layers = {layer.name: layer for layer in Net(model).described.layer}
    relu = layers["Relu_d"]
    assert list(relu.bottom) == list(relu.top) == list(layers["conv1"].top)


def test_verbs(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(model)]) == 0
    assert "InnerProduct" in capsys.readouterr().out
    assert main(["time", "-model", str(model), "-iterations", "1", "-phase", "test"]) == 0
    files = [str(tmp_path / name) for name in ("net.prototxt", "net.caffemodel")]
    assert main(["convert", "onnx", str(model), *files, "--batch", "3"]) == 0
    net = Net(*files)
    x = draw(2, 3, 8, 8)
    np.testing.assert_array_equal(
        net.forward({"data": x})["prob"], Net(model).forward({"data": x})["prob"]
    )
    assert net.batch_size == 3
