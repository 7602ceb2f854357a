import pickle
import sys

import pytest

from sparknet.errors import LayerError
from sparknet.graph import build
from sparknet.layers.layer import TRAIN
from sparknet.proto import caffe_pb2
from tests.graph.nets import dense, graph, layer, source

X = source("x", 2, 3)


def test_an_empty_net():
    net = build(caffe_pb2.NetParameter())
    assert (net.nodes, net.blobs, net.inputs, net.outputs, net.params) == ((), {}, (), (), ())


def test_an_old_description_is_upgraded():
    net = caffe_pb2.NetParameter(input=["x"], input_dim=[2, 3, 1, 1])
    net.layers.add(name="r", type=caffe_pb2.V1LayerParameter.RELU, bottom=["x"], top=["y"])
    built = build(net)
    assert [node.type for node in built.nodes] == ["Input", "ReLU"]
    assert built.blobs == {"x": (2, 3, 1, 1), "y": (2, 3, 1, 1)}
    assert (len(net.layers), len(net.layer)) == (1, 0)


def test_names_shapes_inputs_and_outputs():
    net = graph(X, source("b", 2, 5), dense("f", "x", "y", 4), net='name: "n"')
    assert (net.name, net.phase, net.layers) == ("n", TRAIN, ["in_x", "in_b", "f"])
    assert net.blobs == {"x": (2, 3), "b": (2, 5), "y": (2, 4)}
    assert (net.inputs, net.outputs) == (("x", "b"), ("b", "y"))
    assert (net.blob_bytes, net.param_bytes) == (4 * (6 + 10 + 8), 4 * 16)


def test_outputs_are_in_byte_order():
    names = ["b", "B", "é", "z", "a_", "a0"]
    net = graph(*(source(name, 1) for name in names))
    assert net.outputs == ("B", "a0", "a_", "b", "z", "é")
    assert net.inputs == tuple(names)


def test_losses_make_their_own_top():
    targets = [source("t", 2, 3), source("u", 2, 3)]
    losses = [layer("EuclideanLoss", "a", "x t"), layer("EuclideanLoss", "b", "x u")]
    net = graph(X, *targets, *losses)
    assert net.node("a").tops == net.node("b").tops == ("(automatic)",)
    assert net.node("a").top_ids != net.node("b").top_ids
    assert net.blob_names.count("(automatic)") == 2
    assert net.outputs == ()
    assert (net.node("a").loss_weights, net.node("b").loss_weights) == ((1,), (1,))


def test_a_blob_called_automatic_is_nothing_special():
    net = graph(source("(automatic)", 2), layer("TanH", "t", "(automatic)", "y"))
    assert net.outputs == ("y",)


def test_a_second_top_of_a_loss_carries_no_weight():
    net = graph(X, source("l", 2), layer("SoftmaxWithLoss", "s", "x l", "loss prob"))
    assert net.node("s").loss_weights == (1, 0)
    assert net.blobs["prob"] == (2, 3)


def test_sizes_beyond_caffes_are_refused_at_once():
    doubling = [layer("Concat", f"c{i}", f"x{i} x{i}", f"x{i + 1}") for i in range(5000)]
    with pytest.raises(LayerError, match="layer 'c30'"):
        graph(source("x0", 1, 1), *doubling)


def test_graphs_survive_pickling():
    net = graph(
        source("x", 2, 3, 5, 5),
        layer("Convolution", "c", "x", "y", "convolution_param { num_output: 2 kernel_size: 3 }"),
        dense("f", "y", "z", more='param { name: "w" }'),
    )
    copy = pickle.loads(pickle.dumps(net))
    assert copy.blobs == net.blobs
    assert copy.parameter == net.parameter
    assert copy.params == net.params
    assert copy.reshape({"x": (4, 3, 5, 5)}).blobs["z"] == (4, 2)


def test_many_layers_take_linear_time():
    def calls(layers: int) -> int:
        """Functions called, a measure of work that no other process disturbs."""
        net = caffe_pb2.NetParameter()
        first = net.layer.add(name="x", type="Input", top=["b0"])
        first.input_param.shape.add(dim=[1])
        for i in range(layers):
            net.layer.add(name=f"l{i}", type="ReLU", bottom=[f"b{i // 2}"], top=[f"b{i + 1}"])
        count = 0

        def hook(*_):
            nonlocal count
            count += 1

        sys.setprofile(hook)
        try:
            graph = build(net)
        finally:
            sys.setprofile(None)
        assert len(graph.nodes) > layers
        return count

    calls(10)
    assert calls(800) < 2.2 * calls(400)
