from sparknet.graph import build
from sparknet.graph.records import set_batch
from sparknet.layers.layer import TRAIN
from sparknet.proto import parse_net
from tests.graph.nets import dense, layer, source, text


def test_inputs_take_it_on_their_first_axis():
    net = parse_net(text(source("x", 2, 3), source("label", 2), dense("a", "x", "y")))
    set_batch(net, 7)
    shapes = build(net, TRAIN).blobs
    assert (shapes["x"], shapes["label"], shapes["y"]) == ((7, 3), (7,), (7, 2))


def test_with_time_first_it_is_the_second():
    options = "recurrent_param { num_output: 6 }"
    net = parse_net(
        text(source("x", 5, 2, 3), source("cont", 5, 2), layer("LSTM", "r", "x cont", "y", options))
    )
    set_batch(net, 7)
    assert build(net, TRAIN).blobs["y"] == (5, 7, 6)


def test_sources_that_read_files():
    net = parse_net(
        text(
            layer("Data", "d", tops="x", more='data_param { source: "s" batch_size: 2 }'),
            layer("DummyData", "n", tops="y", more="dummy_data_param { shape { dim: 2 dim: 3 } }"),
            layer("DummyData", "o", tops="z", more="dummy_data_param { num: 2 channels: 1 }"),
        )
    )
    set_batch(net, 7)
    assert net.layer[0].data_param.batch_size == 7
    assert list(net.layer[1].dummy_data_param.shape[0].dim) == [7, 3]
    assert list(net.layer[2].dummy_data_param.num) == [7]


def test_inputs_of_both_phases_are_changed():
    net = parse_net(
        "".join(
            f"layer {{ name: 'd' type: 'Input' top: 'd' include {{ phase: {phase} }} "
            f"input_param {{ shape {{ dim: {size} dim: 3 }} }} }}"
            for phase, size in (("TRAIN", 256), ("TEST", 50))
        )
    )
    set_batch(net, 2)
    assert [list(layer.input_param.shape[0].dim) for layer in net.layer] == [[2, 3], [2, 3]]
