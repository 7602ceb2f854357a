"""Operations and bytes of layers, against counts by hand."""

import pytest

from sparknet.graph import Graph, Work, forward_flops, work
from sparknet.layers.layer import TEST
from tests.graph.nets import dense, graph, layer, source

LOSS = "loss_weight: 1"


def of(net: Graph, name: str) -> Work:
    return work(net, net.node(name))


def convolution(options: str, *dims: int, kind: str = "Convolution") -> Graph:
    return graph(
        source("x", *dims), layer(kind, "c", "x", "y", f"convolution_param {{ {options} }}")
    )


def test_convolution():
    net = convolution("num_output: 5 kernel_size: 3", 2, 4, 10, 12)
    assert net.blobs["y"] == (2, 5, 8, 10)
    assert forward_flops(net, net.node("c")) == 2 * (2 * 5 * 8 * 10) * (4 * 3 * 3)


def test_groups_share_nothing():
    net = convolution("num_output: 8 kernel_size: 3 group: 4", 2, 4, 10, 12)
    assert of(net, "c").forward_flops == 2 * (2 * 8 * 8 * 10) * (1 * 3 * 3)
    deep = convolution(
        "num_output: 4 kernel_size: 3 group: 4", 1, 4, 5, 5, kind="DepthwiseConvolution"
    )
    assert of(deep, "c").forward_flops == 2 * (4 * 3 * 3) * 9


def test_deconvolution_scatters_each_input_value():
    net = convolution("num_output: 3 kernel_size: 4 stride: 2", 2, 6, 5, 7, kind="Deconvolution")
    assert of(net, "c").forward_flops == 2 * (2 * 6 * 5 * 7) * (3 * 4 * 4)


def test_backward_is_a_product_for_the_weights_and_one_for_the_input():
    net = graph(source("x", 7, 11), dense("a", "x", "h", 13), dense("b", "h", "y", 2, LOSS))
    first, second = of(net, "a"), of(net, "b")
    assert (first.forward_flops, first.backward_flops) == (2 * 7 * 11 * 13, 2 * 7 * 11 * 13)
    assert (second.forward_flops, second.backward_flops) == (2 * 7 * 13 * 2, 2 * 2 * 7 * 13 * 2)


def test_frozen_layers_do_nothing_backward():
    frozen = "param { lr_mult: 0 } param { lr_mult: 0 }"
    net = graph(source("x", 7, 11), dense("a", "x", "h", 13, frozen), dense("b", "h", "y", 2, LOSS))
    assert of(net, "a").backward_flops == of(net, "a").backward_bytes == 0
    assert of(net, "b").backward_flops == 2 * 7 * 13 * 2


def test_inner_product_along_an_axis():
    net = graph(
        source("x", 3, 4, 5),
        layer("InnerProduct", "ip", "x", "y", "inner_product_param { num_output: 6 axis: 2 }"),
    )
    assert of(net, "ip").forward_flops == 2 * (3 * 4) * 5 * 6


@pytest.mark.parametrize(
    ("kind", "matrices"), [("LSTM", 4 * 6 * 5 + 4 * 6 * 6), ("RNN", 6 * 5 + 6 * 6 + 6 * 6)]
)
def test_recurrent(kind, matrices):
    options = "recurrent_param { num_output: 6 }"
    net = graph(
        source("x", 7, 3, 5), source("cont", 7, 3), layer(kind, "r", "x cont", "y", options)
    )
    assert of(net, "r").forward_flops == 2 * 7 * 3 * matrices
    still = graph(
        source("x", 7, 3, 5),
        source("cont", 7, 3),
        source("s", 3, 2),
        layer(kind, "r", "x cont s", "y", options),
    )
    gates = 24 if kind == "LSTM" else 6
    assert of(still, "r").forward_flops == 2 * 7 * 3 * matrices + 2 * 3 * gates * 2


def test_bytes():
    net = graph(
        source("x", 2, 3),
        dense("a", "x", "h", 4),
        layer("ReLU", "r", "h", "h"),
        dense("b", "h", "y", 5, LOSS),
    )
    assert of(net, "a").forward_bytes == 4 * (2 * 3 + 2 * 4 + 3 * 4 + 4)
    assert of(net, "r").forward_bytes == 4 * (2 * 4 + 2 * 4)
    assert of(net, "r").backward_bytes == 4 * (2 * 4 + 2 * 4)
    weights = 4 * 5 + 5
    # The top's gradient and the input in, the input's gradient out, the weights in, and their
    # gradients in and out.
    assert of(net, "b").backward_bytes == 4 * (2 * 5 + 2 * 4 + 2 * 4 + weights + 2 * weights)
    assert of(net, "a").backward_bytes == 4 * (2 * 4 + 2 * 3 + 2 * (3 * 4 + 4))


def test_views_move_nothing():
    net = graph(source("x", 2, 3, 4), layer("Flatten", "f", "x", "y"), phase=TEST)
    assert of(net, "f") == Work(0, 0, 0, 0)
    assert of(net, "in_x") == Work(0, 0, 0, 0)


def test_embed_reads_the_rows_it_needs():
    net = graph(
        source("x", 5),
        layer(
            "Embed", "e", "x", "y", "embed_param { input_dim: 1000 num_output: 8 bias_term: false }"
        ),
    )
    assert of(net, "e").forward_bytes == 4 * (5 + 2 * 5 * 8)


def test_caffenet_is_known():
    """0.72 billion multiplications an image, each with its addition."""
    from sparknet.models.alexnet import caffenet as net

    shapes = net(batch=1, test_batch=1).graph("TRAIN")
    total = sum(forward_flops(shapes, node) for node in shapes.nodes)
    convolutions = 105_415_200 + 223_948_800 + 149_520_384 + 112_140_288 + 74_760_192
    assert total == 2 * (convolutions + 37_748_736 + 16_777_216 + 4_096_000)
