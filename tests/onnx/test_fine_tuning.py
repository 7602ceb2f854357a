"""Imported models that go on learning: statistics, dropout, and gradients around comparisons."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet import Net, SolverParams
from sparknet.onnx import OnnxWarning, read_model, write_model
from tests.onnx.graphs import agree, draw, graph, helper, node, onnx, run, save

RECORDS, CHANNELS = 4, 3
X = ["n", CHANNELS, 5, 5]


def batch_norm(folder, **attributes):
    constants = {
        "s": np.ones(CHANNELS, np.float32),
        "b": np.zeros(CHANNELS, np.float32),
        "m": np.array([0.204, -1.5, 3.0], np.float32),
        "v": np.array([1.0, 0.3, 2.0], np.float32),
    }
    nodes = [node("BatchNormalization", "x s b m v", **attributes)]
    return save(graph(nodes, {"x": X}, constants=constants), folder)


def net_of(model, phase):
    net = caffe.Net.from_proto(model.net, phase)
    for layer, arrays in zip(model.net.layer, model.arrays, strict=True):
        for blob, array in zip(net.params.get(layer.name, ()), arrays, strict=True):
            blob.data[...] = array
    return net


def statistics(net):
    mean, variance, count = (
        np.array(blob.data, float) for blob in net.params["BatchNormalization_y"]
    )
    return mean / count, variance / count


@pytest.mark.parametrize("momentum", [None, 0.9, 0.7, 0.0, 0.99, 1.0])
def test_statistics_move_as_pytorchs_do(momentum, tmp_path):
    """running = momentum · running + (1 - momentum) · new, with the variance of n - 1."""
    path = batch_norm(tmp_path, **({} if momentum is None else {"momentum": momentum}))
    model = read_model(path, batch=RECORDS)
    kept = 0.9 if momentum is None else momentum
    net = net_of(model, caffe.TRAIN)
    mean, variance = np.array([0.204, -1.5, 3.0]), np.array([1.0, 0.3, 2.0])
    np.testing.assert_allclose(statistics(net)[0], mean, rtol=1e-6)
    np.testing.assert_allclose(statistics(net)[1], variance, rtol=1e-6)
    for step in range(5):
        x = draw(RECORDS, CHANNELS, 5, 5, seed=step)
        net.blobs["x"].data[...] = x
        net.forward()
        rows = np.moveaxis(x.astype(float), 1, 0).reshape(CHANNELS, -1)
        mean = kept * mean + (1 - kept) * rows.mean(1)
        variance = kept * variance + (1 - kept) * rows.var(1, ddof=1)
        np.testing.assert_allclose(statistics(net)[0], mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(statistics(net)[1], variance, rtol=1e-4, atol=1e-5)


def test_momentum_there_and_back(tmp_path):
    model = read_model(batch_norm(tmp_path, momentum=0.75))
    write_model(tmp_path / "again.onnx", model)
    made = onnx.load(str(tmp_path / "again.onnx")).graph.node[0]
    assert helper.get_node_attr_value(made, "momentum") == pytest.approx(0.75)
    x = draw(RECORDS, CHANNELS, 5, 5)
    want = run(tmp_path / "model.onnx", {"x": x})["y"]
    np.testing.assert_allclose(run(tmp_path / "again.onnx", {"x": x})["y"], want, atol=1e-5)


def dropout(folder: Path, training: bool | None, ratio: float = 0.4, opset: int = 17) -> Path:
    inputs, constants = "x", {"w": np.ones((5, 5), np.float32)}
    attributes = {} if opset >= 12 else {"ratio": ratio}
    if training is not None:
        inputs, constants = "x r t", {**constants, "r": np.float32(ratio), "t": np.array(training)}
    nodes = [node("Dropout", inputs, "d mask", **attributes), node("MatMul", "d w")]
    return save(graph(nodes, {"x": ["n", 5]}, constants=constants, opset=opset), folder)


@pytest.mark.parametrize(("opset", "training"), [(17, True), (11, None), (17, False), (17, None)])
def test_dropout(opset, training, tmp_path):
    """It drops in training, if the model was exported for training, and never in tests."""
    drops = training or opset == 11
    path = dropout(tmp_path, training, opset=opset)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = read_model(path, batch=1000)
    types = [layer.type for layer in model.net.layer]
    assert types == ["Input", *(["Dropout"] if drops else []), "InnerProduct"]
    texts = [str(one.message) for one in said if one.category is OnnxWarning]
    assert any("1 nodes (the first is 'Dropout_d mask') drop" in one for one in texts) == bool(
        training
    )
    tested = net_of(model, caffe.TEST)
    tested.blobs["x"].data[...] = 1
    tested.forward()
    np.testing.assert_allclose(tested.blobs["y"].data, 5, rtol=1e-6)
    if drops:
        trained = net_of(model, caffe.TRAIN)
        trained.blobs["x"].data[...] = 1
        trained.forward()
        values = np.array(trained.blobs["d"].data)
        np.testing.assert_allclose(np.unique(values), [0, 1 / 0.6], rtol=1e-6)
        assert (values == 0).mean() == pytest.approx(0.4, abs=0.03)


def test_dropout_of_nothing(tmp_path):
    model = read_model(dropout(tmp_path, True, ratio=0.0))
    assert [layer.type for layer in model.net.layer] == ["Input", "InnerProduct"]


def gated(kind):
    """A linear layer, and a choice or a gate behind it."""
    nodes = [node("Gemm", "x w b", "h", transB=1)]
    if kind == "where":
        nodes += [node("Greater", "h zero", "m"), node("Exp", "h", "e"), node("Where", "m h e")]
    else:
        nodes += [node("ThresholdedRelu", "h", alpha=0.1)]
    constants = {"w": draw(3, 4), "b": draw(3, seed=1), "zero": np.float32(0)}
    return graph(nodes, {"x": ["n", 4]}, constants=constants)


@pytest.mark.parametrize("kind", ["where", "gate"])
def test_comparisons_in_nets_that_learn(kind, tmp_path):
    path = save(gated(kind), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnnxWarning)
        net = read_model(path, batch=6).net
        tuned = net_with_loss(net, path)
    x, label = draw(6, 4, seed=3), np.zeros((6, 3), np.float32)
    weights, bias = (np.array(one, float) for one in tuned.get_weights()["Gemm_h"])
    tuned.set_training_data((x, label))
    tuned.train(1)
    h = x @ weights.T + bias
    y, slope = (np.where(h > 0, h, np.exp(h)), np.where(h > 0, 1, np.exp(h)))
    if kind == "gate":
        y, slope = np.where(h > 0.1, h, 0), np.where(h > 0.1, 1, 0)
    gradient = (y * slope / 6).T @ x
    after = tuned.get_weights()["Gemm_h"][0]
    np.testing.assert_allclose(after, weights - 0.1 * gradient, rtol=1e-4, atol=1e-5)


def net_with_loss(net, path):
    label = net.layer.add(name="label", type="Input", top=["label"])
    label.input_param.shape.add().dim.extend([6, 3])
    net.layer.add(name="loss", type="EuclideanLoss", bottom=["y", "label"], top=["loss"])
    return Net(SolverParams(net_param=net, base_lr=0.1, lr_policy="fixed"), path)


@pytest.mark.parametrize("kind", ["where", "gate"])
def test_comparisons_compute_as_onnxruntime_does(kind, tmp_path):
    agree(gated(kind), {"x": draw(6, 4, seed=3)}, tmp_path)
