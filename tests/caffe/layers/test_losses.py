"""Losses against plain numpy, with hypothesis choosing shapes, labels and options."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import LayerError
from sparknet.native import set_threads, threads
from sparknet.proto import write_blob
from tests.caffe.gradient import biased, build, check_gradients

FEW = settings(max_examples=60)
MODES = ["FULL", "VALID", "BATCH_SIZE", "NONE"]


def layer(kind: str, bottoms: str, options: str = "", tops: str = 'top: "loss"') -> str:
    names = " ".join(f'bottom: "{name}"' for name in bottoms.split())
    return f'layer {{ name: "l" type: "{kind}" {names} {tops} {options} }}\n'


def learned(text: str) -> str:
    """The text over x and a bias, of which only x has a gradient (`biased`)."""
    return biased("x") + text.replace('bottom: "x"', 'bottom: "xb"')


def loss_of(text, inputs):
    net = build(text, inputs)
    net.forward()
    return float(net.blobs["loss"].data)


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def divisor(mode: str, outer: int, inner: int, valid: int) -> int:
    modes = {"FULL": outer * inner, "VALID": valid, "BATCH_SIZE": outer, "NONE": 1}
    return max(1, modes[mode])


@st.composite
def classified(draw):
    """Scores (outer, classes, inner), labels, and the options of a classification loss."""
    outer, classes, inner = (draw(st.integers(1, n)) for n in (4, 5, 4))
    seed = draw(st.integers(0, 2**31))
    ignore = draw(st.none() | st.integers(-1, classes))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, (outer, 1, inner)).astype(np.float32)
    if ignore is not None:
        labels[rng.random(labels.shape) < 0.4] = ignore
    mode = draw(st.sampled_from(MODES))
    options = f"loss_param {{ normalization: {mode} "
    options += "}" if ignore is None else f"ignore_label: {ignore} }}"
    return {
        "x": rng.normal(size=(outer, classes, inner)) * draw(st.sampled_from([0.5, 3, 40])),
        "labels": labels,
        "valid": np.ones(labels.shape, bool) if ignore is None else labels != ignore,
        "mode": mode,
        "options": options,
        "rng": rng,
    }


def expected(case, matrix, least):
    """Loss and gradient of the cross entropy that a matrix over classes weights."""
    x, labels, valid = case["x"].astype(np.float32), case["labels"], case["valid"]
    p = softmax(x.astype(np.float64), 1)
    by = divisor(case["mode"], x.shape[0], x.shape[2], int(valid.sum()))
    loss, dx = 0.0, np.zeros_like(p)
    for n, _, i in np.argwhere(valid):
        row = matrix[int(labels[n, 0, i])]
        loss -= float(row @ np.log(np.maximum(p[n, :, i], least)))
        dx[n, :, i] = (p[n, :, i] * row.sum() - row) / by
    return loss / by, dx


def compare(text, case, loss, dx, **more):
    text, x = (learned(text), "xb") if more else (text, "x")
    inputs = {"x": case["x"], "label": case["labels"], **more}
    net = build(text, inputs, force=not more)
    net.forward()
    np.testing.assert_allclose(net.blobs["loss"].data, loss, rtol=1e-4, atol=1e-5)
    if "p" in net.blobs:
        want = softmax(case["x"].astype(np.float32), 1)
        np.testing.assert_allclose(net.blobs["p"].data, want, rtol=1e-4, atol=1e-7)
    net.backward()
    np.testing.assert_allclose(net.blobs[x].diff, dx, rtol=1e-4, atol=1e-5)


@given(classified(), st.booleans())
@FEW
def test_softmax_with_loss(case, second):
    loss, dx = expected(case, np.eye(case["x"].shape[1]), np.finfo(np.float32).tiny)
    tops = 'top: "loss" ' + ('top: "p"' if second else "")
    compare(layer("SoftmaxWithLoss", "x label", case["options"], tops), case, loss, dx)


@given(classified(), st.booleans())
@FEW
def test_infogain_loss(case, second):
    classes = case["x"].shape[1]
    matrix = case["rng"].uniform(-1, 2, (1, 1, classes, classes)).astype(np.float32)
    loss, dx = expected(case, matrix[0, 0].astype(np.float64), 1e-20)
    tops = 'top: "loss" ' + ('top: "p" loss_weight: 1 loss_weight: 0' if second else "")
    text = layer("InfogainLoss", "x label matrix", case["options"], tops)
    compare(text, case, loss, dx, matrix=matrix)


def test_an_infogain_matrix_has_no_gradient():
    """Caffe ends: infogain_loss_layer.cpp, Backward_cpu."""
    inputs = {"x": np.ones((2, 3)), "label": np.zeros(2), "matrix": np.ones((1, 1, 3, 3))}
    net = build(layer("InfogainLoss", "x label matrix"), inputs)
    net.forward()
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


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from(MODES),
    st.none() | st.integers(-1, 1),
    st.integers(0, 2**31),
    st.sampled_from([1.0, 30.0]),
)
@FEW
def test_sigmoid_cross_entropy_loss(outer, inner, mode, ignore, seed, size):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(outer, inner)) * size).astype(np.float32)
    target = rng.choice([-1, 0, 0.3, 1, 1.6], (outer, inner)).astype(np.float32)
    valid = np.trunc(target) != ignore if ignore is not None else np.ones(x.shape, bool)
    options = f"loss_param {{ normalization: {mode} "
    options += "}" if ignore is None else f"ignore_label: {ignore} }}"
    net = build(layer("SigmoidCrossEntropyLoss", "x target", options), {"x": x, "target": target})
    net.forward()
    net.backward()
    v, t = x.astype(np.float64), target.astype(np.float64)
    by = divisor(mode, outer, inner, int(valid.sum()))
    want = np.where(valid, np.logaddexp(0, v) - v * t, 0).sum() / by
    np.testing.assert_allclose(net.blobs["loss"].data, want, rtol=1e-4, atol=1e-5)
    want = np.where(valid, 1 / (1 + np.exp(-v)) - t, 0) / by
    np.testing.assert_allclose(net.blobs["x"].diff, want, rtol=1e-4, atol=1e-6)


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
    net = build(text if force else learned(text), given, force=force)
    net.forward()
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
    net = build(copy + layer(kind, bottoms, "propagate_down: true " * len(inputs)), inputs)
    net.forward()
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
