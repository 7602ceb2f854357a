"""Which layers run backward.  The expectations follow Caffe's net.cpp, Init."""

import pytest

from sparknet.graph import Graph, build
from sparknet.proto import read_net
from tests.goldens import GOLDENS
from tests.graph.nets import dense, graph, layer, needing_backward, source

X, T = source("x", 3, 4), source("t", 3, 2)


def loss(name: str, bottom: str) -> str:
    return layer("EuclideanLoss", name, f"{bottom} t", name)


def golden(name: str) -> Graph:
    return build(read_net(GOLDENS / "layers" / f"{name}.prototxt"))


@pytest.mark.parametrize(
    ("name", "backward"),
    [
        ("no_force_backward", ["l", "loss"]),
        ("lr_mult_zero", ["l", "loss"]),
        ("lr_mult_zero_forced", ["in_x", "in_label", "l0", "l", "loss"]),
        ("propagate_down_false", ["l", "loss"]),
        ("propagate_down_branch", ["l0", "h_l0_0_split", "a", "c", "la", "lc"]),
        ("dead_branch", ["l0", "h_l0_0_split", "a", "la"]),
        ("propagate_down_true_input", ["a", "la"]),
        ("loss_and_accuracy", ["f", "y_f_0_split", "loss"]),
    ],
)
def test_goldens(name, backward):
    assert needing_backward(golden(name)) == backward


@pytest.mark.parametrize(
    ("name", "node", "wants"),
    [
        ("no_force_backward", "l", (False,)),
        ("no_force_backward", "loss", (True, False)),
        ("lr_mult_zero_forced", "loss", (True, False)),
        ("lr_mult_zero_forced", "l0", (True,)),
        ("propagate_down_false", "l", (False,)),
        ("propagate_down_branch", "c", (False,)),
        ("propagate_down_branch", "a", (True,)),
        ("propagate_down_true_input", "a", (True,)),
        ("dead_branch", "unused", (False,)),
    ],
)
def test_golden_bottoms(name, node, wants):
    assert golden(name).node(node).propagate_down == wants


def test_any_blob_with_a_weight_is_a_loss():
    net = graph(X, dense("f", "x", "y", more="loss_weight: -0.5"))
    assert needing_backward(net) == ["f"]
    assert net.loss_weights == {"y": -0.5}


def test_silence_leads_to_no_loss():
    net = graph(
        X, T, dense("f", "x", "y"), layer("Silence", "s", "y"), dense("g", "x", "z"), loss("l", "z")
    )
    assert needing_backward(net) == ["g", "l"]


def test_batch_norm_asks_for_a_gradient_unless_told_otherwise():
    def net(more: str) -> Graph:
        norm = layer("BatchNorm", "n", "x", "h", more)
        return graph(X, T, norm, dense("f", "h", "y"), loss("l", "y"))

    assert needing_backward(net("")) == ["n", "f", "l"]
    assert needing_backward(net("param { lr_mult: 0 } " * 3)) == ["f", "l"]
    assert not any(ref.needs_gradient for ref in net("").node("n").params)


def test_force_backward_stops_at_labels():
    net = graph(
        X,
        source("label", 3),
        layer("SoftmaxWithLoss", "l", "x label", "loss"),
        net="force_backward: true",
    )
    assert net.node("l").propagate_down == (True, False)
