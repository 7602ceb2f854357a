import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.caffe import NetSpec, layers, params, to_proto
from sparknet.caffe.net_spec import Function, Top, assign_proto, param_name_dict
from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2


def test_param_names():
    names = param_name_dict()
    assert names["InnerProduct"] == "inner_product"
    assert names["LRN"] == "lrn"
    assert names["HDF5Data"] == "hdf5_data"
    assert names["Transformation"] == "transform"


def test_keywords_of_the_layer_and_of_its_options():
    x = layers.Input(shape={"dim": [1, 4]})
    y = layers.InnerProduct(x, num_output=3, loss_weight=[2], inner_product_param={"axis": 1})
    made = to_proto(y).layer[1]
    assert made.inner_product_param.num_output == 3
    assert made.inner_product_param.HasField("axis")
    assert list(made.loss_weight) == [2.0]
    assert not made.HasField("convolution_param")


def test_names_are_counted_per_type():
    x = layers.Input(shape={"dim": [1]})
    y = layers.ReLU(layers.ReLU(x))
    net = to_proto(y, layers.ReLU(x))
    assert [layer.name for layer in net.layer] == ["Input1", "ReLU1", "ReLU2", "ReLU3"]
    assert [list(layer.bottom) for layer in net.layer[1:]] == [["Input1"], ["ReLU1"], ["Input1"]]
    assert y.to_proto() == to_proto(y)


def test_the_last_of_two_names_counts():
    n = NetSpec()
    n.a = layers.Input(shape={"dim": [1]})
    n.b = n.a
    assert [layer.name for layer in n.to_proto().layer] == ["b"]


def test_in_place_and_many_tops():
    n = NetSpec()
    n.data, n.label = layers.Data(source="x", ntop=2)
    n.relu = layers.ReLU(n.data, in_place=True)
    n.silent = layers.Silence(n.label, ntop=0)
    data, relu, silent = n.to_proto().layer
    assert list(data.top) == ["data", "label"]
    assert list(relu.top) == list(relu.bottom) == ["data"]
    assert (silent.name, list(silent.top)) == ("silent", [])
    assert isinstance(n.silent, Function)


def test_update_and_access():
    n = NetSpec()
    n["a b"] = layers.InnerProduct(num_output=3)
    n.update("a b", {"num_output": 4, "bias_term": False})
    assert n.keys() == ["a b"]
    assert isinstance(n.vals()[0], Top)
    assert n.to_proto().layer[0].inner_product_param.num_output == 4
    del n["a b"]
    assert n.keys() == []


def test_a_deep_net_needs_no_deep_stack():
    top = layers.Input(shape={"dim": [1]})
    for _ in range(5000):
        top = layers.ReLU(top, in_place=True)
    net = top.to_proto()
    assert len(net.layer) == 5001
    assert net.layer[-1].name == "ReLU5000"


def test_copies_and_pickles():
    n = NetSpec()
    n.x = layers.Input(shape={"dim": [1]})
    n.y = layers.Power(n.x, power=2)
    assert copy.deepcopy(n).to_proto() == n.to_proto()
    assert pickle.loads(pickle.dumps(n)).to_proto() == n.to_proto()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: layers.Convolution(kernal_size=3),
            "layer 'Convolution1': Convolution has no option 'kernal_size'; "
            "did you mean 'kernel_size'?",
        ),
        (
            lambda: layers.Convolution(weight_filler={"typ": "xavier"}),
            "layer 'Convolution1': 'weight_filler': FillerParameter has no field 'typ'; "
            "did you mean 'type'?",
        ),
        (
            lambda: layers.Deconvolution(num_output=3),
            "layer 'Deconvolution1': Deconvolution has no option 'num_output': "
            "write convolution_param=dict(num_output=...)",
        ),
    ],
)
def test_an_unknown_option(make, message):
    with pytest.raises(AttributeError) as caught:
        make().to_proto()
    assert isinstance(caught.value, SpecError)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "options",
    [
        {"num_output": "three"},
        {"num_output": -1},
        {"num_output": [1, 2]},
        {"num_output": None},
        {"weight_filler": 3},
        {"weight_filler": [{"type": "a"}]},
        {"kernel_size": [1, "x"]},
        {"engine": "NOPE"},
    ],
)
def test_a_bad_value(options):
    with pytest.raises(TypeError, match="layer 'Convolution1'") as caught:
        layers.Convolution(**options).to_proto()
    assert isinstance(caught.value, SpecError)


def test_inputs_must_be_tops():
    pair = layers.Data(ntop=2)
    with pytest.raises(TypeError, match=r"ReLU input 0 is not a Top \(type is <class .tuple.>\)"):
        layers.ReLU(pair)
    n = NetSpec()
    n.data = pair
    with pytest.raises(TypeError, match="the top 'data' is a tuple of 2, not one Top"):
        n.to_proto()


def test_a_missing_top():
    n = NetSpec()
    n.conv1 = layers.Input()
    for error in (KeyError, AttributeError, SpecError):
        with pytest.raises(error) as caught:
            _ = n.conv2
        assert str(caught.value) == "the net has no top 'conv2'; did you mean 'conv1'?"
    assert not hasattr(n, "conv2")


def test_a_loop():
    top = layers.ReLU(layers.Input())
    top.fn.inputs = (top,)
    with pytest.raises(SpecError, match="a ReLU layer takes its own output as an input"):
        top.to_proto()


def test_params():
    assert params.Pooling.AVE == caffe_pb2.PoolingParameter.AVE == 1
    with pytest.raises(AttributeError, match="has no value 'MAXX'; did you mean 'MAX'"):
        _ = params.Pooling.MAXX
    with pytest.raises(AttributeError, match="no message PolingParameter; did you mean"):
        _ = params.Poling.MAX


def test_assign_proto():
    layer = caffe_pb2.LayerParameter()
    assign_proto(layer, "loss_weight", 2)
    assign_proto(layer, "bottom", ("a", "b"))
    assign_proto(layer, "loss_weight", np.array([3.0], np.float32))
    assign_proto(layer, "param", [{"lr_mult": 1}, {}])
    assign_proto(layer, "blobs", caffe_pb2.BlobProto(num=1))
    assign_proto(layer, "include", [])
    assert list(layer.loss_weight) == [2.0, 3.0]
    assert list(layer.bottom) == ["a", "b"]
    assert len(layer.param) == 2
    assert layer.param[0].lr_mult == 1
    assert layer.blobs[0].num == 1
    with pytest.raises(SpecError, match="LayerParameter has no field 'botom'; did you mean 'bot"):
        assign_proto(layer, "botom", "x")


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30))
def test_layers_come_after_what_they_read(pairs):
    tops = [layers.Input()]
    for a, b in pairs:
        tops.append(layers.Eltwise(tops[a % len(tops)], tops[b % len(tops)]))
    made: set[str] = set()
    for layer in to_proto(*tops).layer:
        assert set(layer.bottom) <= made
        made |= set(layer.top)
    assert len(made) == len(tops)
