"""Losses against plain numpy, with hypothesis choosing shapes, labels and options."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import LayerError
from sparknet.native import set_threads, threads
from sparknet.proto import write_blob
from tests.caffe.gradient import biased, build, check_gradients, run

FEW = settings(max_examples=60)


def layer(kind: str, bottoms: str, options: str = "", tops: str = 'top: "loss"') -> str:
    names = " ".join(f'bottom: "{name}"' for name in bottoms.split())
    return f'layer {{ name: "l" type: "{kind}" {names} {tops} {options} }}\n'


def learned(text: str) -> str:
    """The text over x and a bias, of which only x has a gradient (`biased`)."""
    return biased("x") + text.replace('bottom: "x"', 'bottom: "xb"')


def loss_of(text, inputs):
    net = run(text, inputs)
    return float(net.blobs["loss"].data)


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def test_an_infogain_matrix_has_no_gradient():
    """Caffe ends: infogain_loss_layer.cpp, Backward_cpu."""
    inputs = {"x": np.ones((2, 3)), "label": np.zeros(2), "matrix": np.ones((1, 1, 3, 3))}
    net = run(layer("InfogainLoss", "x label matrix"), inputs)
    message = "layer 'l': InfogainLoss: .* the infogain matrix, bottom 'matrix'; leave force_backw"
    with pytest.raises(LayerError, match=message):
        net.backward()


def test_infogain_matrix_of_a_file(tmp_path):
    matrix = np.random.default_rng(0).uniform(0, 1, (1, 1, 3, 3)).astype(np.float32)
    write_blob(tmp_path / "h.binaryproto", matrix)
    x = np.random.default_rng(1).normal(size=(4, 3))
    labels = np.array([0, 1, 2, 1])
    text = layer(
        "InfogainLoss", "x label", f'infogain_loss_param {{ source: "{tmp_path}/h.binaryproto" }}'
    )
    want = -np.mean((matrix[0, 0][labels] * np.log(softmax(x, 1))).sum(1))
    assert loss_of(text, {"x": x, "label": labels}) == pytest.approx(want, rel=1e-5)
    check_gradients(text, {"x": x, "label": labels}, of=["x"])


@pytest.mark.parametrize("weight", [1, 0.3])
@pytest.mark.parametrize(
    ("options", "bottoms"),
    [
        ("", "x z"),
        ("smooth_l1_loss_param { sigma: 1.7 }", "x z inside"),
        ("smooth_l1_loss_param { sigma: 0.6 }", "x z inside outside"),
    ],
)
def test_gradient_of_smooth_l1(options, bottoms, weight):
    rng = np.random.default_rng(11)
    every = {name: rng.normal(size=(4, 3)) for name in "xz"}
    every |= {name: rng.uniform(0.5, 2, (4, 3)) for name in ("inside", "outside")}
    text = layer("SmoothL1Loss", bottoms, f"{options} loss_weight: {weight}")
    inputs = {name: every[name] for name in bottoms.split()}
    check_gradients(text, inputs, of=["x", "z"], step=1e-3, tolerance=3e-3)


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 6))
@FEW
def test_smooth_l1(seed, num, size):
    rng = np.random.default_rng(seed)
    # What the engine sees, so that a small difference of the two is the same for both.
    x, z = (rng.normal(size=(num, size)).astype(np.float32).astype(float) for _ in range(2))
    inside, outside = (rng.uniform(0, 2, x.shape) for _ in range(2))
    d = inside * (x - z)
    error = np.where(np.abs(d) < 0.25, 2 * d**2, np.abs(d) - 0.125)
    text = layer("SmoothL1Loss", "x z i o", "smooth_l1_loss_param { sigma: 2 }")
    actual = loss_of(text, {"x": x, "z": z, "i": inside, "o": outside})
    assert actual == pytest.approx((outside * error).sum() / num, rel=1e-5, abs=1e-6)


CLASSIFIERS = {
    "SoftmaxWithLoss": "x label",
    "InfogainLoss": "x label h",
    "MultinomialLogisticLoss": "x label",
    "HingeLoss": "x label",
    "Accuracy": "x label",
}


@pytest.mark.parametrize("label", [-1, 3, 3e9, -3e38, np.nan, np.inf])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_label_out_of_range(kind, label):
    inputs = {"x": np.ones((2, 3)), "label": np.zeros(2), "h": np.eye(3)[None, None]}
    bottoms = CLASSIFIERS[kind]
    given = {name: inputs[name] for name in bottoms.split()}
    force = kind != "InfogainLoss"
    text = layer(kind, bottoms)
    net = run(text if force else learned(text), given, force=force)
    net.blobs["label"].data[1] = label
    with pytest.raises(
        LayerError, match=f"'l'.*{kind}.*label .* out of range: there are 3 classes"
    ):
        net.forward()
    if kind != "Accuracy":
        with pytest.raises(LayerError, match="out of range"):
            net.backward()


@pytest.mark.parametrize(
    ("kind", "least"), [("SoftmaxWithLoss", np.finfo("f4").tiny), ("InfogainLoss", 1e-20)]
)
@pytest.mark.parametrize("apart", [1e4, 1e7, 1e9, 1e30])
def test_the_loss_of_a_diverged_net_is_the_largest(kind, least, apart):
    inputs = {"x": [[apart, 0], [apart, 0]], "t": [1, 1]}
    if kind == "InfogainLoss":
        inputs["m"] = np.eye(2)
    assert loss_of(layer(kind, " ".join(inputs)), inputs) == pytest.approx(-np.log(least), rel=1e-4)


@pytest.mark.parametrize("value", [0, -2, -1e30])
def test_a_probability_below_zero_has_the_largest_loss(value):
    inputs = {"x": [[value, 1]], "t": [0]}
    actual = loss_of(layer("MultinomialLogisticLoss", "x t"), inputs)
    assert actual == pytest.approx(-np.log(1e-20), rel=1e-4)


@pytest.mark.parametrize("ignore", [-1, 255])
def test_ignored_labels_may_be_out_of_range(ignore):
    x = np.random.default_rng(0).normal(size=(2, 3))
    text = layer("SoftmaxWithLoss", "x label", f"loss_param {{ ignore_label: {ignore} }}")
    one = loss_of(text, {"x": x, "label": np.array([ignore, 2])})
    assert one == pytest.approx(-np.log(softmax(x, 1)[1, 2]), rel=1e-5)


def test_fractions_of_labels_are_cut_off():
    x = np.random.default_rng(0).normal(size=(2, 3))
    text = layer("SoftmaxWithLoss", "x label")
    cut = loss_of(text, {"x": x, "label": np.array([1.9, -0.5])})
    assert cut == loss_of(text, {"x": x, "label": np.array([1, 0])})


def test_contrastive_label_that_is_no_number():
    inputs = {"x": np.ones((1, 2)), "z": np.ones((1, 2)), "same": np.array([np.nan])}
    with pytest.raises(LayerError, match="label nan is neither 0 nor 1"):
        loss_of(layer("ContrastiveLoss", "x z same"), inputs)


@pytest.mark.parametrize("kind", [*list(CLASSIFIERS)[:-1], "SigmoidCrossEntropyLoss"])
def test_no_gradient_for_labels_that_are_computed(kind):
    x, labels = np.ones((2, 3)), np.zeros((2, 1))
    if kind == "SigmoidCrossEntropyLoss":
        labels = x
    copy = 'layer { name: "copy" type: "Power" bottom: "label" top: "t" }\n'
    inputs = {"x": x, "label": labels, "h": np.eye(3)[None, None]}
    if kind != "InfogainLoss":
        del inputs["h"]
    bottoms = "x t h" if kind == "InfogainLoss" else "x t"
    net = run(copy + layer(kind, bottoms, "propagate_down: true " * len(inputs)), inputs)
    with pytest.raises(LayerError, match=f"'l'.*{kind}: has no gradient for the .*'t'"):
        net.backward()


@pytest.mark.parametrize("kind", ["SoftmaxWithLoss", "InfogainLoss"])
def test_threads_may_change_between_forward_and_backward(kind):
    rng = np.random.default_rng(0)
    inputs = {"x": rng.normal(size=(4, 3)), "label": rng.integers(0, 3, 4)}
    if kind == "InfogainLoss":
        inputs["h"] = rng.uniform(size=(1, 1, 3, 3))
    net = build(learned(layer(kind, " ".join(inputs))), inputs, force=False)
    before = threads()
    try:
        net.forward()
        net.backward()
        want = np.array(net.blobs["xb"].diff)
        set_threads(before + 1)
        net.backward()
    finally:
        set_threads(before)
    assert want.any()
    assert np.array_equal(net.blobs["xb"].diff, want)
