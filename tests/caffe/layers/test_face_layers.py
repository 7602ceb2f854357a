"""The layers of face recognition's forks, and CTC's, against plain loops and differences."""

import itertools
import math

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import LayerError
from sparknet.proto import parse_solver
from tests.caffe.gradient import biased, build, check_gradients, input_layer, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw, same

LABELS = np.array([1, 0, 2, 1], np.float32)


# -- CenterLoss ------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["L2", "L1"])
def test_distances_from_centres(norm):
    x, centres = draw(4, 5), draw(3, 5, seed=1)
    options = f"center_loss_param {{ num_output: 3 distance_type: '{norm}' }}"
    net = build(layer_text("CenterLoss", options, "x t"), {"x": x, "t": LABELS})
    net.params["l"][0].data[...] = centres
    net.forward()
    away = x - centres[LABELS.astype(int)]
    far = (away**2).sum() / 2 if norm == "L2" else np.abs(away).sum()
    same(net.blobs["y"].data, np.float32(far / 4), 1e-5)
    net.clear_param_diffs()
    net.blobs["y"].diff[...] = 0.5
    net.backward()
    slope = away if norm == "L2" else np.sign(away)
    same(net.blobs["x"].diff, slope * 0.5 / 4, 1e-5)
    for label in range(3):
        own = slope[label == LABELS]
        same(net.params["l"][0].diff[label], -own.sum(0) / (len(own) + 1), 1e-5)
    net.blobs["t"].data[0] = 3
    with pytest.raises(LayerError, match="label 3 is not below 3 classes"):
        net.forward()


def test_gradients_of_centres_are_of_one_step():
    """A solver clears what the step before has left, though the layer lives in Python."""
    net = input_layer("x", (4, 5)) + input_layer("t", (4,))
    net += layer_text("InnerProduct", "inner_product_param { num_output: 3 }", "x", "f")
    net += layer_text("CenterLoss", "center_loss_param { num_output: 3 }", "f t").replace(
        '"l"', '"c"'
    )
    solver = caffe.SGDSolver(parse_solver(f"net_param {{ {net} }} base_lr: 0 lr_policy: 'fixed'"))
    solver.net.blobs["x"].data[...], solver.net.blobs["t"].data[...] = draw(4, 5), LABELS
    solver.step(1)
    for _ in range(3):
        solver.net.clear_param_diffs()
        solver.net.forward()
        solver.net.backward()
        once = np.array(solver.net.params["c"][0].diff)
    solver.param.base_lr = 1
    before = np.array(solver.net.params["c"][0].data)
    solver.step(1)
    same(solver.net.params["c"][0].data, before - once, 1e-5)


# -- TripletLoss, FocalLoss ------------------------------------------------------------------


def test_triplets():
    a, p, n = (draw(6, 4, seed=seed) for seed in range(3))
    text = layer_text("TripletLoss", "triplet_loss_param { margin: 0.5 }", "a p n")
    net = run(text, {"a": a, "p": p, "n": n})
    far = [max(0.5 + sum((a[i] - p[i]) ** 2) - sum((a[i] - n[i]) ** 2), 0) for i in range(6)]
    assert 0 < sum(one > 0 for one in far) < 6
    same(net.blobs["y"].data, np.float32(sum(far) / 12), 1e-5)
    check_gradients(text, {"a": a, "p": p, "n": n}, step=1e-3)


@pytest.mark.parametrize(
    ("options", "kind", "gamma", "alpha"),
    [("", "ORIGIN", 2, 1), ("gamma: 0.5 alpha: 0.25", "ORIGIN", 0.5, 0.25),
     ("type: ONEADDP gamma: 1.5", "ONEADDP", 1.5, 1), ("gamma: 0", "ORIGIN", 0, 1)],
)  # fmt: skip
def test_focal_loss(options, kind, gamma, alpha):
    x, labels = draw(2, 3, 2, 2), np.array([[0, 2, 1, 255], [1, 1, 0, 2]], np.float32)
    inputs = {"x": x, "t": labels.reshape(2, 1, 2, 2)}
    text = layer_text(
        "FocalLoss", f"focal_loss_param {{ {options} }} loss_param {{ ignore_label: 255 }}", "x t"
    )
    net = run(text.replace('top: "y"', 'top: "y" top: "p"'), inputs)
    total, chances = 0.0, np.zeros(x.shape)
    for n, i, j in np.ndindex(2, 2, 2):
        powers = np.exp(x[n, :, i, j].astype(float))
        chances[n, :, i, j] = powers / powers.sum()
        label = int(labels.reshape(2, 2, 2)[n, i, j])
        if label != 255:
            p = chances[n, label, i, j]
            factor = alpha * (1 - p) ** gamma if kind == "ORIGIN" else (alpha + p) ** gamma
            total -= factor * math.log(p)
    same(net.blobs["y"].data, np.float32(total / 7), 1e-5)
    same(net.blobs["p"].data, chances, 1e-5)
    check_gradients(text, inputs, of=["x"])


def test_focal_loss_without_a_focus_is_softmax_with_loss():
    x, labels = draw(4, 3), LABELS
    nets = [
        build(layer_text(kind, options, "x t"), {"x": x, "t": labels})
        for kind, options in (
            ("FocalLoss", "focal_loss_param { gamma: 0 }"),
            ("SoftmaxWithLoss", ""),
        )
    ]
    for made in nets:
        made.forward()
        made.blobs["y"].diff[...] = 1
        made.backward()
    same(nets[0].blobs["y"].data, nets[1].blobs["y"].data, 1e-5)
    same(nets[0].blobs["x"].diff, nets[1].blobs["x"].diff, 1e-5)
    with pytest.raises(LayerError, match="type LINEAR is not known"):
        build(
            layer_text("FocalLoss", "focal_loss_param { type: LINEAR }", "x t"),
            {"x": x, "t": labels},
        )


# -- InnerDistance, ChannelScale -------------------------------------------------------------


@pytest.mark.parametrize("norm", ["L2", "L1"])
@pytest.mark.parametrize("own", [True, False])
def test_distances_from_rows(norm, own):
    x, rows = draw(4, 2, 3), draw(5, 6, seed=1)
    options = f"inner_distance_param {{ num_output: 5 distance_type: '{norm}' }}"
    inputs = {"x": x} if own else {"x": x, "w": rows}
    text = layer_text("InnerDistance", options, " ".join(inputs))
    net = build(text, inputs)
    if own:
        net.params["l"][0].data[...] = rows
    net.forward()
    away = x.reshape(4, 1, 6) - rows
    same(net.blobs["y"].data, (away**2 if norm == "L2" else np.abs(away)).sum(2), 1e-5, 1e-5)
    # Small steps keep the signs of L1's differences.
    params = {"l": [rows]} if own else None
    check_gradients(text, inputs, params, step=1e-3 if norm == "L1" else 1e-2, tolerance=2e-2)


def test_rows_that_learn_from_their_class_alone():
    x, rows = draw(4, 6), draw(3, 6, seed=1)
    options = "inner_distance_param { num_output: 3 update_center_only: true normalize: true }"
    net = build(layer_text("InnerDistance", options, "x t"), {"x": x, "t": LABELS})
    net.params["l"][0].data[...] = rows
    net.forward()
    short = rows / np.sqrt((rows**2).sum(1, keepdims=True) + 1e-6)
    same(net.params["l"][0].data, short, 1e-5)
    same(net.blobs["y"].data, ((x[:, None] - short) ** 2).sum(2), 1e-5, 1e-5)
    given = draw(4, 3, seed=2)
    net.clear_param_diffs()
    net.blobs["y"].diff[...] = given
    net.backward()
    want = np.zeros_like(rows)
    for n, label in enumerate(LABELS.astype(int)):
        want[label] += 2 * given[n, label] * (short[label] - x[n])
    same(net.params["l"][0].diff, want, 1e-4, 1e-5)
    want = sum(2 * given[:, k : k + 1] * (x - short[k]) for k in range(3))
    same(net.blobs["x"].diff, want, 1e-4, 1e-5)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2, 2)])
def test_scales_of_places(shape):
    x, scale = draw(*shape), draw(shape[0], *shape[2:], seed=1)
    text = layer_text("ChannelScale", "", "x s")
    net = run(text, {"x": x, "s": scale})
    same(net.blobs["y"].data, x * scale[:, None])
    check_gradients(text, {"x": x, "s": scale})
    off = "do_forward: false do_backward_feature: false do_backward_scale: false"
    net = run(
        layer_text("ChannelScale", f"channel_scale_param {{ {off} }}", "x s"), {"x": x, "s": scale}
    )
    net.blobs["y"].diff[...] = x * 2
    net.backward()
    same(net.blobs["y"].data, x)
    same(net.blobs["x"].diff, x * 2)
    assert not net.blobs["s"].diff.any()


# -- MarginInnerProduct, LabelSpecificAdd ----------------------------------------------------


def psi(angle: float, times: int) -> float:
    turns = min(int(angle * times / math.pi), times - 1)
    return (-1) ** turns * math.cos(times * angle) - 2 * turns


@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_margins_of_angles(times):
    x, rows = draw(4, 6), draw(3, 6, seed=1)
    kind = ("SINGLE", "DOUBLE", "TRIPLE", "QUADRUPLE")[times - 1]
    options = f"num_output: 3 type: {kind} base: 8 gamma: 0.5 power: 2 lambda_min: 0.1"
    text = layer_text(
        "MarginInnerProduct", f"margin_inner_product_param {{ {options} }}", "x t", "y s"
    )
    net = build(text, {"x": x, "t": LABELS})
    net.params["l"][0].data[...] = rows * 3
    for number in (1, 2):
        net.forward()
        share = max(8 * (1 + 0.5 * number) ** -2, 0.1)
        same(net.blobs["s"].data, np.array([share]), 1e-5)
    short = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    same(net.params["l"][0].data, short, 1e-5, 1e-6)
    want = x @ short.T
    for n, label in enumerate(LABELS.astype(int)):
        length = float(np.linalg.norm(x[n]))
        if times > 1:
            bent = length * psi(math.acos(want[n, label] / length), times)
            want[n, label] = (share * want[n, label] + bent) / (1 + share)
    same(net.blobs["y"].data, want, 1e-4, 1e-5)
    given = np.zeros((4, 3), np.float32)
    given[1] = [0, 2, -1]  # of other rows than the label's: plain products
    net.clear_param_diffs()
    net.blobs["y"].diff[...] = given
    net.backward()
    same(net.blobs["x"].diff, given @ short, 1e-4, 1e-5)
    same(net.params["l"][0].diff, given.T @ x, 1e-4, 1e-5)


@pytest.mark.parametrize("times", [2, 3, 4])
def test_slopes_of_margins_point_where_differences_do(times):
    """The label's own part has the direction of the true gradient; its coefficients of the row and
    of x have a norm of 1."""
    x, rows = draw(4, 6), draw(3, 6, seed=1)
    kind = ("DOUBLE", "TRIPLE", "QUADRUPLE")[times - 2]
    options = f"margin_inner_product_param {{ num_output: 3 type: {kind} base: 0 }}"
    net = build(layer_text("MarginInnerProduct", options, "x t"), {"x": x, "t": LABELS})
    net.params["l"][0].data[...] = rows
    net.forward()
    given = np.eye(3, dtype=np.float32)[LABELS.astype(int)]
    net.blobs["y"].diff[...] = given
    net.backward()
    got = np.array(net.blobs["x"].diff)
    for n in range(4):
        want = []
        for k in range(6):
            ends = []
            for step in (1e-3, -1e-3):
                net.blobs["x"].data[...] = x
                net.blobs["x"].data[n, k] += step
                net.forward()
                ends.append(float((net.blobs["y"].data[n] * given[n]).sum()))
            want.append((ends[0] - ends[1]) / 2e-3)
        row = rows[int(LABELS[n])] / np.linalg.norm(rows[int(LABELS[n])])
        parts = np.stack([row, x[n]], 1)
        both = np.linalg.lstsq(parts, np.array(want), rcond=None)[0]
        np.testing.assert_allclose(parts @ both, want, atol=0.02)
        np.testing.assert_allclose(got[n], parts @ both / np.linalg.norm(both), atol=0.02)


@pytest.mark.parametrize("phase", [0, 1])
def test_margins_of_scores(phase):
    x = np.array([[0.5, -0.2], [0.9, 0.1], [0.1, 0.4]], np.float32)
    labels = np.array([0, 0, 1], np.float32)
    options = "label_specific_add_param { bias: -0.3 }"
    net = run(
        layer_text("LabelSpecificAdd", options, "x t", "y b"), {"x": x, "t": labels}, phase=phase
    )
    want = x + ([[-0.3, 0], [-0.3, 0], [0, -0.3]] if phase == 0 else 0)
    same(net.blobs["y"].data, want)
    same(net.blobs["b"].data, np.array([-0.3]))
    net.blobs["y"].diff[...] = x
    net.backward()
    same(net.blobs["x"].diff, x)
    # What is not above -bias stays.
    net.blobs["x"].data[...] = 0.2
    net.forward()
    same(net.blobs["y"].data, np.full((3, 2), 0.2))


def test_margins_that_grow():
    options = "bias_base: 0 bias_gamma: 1 bias_power: 0.5 bias_min: 0.1 bias_max: 0.6"
    text = layer_text("LabelSpecificAdd", f"label_specific_add_param {{ {options} }}", "x t", "y b")
    net = build(text, {"x": np.ones((1, 2)), "t": [0]})
    found = []
    for _ in range(4):
        net.forward()
        found.append(float(net.blobs["b"].data[0]))
    np.testing.assert_allclose(found, [0.1, math.sqrt(2) - 1, 0.6, 0.6], rtol=1e-5)


def test_margins_in_place():
    text = biased("x") + layer_text(
        "LabelSpecificAdd", "label_specific_add_param { bias: 0.5 }", "xb t", "xb"
    )
    net = run(text, {"x": np.ones((2, 2)), "t": [1, 0]}, force=False)
    same(net.blobs["xb"].data, np.array([[1, 1.5], [1.5, 1]]))


# -- CTC -------------------------------------------------------------------------------------


def chance(scores, wanted, blank):
    """The sum over all ways through time, one by one."""
    total = 0.0
    chances = np.exp(scores.astype(float))
    chances /= chances.sum(1, keepdims=True)
    for way in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        said = [label for label, _ in itertools.groupby(way) if label != blank]
        if said == wanted:
            total += math.prod(chances[t, label] for t, label in enumerate(way))
    return total


@pytest.mark.parametrize("blank", [0, 2])
def test_sequences_without_places(blank):
    scores = draw(5, 3, 3)
    one, two = [label for label in range(3) if label != blank]
    labels = np.array([[one, two, blank], [two, two, blank], [blank, one, blank]], np.float32)
    options = f"ctc_loss_param {{ alphabet_size: 3 time_step: 5 blank_label: {blank} }}"
    text = layer_text("CtcLoss", options, "x t")
    net = run(text, {"x": scores, "t": labels})
    costs = [
        -math.log(chance(scores[:, n], [int(v) for v in labels[n] if v != blank], blank))
        for n in range(3)
    ]
    same(net.blobs["y"].data, np.float32(np.mean(costs)), 1e-5)
    net.blobs["y"].diff[...] = 1
    net.backward()
    got = np.array(net.blobs["x"].diff)
    for at in np.ndindex(scores.shape):
        ends = []
        for step in (1e-2, -1e-2):
            net.blobs["x"].data[...] = scores
            net.blobs["x"].data[at] += step
            net.forward()
            ends.append(float(net.blobs["y"].data) * 3)
        assert abs(got[at] - (ends[0] - ends[1]) / 2e-2) < 2e-3


def test_sequences_that_time_is_too_short_for():
    options = "ctc_loss_param { alphabet_size: 3 time_step: 2 blank_label: 2 }"
    inputs = {"x": draw(2, 1, 3), "t": [[0, 0]]}
    net = run(layer_text("CtcLoss", options, "x t"), inputs)
    net.blobs["y"].diff[...] = 1
    net.backward()
    assert float(net.blobs["y"].data) == 0
    assert not net.blobs["x"].diff.any()
    with pytest.raises(LayerError, match="time_step 3 must be from 1 to 2"):
        build(layer_text("CtcLoss", options.replace("step: 2", "step: 3"), "x t"), inputs)


def test_whole_sequences_right():
    scores = np.eye(4, dtype=np.float32)[[[0, 0, 3, 1], [1, 3, 1, 1], [2, 3, 3, 0]]]
    labels = np.array([[0, 1, 3], [1, 1, 3], [2, 1, 3]], np.float32)
    options = "labelsequence_accuracy_param { blank_label: 3 }"
    net = run(
        layer_text("LabelsequenceAccuracy", options, "x t"), {"x": scores, "t": labels}, force=False
    )
    assert float(net.blobs["y"].data) == pytest.approx(2 / 3)


def test_marks_of_sequences():
    text = (
        'layer { name: "l" type: "ContinuationIndicator" top: "y" '
        "continuation_indicator_param { time_step: 3 batch_size: 2 } }"
    )
    net = run(text, {}, force=False)
    assert net.blobs["y"].data.tolist() == [[0, 0], [1, 1], [1, 1]]
