"""A .onnx where a prototxt or a caffemodel is taken."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet import Net, WeightCollection
from sparknet.cli import main
from sparknet.errors import SparkNetError
from tests.onnx.graphs import draw, graph, node, run, save


@pytest.fixture
def model(tmp_path):
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
    return save(graph(nodes, {"data": ["n", 3, 8, 8]}, ["prob"], constants), tmp_path)


def test_net_and_weights(model):
    x = draw(4, 3, 8, 8)
    net = Net(model)
    np.testing.assert_allclose(
        net.forward({"data": x})["prob"], run(model, {"data": x})["prob"], atol=1e-5
    )
    assert list(net.net.params) == ["conv1", "bn1", "bn1_scale", "fc"]
    weights = WeightCollection.load(model)
    np.testing.assert_array_equal(weights["fc"][1], net.net.params["fc"][1].data)


def test_layers_work_in_place(model):
    layers = {layer.name: layer for layer in Net(model).described.layer}
    relu = layers["Relu_d"]
    assert list(relu.bottom) == list(relu.top) == list(layers["conv1"].top)


def test_verbs(model, tmp_path, capsys):
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


def test_pycaffe(model, tmp_path):
    """caffe.Net takes the model as a net with its weights, and as weights alone."""
    x = draw(1, 3, 8, 8)
    want = run(model, {"data": x})["prob"]
    net = caffe.Net(str(model), caffe.TEST)
    np.testing.assert_allclose(net.forward(data=x)["prob"], want, atol=1e-5)
    net.save(str(tmp_path / "net.caffemodel"))
    (tmp_path / "net.prototxt").write_text(str(caffe.Net(str(model), caffe.TEST).graph.parameter))
    files = [str(tmp_path / "net.prototxt"), str(model)]
    again = caffe.Net(*files, caffe.TEST)
    np.testing.assert_allclose(again.forward(data=x)["prob"], want, atol=1e-5)
    classifier = caffe.Classifier(str(model), str(model))
    found = classifier.predict([np.moveaxis(x[0], 0, 2)], oversample=False)
    np.testing.assert_allclose(found, want, atol=1e-5)


def test_the_net_is_not_trusted(model):
    """Its layers import nothing, as those of a caffemodel."""
    from sparknet.onnx import read_model

    net = read_model(model).net
    net.layer[-1].type = "Python"
    net.layer[-1].python_param.module, net.layer[-1].python_param.layer = "os", "Layer"
    with pytest.raises(SparkNetError, match="trusted"):
        caffe.Net.from_proto(net, caffe.TEST)
