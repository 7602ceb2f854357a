"""Every public name of BVLC's Python modules is here, and means what it means there."""

import json
import pickle
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
import sparknet.caffe.proto.caffe_pb2 as messages
from sparknet.caffe import alias, optional_modules
from sparknet.caffe.solvers import Solver
from sparknet.errors import SparkNetError
from sparknet.proto import caffe_pb2, parse_net
from tests.caffe.nets import make
from tests.caffe.solvers import small

RECORDED = json.loads((Path(__file__).parent / "pycaffe_names.json").read_text(encoding="utf-8"))
"""Read off BVLC/caffe, python/caffe, at 9b89154 by its syntax: the names that its modules bind and
its classes define; those that begin with an underscore where BVLC's own programs use them."""


def home(module):
    return import_module("sparknet." + module)


@pytest.mark.parametrize("module", RECORDED["modules"])
def test_modules(module):
    found = home(module)
    assert [name for name in RECORDED["modules"][module] if not hasattr(found, name)] == []
    with alias.installed():
        assert import_module(module) is found


@pytest.fixture(scope="module")
def made():
    """An object of each class whose attributes an object alone has."""
    net, solver = make(), small.make_solver()
    return {"Net": net, "SolverParameter": solver.param, "Layer": net.layers[1], "Solver": solver}


@pytest.mark.parametrize("name", RECORDED["classes"])
def test_classes(name, made):
    module, _, kind = name.rpartition(".")
    found, recorded = getattr(home(module), kind), RECORDED["classes"][name]
    thing = made.get(kind, found)
    assert [one for one in recorded["names"] if not hasattr(thing, one)] == []
    if recorded["base"] in RECORDED["modules"]["caffe._caffe"]:
        assert issubclass(found, getattr(caffe._caffe, recorded["base"]))


def test_vectors():
    """Programs ask for the very type of ``net.params[...]``."""
    net, solver = make(), small.make_solver()
    types = caffe._caffe
    assert all(type(blobs) is types.BlobVec for blobs in net.params.values())
    assert type(net._blobs) is types.BlobVec
    assert type(net.layers) is types.LayerVec
    assert type(net._layer_names) is type(net._blob_names) is types.StringVec
    assert type(net._inputs) is type(net._outputs) is type(net._top_ids(0)) is types.IntVec
    assert type(net._bottom_ids(1)) is types.IntVec
    assert type(net._blob_loss_weights) is types.DtypeVec
    assert net._blob_loss_weights[-1] == 0.5
    assert type(solver.test_nets) is types.NetVec
    assert all(isinstance(layer, caffe.Layer) for layer in net.layers)
    assert all(isinstance(blob, types.Blob) for blob in net.blobs.values())
    assert all(isinstance(blob, types.Blob) for blob in net.params["conv"])
    assert isinstance(solver, types.Solver)
    assert isinstance(solver.param, types.SolverParameter)
    assert types.Solver is Solver
    vector = types.BlobVec()
    vector.add_blob(2, 3)
    assert isinstance(vector[0], types.Blob)
    assert vector[0].data.shape == (2, 3)


def test_a_layers_reshape():
    net = make()
    conv = net.layers[list(net._layer_names).index("conv")]
    bottom, top = caffe._caffe.BlobVec(), caffe._caffe.BlobVec()
    bottom.add_blob(1, 2, 5, 6)
    top.add_blob()
    conv.setup(bottom, top)
    conv.reshape(bottom, top)
    assert (conv.type, top[0].shape) == ("Convolution", (1, 11, 10, 11))


def test_batches():
    batches = list(make()._batch({"data": np.ones((7, 2, 3, 4)), "label": np.arange(7)}))
    assert [batch["label"].tolist() for batch in batches] == [[0, 1, 2, 3, 4], [5, 6, 0, 0, 0]]
    assert batches[1]["data"][:2].all()
    assert not batches[1]["data"][2:].any()


def test_nccl_says_what_there_is_instead():
    assert not caffe.has_nccl()
    with pytest.raises(SparkNetError, match=r"several GPUs.*sparknet\.train"):
        caffe.NCCL.new_uid()
    with pytest.raises(SparkNetError, match=r"several GPUs.*sparknet\.train"):
        caffe.NCCL(small.make_solver(), "uid")


def test_modules_of_others(monkeypatch):
    """They are imported when they are used, and named if they are not installed."""
    module = optional_modules.OptionalModule("logging", "logging")
    assert module.handlers.QueueHandler.__name__ == "QueueHandler"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing
    assert caffe.net_spec.protobuf.text_format.MessageToString(parse_net('name: "x"')) != ""
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ImportError, match=r"'skimage'.*pip install scikit-image"):
        _ = caffe.io.skimage.transform
    with pytest.raises(ImportError, match=r"'skimage'.*pip install scikit-image"):
        caffe.io.resize(np.zeros((2, 2)), (4, 4))
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r"'scipy'.*pip install scipy"):
        caffe.io.zoom(np.zeros((2, 2)), 2)


def test_names():
    for name in caffe.__all__:
        assert hasattr(caffe, name)
    assert (caffe.TRAIN, caffe.TEST, caffe.__version__) == (0, 1, "1.0.0")
    assert caffe.proto.caffe_pb2 is messages is caffe_pb2 is caffe.io.caffe_pb2


def test_messages_pickle():
    blob = messages.BlobProto(data=[1.0])
    assert pickle.loads(pickle.dumps(blob)) == blob
