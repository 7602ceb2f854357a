"""What a net predicts: its last blobs without losses, accuracies and what only they need."""

import pytest

from sparknet.net.entries import predictions
from sparknet.proto import parse_net
from tests.graph.nets import dense, layer, source, text

X, Y = source("x", 4, 3), source("y", 4, 2)


def loss(kind: str, bottoms: str, more: str = "") -> str:
    return layer(kind, "loss", bottoms, "loss", more)


def eltwise(coeff: str = "") -> str:
    more = f"eltwise_param {{ operation: SUM {coeff} }}"
    return layer("Eltwise", "difference", "ip y", "difference", more)


IP = dense("ip", "x", "ip")
SQUARES = layer(
    "Reduction", "sum", "difference", "sum", "reduction_param { operation: SUMSQ } loss_weight: 1"
)

NETS: dict[str, tuple[list[str], list[str]]] = {
    "regression": ([X, Y, IP, loss("EuclideanLoss", "ip y")], ["ip"]),
    "target first": ([X, Y, IP, loss("EuclideanLoss", "y ip")], ["ip"]),
    "robust regression": ([X, Y, IP, loss("SmoothL1Loss", "ip y")], ["ip"]),
    "several labels": ([X, Y, IP, loss("SigmoidCrossEntropyLoss", "ip y")], ["ip"]),
    "a target that is scaled first": (
        [
            X,
            Y,
            layer("Power", "scale", "y", "scaled", "power_param { scale: 0.01 }"),
            IP,
            loss("EuclideanLoss", "ip scaled"),
        ],
        ["ip"],
    ),
    "two targets in one": (
        [
            X,
            Y,
            IP,
            dense("other", "x", "other"),
            layer("Slice", "cut", "y", "y1 y2", "slice_param { axis: 1 }"),
            loss("EuclideanLoss", "ip y1"),
            layer("EuclideanLoss", "loss2", "other y2", "loss2"),
        ],
        ["ip", "other"],
    ),
    "a loss put together": ([X, Y, IP, eltwise("coeff: [1, -1]"), SQUARES], ["ip"]),
    "a user's own loss": (
        [
            X,
            Y,
            IP,
            layer(
                "Python", "l", "ip y", "l", 'python_param { module: "m" layer: "L" } loss_weight: 1'
            ),
        ],
        ["ip"],
    ),
    "an input that masks": ([X, Y, IP, eltwise()], ["difference"]),
    "an autoencoder": (
        [X, IP, dense("out", "ip", "out"), loss("EuclideanLoss", "out x")],
        ["out"],
    ),
    "twins": (
        [
            X,
            source("x2", 4, 3),
            source("same", 4),
            IP,
            dense("ip2", "x2", "ip2"),
            loss("ContrastiveLoss", "ip ip2 same"),
        ],
        ["ip", "ip2"],
    ),
    "in place": (
        [X, Y, IP, layer("ReLU", "relu", "ip", "ip"), loss("EuclideanLoss", "ip y")],
        ["ip"],
    ),
    "nothing learned": (
        [X, Y, layer("Softmax", "s", "x", "s"), loss("MultinomialLogisticLoss", "s y")],
        ["s"],
    ),
    "an auxiliary classifier": (
        [
            X,
            Y,
            IP,
            dense("more", "ip", "more"),
            loss("EuclideanLoss", "ip y"),
            layer("EuclideanLoss", "loss2", "more y", "loss2"),
        ],
        ["more"],
    ),
    "labels that nothing reads": ([X, Y, IP], ["ip"]),
    "silenced": ([X, Y, IP, layer("Silence", "quiet", "y", "")], ["ip"]),
}


@pytest.mark.parametrize("name", NETS)
def test_predictions(name):
    layers, expected = NETS[name]
    net = parse_net(text(*layers))
    learned = [layer.name for layer in net.layer if layer.type == "InnerProduct"]
    assert predictions(net, learned) == expected
