"""What stays known of blobs, phases that a layer does not name, and layers that are left out."""

import pytest

from sparknet.graph import build, work
from sparknet.graph.records import Outline
from sparknet.graph.unknown import leave_out_unknown
from sparknet.layers import TEST
from sparknet.layers.layer import TRAIN
from sparknet.proto import parse_net
from tests.graph.nets import dense, graph, layer, source, text

OWN = 'python_param { module: "no" layer: "No" }'


@pytest.mark.parametrize("phase", [TRAIN, TEST])
def test_a_layer_that_names_no_phase_has_the_nets(phase):
    plain, own = source("x", 2, 3), dense("a", "x", "y", more="phase: TEST")
    net = build(parse_net(text(plain, dense("b", "x", "z"), own)), phase)
    assert net.node("b").layer.phase == phase
    assert net.node("b").layer.parameter.phase == phase
    assert net.node("a").layer.phase == TEST


def test_a_blob_of_two_readers_moves_the_sum_of_their_gradients():
    """Two gradients of 7 x 13 are read and one is written; a blob of one reader has no Split."""
    net = graph(
        source("x", 7, 11),
        dense("a", "x", "h", 13),
        dense("b", "h", "y", 2, "loss_weight: 1"),
        dense("c", "h", "z", 2, "loss_weight: 1"),
    )
    [split] = [node for node in net.nodes if node.layer.type == "Split"]
    assert work(net, split).backward_bytes == 4 * 3 * 7 * 13
    assert work(net, split).forward_bytes == 0
    flat = graph(source("x", 7, 11), dense("a", "x", "h", 13), layer("Flatten", "f", "h", "y"))
    assert work(flat, flat.node("f")).backward_bytes == 0


def test_a_blob_that_own_code_writes_over_is_known_no_longer():
    net = parse_net(
        text(
            layer("ReLU", "r", "x", "y"),
            layer("Python", "p", "y", "y", OWN),
            dense("d", "y", "z"),
            layer("ReLU", "s", "x", "w"),
        )
    )
    outline = Outline(net.layer, TEST)
    shapes, axes = outline.axes({"x": (4, 3)}, {"x": 0})
    assert shapes == {"x": (4, 3), "w": (4, 3)}
    assert axes == {"x": 0, "w": 0}


def test_vectors_of_layers_behind_others():
    net = parse_net(
        text(
            layer("ReLU", "r", "x", "y"),
            dense("d", "y", "z"),
            layer("Python", "p", "z", "z", OWN),
            dense("e", "z", "w"),
        )
    )
    actual = Outline(net.layer, TEST).vectors({"x": (4, 3, 2)})
    assert actual["d"] == ((3, 2),)
    assert set(actual) == {"r", "d"}


def test_layers_that_read_of_unknown_ones_are_left_out_until_another_writes():
    net = parse_net(
        text(
            layer("Novel", "n", "x", "y"),
            layer("ReLU", "r", "y", "z"),
            layer("ReLU", "s", "x", "y"),
            layer("ReLU", "t", "y", "u"),
        )
    )
    kept, left = leave_out_unknown(net)
    assert [one.name for one in kept.layer] == ["s", "t"]
    assert [(one.name, one.type) for one in left] == [("n", "Novel"), ("r", "ReLU")]
    assert left[1].reason == "reads 'y' of 'n'"
    assert left[0].reason.startswith("unknown type")
