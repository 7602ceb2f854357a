"""What a net's layers must be among themselves: one sentence for each mistake."""

import pytest

from sparknet.dsl import (
    Accuracy,
    CaffeLayer,
    Concat,
    ConvLayer,
    Data,
    Eltwise,
    LayerSpec,
    LinearLayer,
    NetParams,
    PoolLayer,
    RDDLayer,
    ReLU,
    Slice,
    Split,
)
from sparknet.errors import LayerError, SpecError

DATA = RDDLayer("data", shape=[2, 3, 8, 8])


def refused(*layers: LayerSpec) -> str:
    with pytest.raises(LayerError) as caught:
        NetParams("n", *layers)
    return str(caught.value)


def test_names_are_unique():
    assert refused(DATA, ReLU("r", "data"), ReLU("r", "data", tops="b")) == (
        "layer 'r': two layers have this name; rename one, or separate them with include"
    )
    NetParams("n", RDDLayer("d", shape=[1], include="TRAIN"), RDDLayer("d", shape=[2], exclude=0))


def test_unknown_bottoms():
    assert refused(DATA, ReLU("r", "dta")) == (
        "layer 'r': bottom 'dta' is made by no layer; did you mean 'data'?"
    )
    assert refused(ReLU("r", "data")) == "layer 'r': bottom 'data' is made by no layer"
    assert refused(ReLU("r", "r", in_place=True)) == "layer 'r': bottom 'r' is made by no layer"


def test_later_bottoms():
    assert refused(DATA, ReLU("r", "c"), ConvLayer("c", "data", kernel=3, num_filters=1)) == (
        "layer 'r': bottom 'c' is produced later, by layer 'c'; move 'c' up"
    )


def test_cycles():
    two = [Eltwise("a", ["data", "b"]), ReLU("b", "a")]
    assert refused(DATA, *two) == "layer 'a': bottom 'b' closes a cycle: a → b → a"
    three = [Concat("x", ["data", "z"]), ReLU("y", "x"), ReLU("z", "y")]
    assert refused(DATA, *three) == "layer 'x': bottom 'z' closes a cycle: x → y → z → x"
    itself = CaffeLayer("s", ["data", "t"], type="Eltwise", tops="t")
    assert refused(DATA, itself) == "layer 's': bottom 't' closes a cycle: s → s"


def test_tops_are_made_once():
    assert refused(DATA, ReLU("r", "data", tops="x"), ReLU("s", "data", tops="x")) == (
        "layer 's': top 'x' is already made by layer 'r'; rename one"
    )
    assert refused(DATA, Slice("s", "data", tops=["x", "x"])).startswith(
        "layer 's': top 'x' is already made by layer 's'"
    )


def test_in_place_is_no_second_maker():
    net = NetParams("n", DATA, ReLU("r", "data", in_place=True), ReLU("s", "data", in_place=True))
    assert net.graph().blobs == {"data": (2, 3, 8, 8)}


def test_shapes_name_the_layer():
    with pytest.raises(LayerError, match="layer 'c': "):
        NetParams("n", DATA, ConvLayer("c", "data", kernel=99, num_filters=2))
    with pytest.raises(LayerError, match="layer 'e': "):
        NetParams("n", DATA, PoolLayer("p", "data", kernel=2), Eltwise("e", ["data", "p"]))


def test_both_phases_are_checked():
    label = RDDLayer("label", shape=[2])
    scores = LinearLayer("ip", "data", num_outputs=4)
    with pytest.raises(LayerError, match="layer 'acc': "):
        NetParams(
            "n", DATA, label, scores, Accuracy("acc", ["ip", "label"], include="TEST", axis=7)
        )


def test_a_net_may_serve_one_phase_only():
    test = RDDLayer("data", shape=[2, 3], include="TEST")
    net = NetParams("n", test, LinearLayer("ip", "data", num_outputs=4))
    assert net.graph().phase == net.graph("test").phase
    assert "4" in net.summary()
    with pytest.raises(SpecError):
        net.graph("train")


def test_a_net_must_serve_some_phase():
    parts = [
        RDDLayer("a", shape=[1, 3], include="TRAIN"),
        RDDLayer("b", shape=[1, 3], include="TEST"),
        Eltwise("sum", ["a", "b"]),
    ]
    assert refused(*parts) == (
        "layer 'sum': bottom 'b' comes only from layers that include rules leave out"
    )


def test_stages_may_come_later():
    staged = RDDLayer("data", shape=[1, 3], include={"stage": "fit"})
    net = NetParams("n", staged, ReLU("r", "data"))
    assert net.graph("train", stages=["fit"]).blobs == {"data": (1, 3), "r": (1, 3)}
    with pytest.raises(SpecError):
        net.graph("train")


def test_shapes_stay_open_where_a_file_is_missing():
    source = Data("data", tops=["data", "label"], source="/nowhere/lmdb", batch_size=4)
    net = NetParams("n", source, LinearLayer("ip", "data", num_outputs=4))
    with pytest.raises(SpecError, match="nowhere"):
        net.graph()
    with pytest.raises(LayerError, match="did you mean 'data'"):
        NetParams("n", source, ReLU("r", "dat"))


def test_a_python_layer_does_not_run_when_the_net_is_built():
    module = {"module": "antigravity_of_nobody", "layer": "Layer"}
    net = NetParams("n", DATA, CaffeLayer("own", "data", type="Python", python_param=module))
    with pytest.raises(LayerError, match=r"layer 'own': .*antigravity_of_nobody"):
        net.graph()


def test_split_layers_are_ordinary():
    net = NetParams("n", DATA, Split("s", "data", tops=["a", "b"]), ReLU("r", "a"))
    assert net.graph().blobs["r"] == (2, 3, 8, 8)
