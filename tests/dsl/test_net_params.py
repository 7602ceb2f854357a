"""A whole net: what it gives, how it compares, what may be made from it."""

import copy
import os
import pickle
import shutil
import subprocess
import sys

import pytest

from sparknet.dsl import (
    CaffeLayer,
    ConvLayer,
    InnerProduct,
    LinearLayer,
    NetParams,
    PoolLayer,
    RDDLayer,
    ReLU,
    Silence,
)
from sparknet.errors import FileError, LayerError, SpecError, TextError
from sparknet.proto import caffe_pb2
from tests.dsl.nets import lenet, rebuilt
from tests.goldens import ROOT

NET = lenet()
HASH = """
import pickle, sys
from tests.dsl.nets import lenet
net = pickle.loads(sys.stdin.buffer.read())
assert net == lenet()
print(hash(net), net.fingerprint)
"""


def test_graph_and_summary():
    graph = NET.graph("train")
    assert graph.param_count == 431_080
    assert graph.blobs["pool2"] == (64, 50, 4, 4)
    lines = NET.summary().splitlines()
    assert lines[0].split() == ["Layer", "Type", "Output", "shape", "Parameters"]
    assert "conv1 Convolution 64 x 20 x 24 x 24 520" in [" ".join(row.split()) for row in lines]
    assert lines[-1].startswith("431,080 parameters")
    with pytest.raises(SpecError, match="phase 'tset' is neither 'TRAIN' nor 'TEST'"):
        NET.graph("tset")
    with pytest.raises(SpecError, match="phase 2 is neither"):
        NET.graph(2)


def test_drawing(tmp_path):
    NET.draw(tmp_path / "net.dot")
    assert (tmp_path / "net.dot").read_text() == NET.to_dot()
    assert NET.to_dot().startswith('digraph "lenet"')
    if shutil.which("dot"):
        NET.draw(tmp_path / "net.svg")
        assert b"<svg" in (tmp_path / "net.svg").read_bytes()


def test_content_decides_equality_and_hash():
    again = lenet()
    assert again == NET
    assert hash(again) == hash(NET)
    assert {NET: 1}[again] == 1
    assert NET.with_name("other") != NET
    assert lenet(force_backward=True) != NET
    assert NET != 3
    assert copy.copy(NET) is NET
    assert copy.deepcopy(NET) is NET


def test_a_net_travels_between_processes():
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", HASH],
            input=pickle.dumps(NET),
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        assert made.stdout.split() == [str(hash(NET)).encode(), NET.fingerprint.encode()]


def test_a_net_is_frozen():
    with pytest.raises(AttributeError, match="NetParams cannot be changed; build another"):
        NET.name = "x"
    with pytest.raises(AttributeError, match="cannot be changed"):
        del NET.name
    NET.to_proto().name = "x"
    assert NET.to_proto().name == "lenet"


def test_repr_is_short():
    assert repr(NET) == f"<NetParams 'lenet': 10 layers, {NET.fingerprint[:8]}>"


def test_a_sequence_of_layers():
    assert len(NET) == 10
    assert [layer.name for layer in NET][:3] == ["data", "label", "conv1"]
    assert NET["conv1"].type == "Convolution"
    assert "conv1" in NET
    assert "conv9" not in NET
    with pytest.raises(KeyError, match="has no layer 'conv9'; did you mean 'conv"):
        NET["conv9"]


def test_text_and_files(tmp_path):
    path = tmp_path / "net.prototxt"
    NET.save(path)
    assert NetParams.load(path) == NET
    assert NetParams.from_text(path.read_text()) == NET
    assert str(NET) == path.read_text()
    assert NetParams.from_proto(NET.to_proto()) == NET
    assert rebuilt(NET.to_source()) == NET


def test_a_caffemodel_gives_its_net(tmp_path):
    net = NET.to_proto()
    blob = net.layer[2].blobs.add()
    blob.shape.dim.extend([20, 1, 5, 5])
    blob.data.extend([0.5] * 500)
    path = tmp_path / "net.caffemodel"
    path.write_bytes(net.SerializeToString())
    loaded = NetParams.load(path)
    assert all(layer.untrusted for layer in loaded.to_proto().layer)
    loaded.save(tmp_path / "net.prototxt")
    assert NetParams.load(tmp_path / "net.prototxt") == NET


def test_a_prototxt_is_read_as_text(tmp_path):
    (tmp_path / "odd.prototxt").write_bytes(b'name: "a"\n\x00')
    with pytest.raises(TextError, match=r"odd\.prototxt:2:1: "):
        NetParams.load(tmp_path / "odd.prototxt")


def test_files_that_hold_no_net(tmp_path):
    with pytest.raises(FileError, match=r"gone\.prototxt"):
        NetParams.load(tmp_path / "gone.prototxt")
    (tmp_path / "w.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(FileError, match="an HDF5 file holds weights only; load the net's prototxt"):
        NetParams.load(tmp_path / "w.h5")


def test_old_nets_are_upgraded():
    old = """
    name: "old" input: "data" input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 4
    layers { name: "ip" type: INNER_PRODUCT bottom: "data" top: "ip" blobs_lr: 1 blobs_lr: 2
             inner_product_param { num_output: 2 } }
    """
    net = NetParams.from_text(old)
    assert [layer.type for layer in net] == ["Input", "InnerProduct"]
    assert rebuilt(net.to_source()) == net


def test_blocks_may_be_lists():
    nested = NetParams("n", [RDDLayer("x", shape=[1]), [ReLU("r", "x"), (Silence("s", "r"),)]])
    assert [layer.name for layer in nested] == ["x", "r", "s"]


@pytest.mark.parametrize(
    ("arguments", "fields", "sentence"),
    [
        (["data"], {}, "net 'n': 'data' is no layer; make one with a builder, e.g. ConvLayer"),
        ([], {"force_backwrad": True},
         "net 'n': NetParameter has no field 'force_backwrad'; did you mean 'force_backward'?"),
        ([], {"force_backward": 1}, "net 'n': force_backward: 1 is not a bool"),
        ([], {"input": "data"},
         "net 'n': input is not set by keyword; list layers (RDDLayer for inputs)"),
    ],
)  # fmt: skip
def test_what_is_no_net(arguments, fields, sentence):
    with pytest.raises(SpecError) as caught:
        NetParams("n", *arguments, **fields)
    assert str(caught.value) == sentence


def test_a_name_is_a_string():
    with pytest.raises(SpecError, match="net 'net': 3 is no layer"):
        NetParams(3)
    with pytest.raises(SpecError, match="net 3: name: 3 is not a string"):
        NetParams(name=3)


def test_a_name_may_be_left_out():
    net = lenet()
    assert NetParams(*net, name="lenet") == NetParams(name="lenet").with_layers(*net) == net
    assert NetParams(*net) == NetParams(list(net)) == net.with_name("net")


def test_fields_of_the_net_itself():
    net = lenet(force_backward=True, state={"level": 2, "stage": "x"})
    assert net.to_proto().state.stage == ["x"]
    assert "force_backward=True," in net.to_source()
    assert rebuilt(net.to_source()) == net


def test_unchecked_nets():
    layers = [RDDLayer("x", shape=[1, 2]), CaffeLayer("own", "x", type="MyOwn")]
    with pytest.raises(LayerError, match="layer 'own': unknown type 'MyOwn'"):
        NetParams("n", *layers)
    net = NetParams("n", *layers, check=False)
    assert "check=False," in net.to_source()
    assert rebuilt(net.to_source()) == net
    assert not pickle.loads(pickle.dumps(net)).checked
    assert len(net.with_layers(ReLU("r", "own"))) == 3


def test_weights_are_left_out():
    net = NET.to_proto()
    net.layer[2].blobs.add().data.append(1)
    assert NetParams.from_proto(net) == NET


def test_unknown_fields_are_left_out():
    assert NetParams.from_proto(caffe_pb2.NetParameter.FromString(b"\xfa\x7f\x01a")) == NetParams(
        ""
    )


def test_other_nets_from_one():
    assert NET.with_name("b").name == "b"
    assert NET.name == "lenet"
    more = NET.with_layers(Silence("quiet", "relu1"))
    assert more.layers[-1].name == "quiet"
    assert NET + Silence("quiet", "relu1") == more
    assert more.without_layers("quiet") == NET
    front = NetParams("lenet", *NET.layers[:6])
    assert front + NetParams("", *NET.layers[6:], check=False) == NET
    inside = NET.with_layers(ReLU("relu0", "conv1", in_place=True), after="conv1")
    assert [layer.name for layer in inside][3] == "relu0"
    wider = NET.with_replaced(InnerProduct("ip2", "relu1", num_output=3))
    assert wider.graph().blobs["ip2"] == (64, 3)
    with pytest.raises(KeyError, match="has no layer 'ip3'; did you mean 'ip"):
        NET.with_replaced(LinearLayer("ip3", "relu1", num_outputs=3))
    with pytest.raises(LayerError, match="layer 'conv2': bottom 'pool1' is made by no layer"):
        NET.without_layers("pool1")


def test_with_input_shapes():
    small = NET.with_input_shapes({"data": [2, 1, 28, 28], "label": [2]})
    assert small.graph().blobs["ip2"] == (2, 10)
    with pytest.raises(LayerError, match="layer 'loss': "):
        NET.with_input_shape("data", [2, 1, 28, 28])
    with pytest.raises(SpecError) as caught:
        NET.with_input_shape("dta", [2])
    assert str(caught.value) == (
        "net 'lenet': no Input layer makes a blob 'dta'; did you mean 'data'?"
    )
    with pytest.raises(LayerError, match=r"layer 'data': shape.dim\[1\]: 'x' is not an integer"):
        NET.with_input_shape("data", [2, "x"])


def test_with_input_shape_for_one_phase():
    parted = NetParams(
        "n",
        RDDLayer("data", shape=[4, 3], include="TRAIN"),
        RDDLayer("data", shape=[5, 3], include="TEST"),
    ).with_input_shape("data", [9, 3], phase="test")
    assert parted.graph("train").blobs["data"] == (4, 3)
    assert parted.graph("test").blobs["data"] == (9, 3)


def test_one_shape_for_two_tops_is_told_apart():
    pair = NetParams("n", CaffeLayer("in", type="Input", tops=["a", "b"], shape=[1, 2]))
    assert pair.with_input_shape("b", [3]).graph().blobs == {"a": (1, 2), "b": (3,)}


def test_layer_objects_as_bottoms():
    data = RDDLayer("data", shape=[1, 1, 8, 8])
    conv = ConvLayer("conv", data, kernel=3, num_filters=2)
    pool = PoolLayer("pool", conv, kernel=2, stride=2)
    assert NetParams("n", data, conv, pool).graph().blobs["pool"] == (1, 2, 3, 3)
