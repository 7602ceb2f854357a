"""Graphs of ONNX made by hand, and what onnxruntime computes with them."""

import warnings
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")
helper, numpy_helper = onnx.helper, onnx.numpy_helper

import sparknet.caffe as caffe  # noqa: E402
from sparknet.errors import FileError  # noqa: E402
from sparknet.onnx import OnnxWarning, read_model  # noqa: E402
from sparknet.proto import read_model as read_weights  # noqa: E402
from sparknet.proto import write_model  # noqa: E402

Array = np.ndarray[Any, Any]
TOLERANCE = 1e-4
RUNTIME = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
old_runtime = pytest.mark.skipif(RUNTIME < (1, 23), reason="an old onnxruntime")
"""Where operators of unusual attributes are computed otherwise than today, or not at all."""


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def node(op, inputs, outputs="y", **attributes):
    """A node; names of inputs and outputs are parted by spaces, and "-" is none."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"{op}_{outputs}", **attributes)


def graph(nodes, inputs, outputs=("y",), constants=None, *, opset=17, types=None):
    """A model; a size that is text is open."""
    kind = onnx.TensorProto.FLOAT
    made = helper.make_graph(
        list(nodes),
        "graph",
        [
            helper.make_tensor_value_info(name, (types or {}).get(name, kind), list(shape))
            for name, shape in inputs.items()
        ],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def save(model, folder):
    """The path of the model's file."""
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    return path


def refused(model, folder, says):
    with pytest.raises(FileError, match=says):
        read_model(save(model, folder))


def run(path, feeds):
    """What onnxruntime computes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def converted(path, feeds, folder, **options):
    """The model, and what a net of it computes, by way of a caffemodel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnnxWarning)
        model = read_model(path, **options)
    weights = folder / "net.caffemodel"
    write_model(weights, model)
    net = caffe.Net.from_proto(model.net, caffe.TEST, models=[read_weights(weights)])
    for name, value in feeds.items():
        net.blobs[name].reshape(*value.shape)
        net.blobs[name].data[...] = value
    net.reshape()
    net.forward()
    return model, {name: np.array(blob.data) for name, blob in net.blobs.items()}


def agree(model, feeds, folder, *, types=None):
    """Compare every output; returns the types of the net's layers, which may be given."""
    path = save(model, folder)
    want = run(path, feeds)
    made, got = converted(path, feeds, folder)
    for name, value in want.items():
        assert got[name].shape == value.shape
        scale = max(float(np.abs(value).max()), 1e-6)
        assert float(np.abs(got[name] - value).max()) <= TOLERANCE * scale, name
    found = [layer.type for layer in made.net.layer if layer.type not in ("Input", "Silence")]
    if types is not None:
        assert found == list(types)
    return found
