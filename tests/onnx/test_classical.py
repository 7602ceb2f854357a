"""The linear operators of ai.onnx.ml, against onnxruntime."""

import numpy as np
import pytest

from tests.onnx.graphs import agree, draw, graph, helper, node, onnx, refused

X = ["n", 4]
INT = onnx.TensorProto.INT64


def learned(op, inputs, outputs="y", **attributes):
    return node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def model(*nodes, outputs=("y",), types=None):
    made = graph(list(nodes), {"x": X}, outputs)
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    for one in made.graph.output:
        one.type.tensor_type.elem_type = (types or {}).get(one.name, onnx.TensorProto.FLOAT)
    return made


@pytest.mark.parametrize("several", [False, True])
def test_scaler(several, tmp_path):
    numbers = [1.0, -2.0, 0.5, 3.0] if several else [2.0]
    made = learned("Scaler", "x", offset=numbers, scale=numbers[::-1])
    agree(model(made), {"x": draw(5, 4)}, tmp_path)


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_normalizer(norm, tmp_path):
    x = np.concatenate([draw(4, 4), np.zeros((1, 4), np.float32)])
    agree(model(learned("Normalizer", "x", norm=norm)), {"x": x}, tmp_path)


@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(targets, tmp_path):
    weights = draw(targets * 4).tolist()
    made = learned(
        "LinearRegressor", "x", coefficients=weights, intercepts=[0.5] * targets, targets=targets
    )
    agree(model(made), {"x": draw(5, 4)}, tmp_path)


@pytest.mark.parametrize("after", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("labels", [(0, 1, 2), (7, 3, 11)])
def test_linear_classifier(after, labels, tmp_path):
    made = learned(
        "LinearClassifier",
        "x",
        "label scores",
        coefficients=draw(12).tolist(),
        intercepts=[0.1, 0.2, -0.3],
        classlabels_ints=list(labels),
        post_transform=after,
    )
    both = model(made, outputs=("label", "scores"), types={"label": INT})
    agree(both, {"x": draw(9, 4)}, tmp_path)


REFUSED = {
    "no trees": (learned("TreeEnsembleRegressor", "x"), "its nodes have attributes of several"),
    "other trees": (learned("TreeEnsemble", "x"), r"export with target_opset=\{'ai.onnx.ml': 3\}"),
    "zip map": (learned("ZipMap", "x"), "it makes maps, which no blob holds: export with"),
    "norm": (learned("Normalizer", "x", norm="MAX"), "its norm is 'MAX', which no layer computes"),
    "scale": (learned("Scaler", "x", scale=[1.0] * 3), "0 numbers of offset for 4 features"),
    "weights": (learned("LinearRegressor", "x", coefficients=[1.0]), "1 coefficients for 4"),
    "strings": (
        learned("LinearClassifier", "x", coefficients=[1.0] * 8, classlabels_strings=["a", "b"]),
        "its classes are strings, which no blob holds",
    ),
    "other": (learned("SVMRegressor", "x"), "no layer does this"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name, tmp_path):
    made, says = REFUSED[name]
    refused(model(made), tmp_path, says)
