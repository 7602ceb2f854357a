"""What the numbers of a net's predictions are, and the layers that tell it."""

from dataclasses import asdict

import pytest

from sparknet.net import Net
from sparknet.net.heads import Head, find_heads, served
from tests.graph.nets import dense, layer, source, text

X, LABEL = source("x", 4, 3), source("label", 4)
PICTURE = source("x", 2, 3, 5, 4), source("label", 2, 5, 4)
PIXELS = layer("Convolution", "c", "x", "c", "convolution_param { num_output: 3 kernel_size: 1 }")


def loss(kind: str, bottoms: str, more: str = "") -> str:
    return layer(kind, "loss", bottoms, "loss", more)


def ip(outputs: int) -> str:
    return dense("ip", "x", "ip", outputs)


CLASSES = {"blob": "ip", "kind": "classes", "scores": "ip", "squashed_by": "softmax"}
THREE = {"record": (3,), "values": 3, "choices": 3}
LABELS = {"blob": "ip", "kind": "labels", "scores": "ip", "squashed_by": "sigmoid"}
NETS = {
    "classes": (
        [X, LABEL, ip(3), loss("SoftmaxWithLoss", "ip label")],
        {**CLASSES, **THREE, "target": "label"},
    ),
    "classes of which one is ignored": (
        [X, LABEL, ip(3), loss("SoftmaxWithLoss", "ip label", "loss_param { ignore_label: 2 }")],
        {**CLASSES, **THREE, "target": "label", "ignored": 2},
    ),
    "probabilities without a loss": (
        [X, ip(3), layer("Softmax", "p", "ip", "prob")],
        {**CLASSES, **THREE, "blob": "prob", "probabilities": "prob"},
    ),
    "numbers without a loss": (
        [X, ip(3)],
        {"blob": "ip", "kind": "classes", "scores": "ip", **THREE},
    ),
    "one number without a loss": ([X, ip(1)], {"blob": "ip", "kind": "numbers", "scores": "ip"}),
    "a label": (
        [X, source("label", 4, 1), ip(1), loss("SigmoidCrossEntropyLoss", "ip label")],
        {**LABELS, "target": "label"},
    ),
    "labels": (
        [X, source("label", 4, 3), ip(3), loss("SigmoidCrossEntropyLoss", "ip label")],
        {**LABELS, **THREE, "target": "label"},
    ),
    "numbers": (
        [X, source("label", 4, 3), ip(3), loss("EuclideanLoss", "label ip")],
        {"blob": "ip", "kind": "numbers", "scores": "ip", "target": "label", **THREE},
    ),
    "a class for each pixel": (
        [*PICTURE, PIXELS, loss("SoftmaxWithLoss", "c label")],
        {
            **CLASSES,
            "blob": "c",
            "scores": "c",
            "target": "label",
            "record": (3, 5, 4),
            "values": 60,
            "choices": 3,
        },
    ),
    "a class for each row, along the last axis": (
        [
            PICTURE[0],
            source("label", 2, 3, 5),
            layer("ReLU", "r", "x", "r"),
            loss("SoftmaxWithLoss", "r label", "softmax_param { axis: -1 }"),
        ],
        {
            **CLASSES,
            "blob": "r",
            "scores": "r",
            "target": "label",
            "axis": 3,
            "place": 2,
            "record": (3, 5, 4),
            "values": 60,
            "choices": 4,
        },
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_what_a_net_predicts(name):
    layers, wanted = NETS[name]
    (head,) = find_heads(Net(text(*layers)))
    assert head == Head(**wanted)
    assert Head.of({**asdict(head), "record": list(head.record)}) == head


@pytest.mark.parametrize(
    ("name", "single"),
    [
        ("classes", True),
        ("a label", True),
        ("labels", False),
        ("one number without a loss", True),
        ("numbers", False),
        ("a class for each pixel", False),
    ],
)
def test_whether_a_record_has_one(name, single):
    assert Head(**NETS[name][1]).is_single is single


@pytest.mark.parametrize(
    ("name", "types", "where"),
    [
        ("classes", ["Softmax"], (True, True, False)),
        ("probabilities without a loss", [], (True, True, False)),
        ("numbers without a loss", [], (True, False, False)),
        ("a label", ["Power", "Concat", "Sigmoid"], (True, True, False)),
        ("labels", ["Sigmoid"], (True, True, False)),
        ("a class for each pixel", ["Softmax", "ArgMax"], (True, True, True)),
    ],
)
def test_layers_that_are_missing_are_made(name, types, where):
    layers, _ = NETS[name]
    net = Net(text(*layers))
    described = net.tested.described
    heads = find_heads(net)
    made, found = served(described, heads)
    assert [one.type for one in made.layer[len(described.layer) :]] == types
    (told,) = found.values()
    assert (told.raw is not None, told.probability is not None, told.place is not None) == where
