"""Nets from files, back to DSL source: every reference net rebuilds equal."""

from pathlib import Path

import pytest

from sparknet.dsl import Dropout, LayerSpec, NetParams, PReLU, SolverParams
from sparknet.errors import SparkNetError
from sparknet.proto import caffe_pb2
from tests.dsl.nets import lenet, rebuilt
from tests.goldens import GOLDENS, index

FOLDERS = ("nets", "layers", "formats/filter", "formats/binary", "solvers", "data")


def prototxts(folder: str) -> list[Path]:
    found = sorted((GOLDENS / folder).glob("*.prototxt"))
    return [path for path in found if not path.name.endswith(".solver.prototxt")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_reference_net(folder, monkeypatch):
    monkeypatch.chdir(GOLDENS / folder)
    paths = prototxts(folder)
    assert paths
    for path in paths:
        net = NetParams.load(path, check=folder == "nets")
        assert rebuilt(net.to_source()) == net, path.name
        assert NetParams.from_text(net.to_prototxt(), check=False) == net, path.name


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("folder", ["formats/upgrade", "formats/syntax"])
def test_old_and_odd_reference_nets(folder):
    entries = [entry for entry in index(folder) if entry["message"] == "NetParameter"]
    assert entries
    for entry in entries:
        net = NetParams.load(GOLDENS / folder / f"{entry['name']}.in.prototxt", check=False)
        assert rebuilt(net.to_source()) == net, entry["name"]


def test_every_reference_model():
    paths = sorted((GOLDENS / "formats" / "binary").glob("*.caffemodel"))
    assert paths
    for path in paths:
        net = NetParams.load(path, check=False)
        assert len(net) > 0
        assert rebuilt(net.to_source()) == net, path.name


def test_bad_reference_nets_are_refused(monkeypatch):
    monkeypatch.chdir(GOLDENS / "errors")
    entries = [entry for entry in index("errors") if entry["action"] == "net"]
    assert len(entries) > 50
    for entry in entries:
        with pytest.raises(SparkNetError) as caught:
            NetParams.load(entry["file"]).graph(entry.get("phase"))
        assert entry.get("layer", "") in str(caught.value), entry["file"]


def test_every_reference_solver():
    paths = sorted((GOLDENS / "solvers").glob("*.solver.prototxt"))
    assert paths
    for path in paths:
        solver = SolverParams.load(path)
        assert rebuilt(solver.to_source(), "solver") == solver, path.name


def test_lenet_reads_like_this():
    assert (
        lenet().to_source()
        == """\
from sparknet.dsl import (
    Convolution,
    InnerProduct,
    NetParams,
    Pooling,
    RDDLayer,
    ReLU,
    SoftmaxWithLoss,
)

net = NetParams(
    "lenet",
    RDDLayer("data", shape=[64, 1, 28, 28]),
    RDDLayer("label", shape=[64]),
    Convolution("conv1", ["data"], num_output=20, kernel_size=5, weight_filler="xavier"),
    Pooling("pool1", ["conv1"], pool="MAX", kernel_size=2, stride=2),
    Convolution("conv2", ["pool1"], num_output=50, kernel_size=5, weight_filler="xavier"),
    Pooling("pool2", ["conv2"], pool="MAX", kernel_size=2, stride=2),
    InnerProduct("ip1", ["pool2"], num_output=500, weight_filler="xavier"),
    ReLU("relu1", ["ip1"]),
    InnerProduct("ip2", ["relu1"], num_output=10, weight_filler="xavier"),
    SoftmaxWithLoss("loss", ["ip2", "label"]),
)
"""
    )


def of(**fields):
    return repr(LayerSpec(caffe_pb2.LayerParameter(**fields)))


def test_spellings():
    assert repr(Dropout("d", "x", dropout_ratio=0.1, in_place=True)) == (
        'Dropout("d", ["x"], in_place=True, dropout_ratio=0.1)'
    )
    assert repr(PReLU("p", "x", filler={"type": "constant", "value": float("-inf")})) == (
        'PReLU("p", ["x"], filler=dict(type="constant", value=float("-inf")))'
    )
    assert of(name='a"\n\\', type="ReLU") == "ReLU('a\"\\n\\\\', tops=[])"
    assert of(name="é→", type="Silence") == 'Silence("é→")'
    assert of(type="") == 'CaffeLayer("", type="")'
    empty = caffe_pb2.LayerParameter(name="r", type="ReLU", top=["r"])
    empty.relu_param.SetInParent()
    assert repr(LayerSpec(empty)) == 'ReLU("r", relu_param=dict())'


def test_options_of_another_type_survive():
    odd = caffe_pb2.LayerParameter(name="r", type="ReLU", bottom=["x"], top=["r"])
    odd.pooling_param.pool = caffe_pb2.PoolingParameter.AVE
    assert repr(LayerSpec(odd)) == 'ReLU("r", ["x"], pooling_param=dict(pool="AVE"))'
