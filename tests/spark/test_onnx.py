"""An ONNX model as a SparkModel, and as what a Trainer starts from; the result as ONNX again."""

import numpy as np
import pytest

from sparknet.spark import SparkModel
from tests.onnx.graphs import draw, graph, node, onnx, run
from tests.spark.digits import records

COLUMNS = {"data": "pixels"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A classifier of the digits as PyTorch writes one."""
    side = records(1)[0].shape[-1]
    left = (side - 2) // 2
    nodes = [
        node("Conv", "data conv.weight conv.bias", "a"),
        node("Relu", "a", "b"),
        node("MaxPool", "b", "c", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "c", "d"),
        node("Gemm", "d fc.weight fc.bias", "scores", transB=1),
    ]
    constants = {
        "conv.weight": draw(4, 1, 3, 3) / 3,
        "conv.bias": draw(4) / 9,
        "fc.weight": draw(10, 4 * left * left) / 50,
        "fc.bias": draw(10) / 9,
    }
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    made = graph(nodes, {"data": ["n", 1, side, side]}, ["scores"], constants)
    onnx.save(made, str(path))
    return path


@pytest.fixture(scope="module")
def frame(session):
    images, labels = records(60)
    rows = [
        (number, (image * np.float32(1)).ravel().tolist(), int(label))
        for number, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    return session.createDataFrame(rows, "number int, pixels array<float>, digit int")


def test_predictions(model, frame):
    predicted = SparkModel(str(model)).transform(frame, ["scores"], columns=COLUMNS)
    rows = sorted(predicted.select("number", "scores").collect())
    want = run(model, {"data": np.asarray(records(60)[0], np.float32)})["scores"]
    got = np.array([row[1] for row in rows])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
