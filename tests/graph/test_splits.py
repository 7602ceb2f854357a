import pytest

from sparknet.errors import LayerError
from sparknet.graph import Graph, insert_splits, splits
from sparknet.graph.build import InPlaceWarning
from sparknet.layers.layer import TEST, TRAIN
from sparknet.proto import parse_net
from tests.graph.nets import dense, graph, layer, source, text


def test_a_loss_weight_moves_to_the_first_copy():
    net = graph(
        source("x", 2, 3),
        dense("f", "x", "y", more="loss_weight: 2"),
        layer("Power", "p", "y", "z"),
    )
    assert net.node("f").loss_weights == (0,)
    assert net.loss_weights == {"y_f_0_split_0": 2}
    assert net.node("p").bottoms == ("y_f_0_split_1",)
    assert net.outputs == ("y_f_0_split_0", "z")


def test_only_the_weight_of_the_shared_top_moves():
    net = graph(
        source("x", 2, 4),
        layer("Slice", "s", "x", "p q", "loss_weight: 0.5 loss_weight: 3 slice_param { axis: 1 }"),
        layer("TanH", "t", "p", "u"),
    )
    assert net.loss_weights == {"p_s_0_split_0": 0.5, "q": 3}


def test_a_loss_that_is_read_counts_once():
    net = graph(
        source("x", 2, 3),
        source("t", 2, 3),
        layer("EuclideanLoss", "l", "x t", "loss", "loss_weight: 1"),
        layer("Power", "p", "loss", "twice"),
    )
    assert net.loss_weights == {"loss_l_0_split_0": 1}


def test_a_default_loss_weight_makes_no_split():
    net = graph(
        source("x", 2, 3),
        source("t", 2, 3),
        layer("EuclideanLoss", "l", "x t", "loss"),
        layer("Power", "p", "loss", "twice"),
    )
    assert net.loss_weights == {"loss": 1}
    assert "loss_l_0_split" not in net.layers


def test_the_description_is_left_as_it_was():
    net = parse_net(text(source("x", 2, 3), layer("Eltwise", "e", "x x", "y")))
    before = net.SerializeToString()
    insert_splits(net)
    assert net.SerializeToString() == before


@pytest.mark.parametrize(
    ("bottom", "says"),
    [
        ("dat", "bottom 'dat' is produced by no layer; did you mean 'data'"),
        ("h", "bottom 'h' is produced only later, by layer 'g'"),
        ("y", "bottom 'y' is produced by no layer before this one"),
    ],
)
def test_an_unknown_bottom_is_refused(bottom, says):
    with pytest.raises(LayerError, match=f"layer 'f': {says}"):
        graph(source("data", 2, 3), dense("f", bottom, "y"), dense("g", "data", "h"))


def test_long_names_times_many_readers_take_no_memory(monkeypatch):
    monkeypatch.setattr(splits, "NAMES_LIMIT", 100_000)
    reader = layer("Eltwise", "e", "x " * 100, "y")
    with pytest.raises(LayerError, match="blob 'x' has 100 readers"):
        graph(layer("Input", "n" * 1000, "", "x", "input_param { shape { dim: 1 } }"), reader)


def views(top: str, phase: int) -> Graph:
    """A blob that one layer reads, and another through a view, in place or not."""
    return graph(
        source("x", 2, 3),
        layer("TanH", "t", "x", "t"),
        layer("Reshape", "f", "t", "f", "reshape_param { shape { dim: 0 dim: -1 } }"),
        layer("Power", "p", "f", top),
        layer("Exp", "e", "t", "e"),
        layer("Eltwise", "s", f"e {top}", "s"),
        phase=phase,
    )


def test_what_a_layer_in_place_overwrites_through_a_view_is_told():
    told = "reads values that layer 'p' has overwritten, which works in place on a view"
    with pytest.raises(LayerError, match=f"layer 'e': .*{told} of the same blob, 'f'"):
        views("f", TRAIN)
    with pytest.warns(InPlaceWarning, match=told):
        views("f", TEST)
    assert views("p", TRAIN).outputs == ("s",)
