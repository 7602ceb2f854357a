"""Proposal, and Faster R-CNN's Python layers that come with sparknet."""

import sys

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import LayerError
from sparknet.layers.anchors import anchors, decode, encode, grid, nms, overlaps
from sparknet.layers.rpn import settings
from sparknet.proto import parse_net
from sparknet.proto.untrusted import with_trust
from tests.caffe.gradient import build, input_layer, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw

WELL_KNOWN = [
    [-84, -40, 99, 55],
    [-176, -88, 191, 103],
    [-360, -184, 375, 199],
    [-56, -56, 71, 71],
    [-120, -120, 135, 135],
    [-248, -248, 263, 263],
    [-36, -80, 51, 95],
    [-80, -168, 95, 183],
    [-168, -344, 183, 359],
]
"""The nine anchors of Faster R-CNN (py-faster-rcnn, generate_anchors.py)."""

IMAGE = np.array([[96, 128, 1.5]], np.float32)


def python(layer: str, param_str: str, bottoms: str, tops: str) -> str:
    module = f"rpn.{layer}"
    name = "".join(word.title() for word in layer.split("_"))
    return layer_text(
        "Python",
        f'python_param {{ module: "{module}" layer: "{name}" param_str: "{param_str}" }}',
        bottoms,
        tops,
    )


def test_anchors():
    assert anchors().tolist() == WELL_KNOWN
    assert grid(2, 3, 16, np.array([[0, 1, 2, 3]]))[4].tolist() == [16, 17, 18, 19]


def test_boxes_move_there_and_back():
    rng = np.random.default_rng(1)
    one, two = (np.sort(rng.uniform(0, 90, (7, 2, 2)), 1).reshape(7, 4) for _ in range(2))
    back = decode(one, encode(one, two))
    np.testing.assert_allclose(back - np.array([0, 0, 1, 1]), two, atol=1e-9)


def slow_proposals(scores, deltas, before, after, least):
    """One anchor after the other, then the greedy choice."""
    found = []
    for y, x, a in np.ndindex(*scores.shape[1:], scores.shape[0]):
        x1, y1, x2, y2 = np.array(WELL_KNOWN[a]) + 16 * np.array([x, y, x, y])
        wide, high = x2 - x1 + 1, y2 - y1 + 1
        dx, dy, dw, dh = deltas[4 * a : 4 * a + 4, y, x].astype(float)
        middle = x1 + wide / 2 + dx * wide, y1 + high / 2 + dy * high
        half = wide * np.exp(dw) / 2, high * np.exp(dh) / 2
        box = [middle[0] - half[0], middle[1] - half[1], middle[0] + half[0], middle[1] + half[1]]
        box = [min(max(v, 0), most) for v, most in zip(box, (127, 95, 127, 95), strict=True)]
        if min(box[2] - box[0], box[3] - box[1]) + 1 >= least:
            found.append((scores[a, y, x], box))
    found.sort(key=lambda one: -one[0])
    chosen = []
    for score, box in found[:before]:
        if len(chosen) < after and all(overlap(box, other) <= 0.7 for _, other in chosen):
            chosen.append((score, box))
    return chosen


def overlap(a, b):
    wide = max(min(a[2], b[2]) - max(a[0], b[0]) + 1, 0)
    high = max(min(a[3], b[3]) - max(a[1], b[1]) + 1, 0)
    areas = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
    return float(wide * high / (sum(areas) - wide * high))


def inputs():
    return {"s": draw(1, 18, 6, 8), "d": draw(1, 36, 6, 8, seed=1) * 0.3, "i": IMAGE}


@pytest.mark.parametrize("kind", ["Proposal", "Python"])
def test_proposals(kind):
    options = "proposal_param { min_size: 10 pre_nms_topn: 100 post_nms_topn: 20 }"
    text = layer_text("Proposal", options, "s d i", "r c")
    if kind == "Python":
        param = "'feat_stride': 16\\n'min_size': 10\\n'pre_nms_topn': 100\\n'post_nms_topn': 20"
        text = python("proposal_layer", param, "s d i", "r c")
    given = inputs()
    net = run(text, given, force=False)
    want = slow_proposals(given["s"][0, 9:], given["d"][0], 100, 20, 15)
    assert len(want) == 20
    np.testing.assert_allclose(net.blobs["r"].data[:, 1:], [box for _, box in want], atol=1e-3)
    np.testing.assert_allclose(net.blobs["c"].data.ravel(), [score for score, _ in want])
    assert not net.blobs["r"].data[:, 0].any()


def test_no_box_is_large_enough():
    options = "proposal_param { min_size: 1000 }"
    net = run(layer_text("Proposal", options, "s d i", "r"), inputs(), force=False)
    assert net.blobs["r"].data.tolist() == [[0, 0, 0, 0, 0]]


def test_anchors_that_do_not_fit():
    given = {**inputs(), "s": draw(1, 12, 6, 8)}
    with pytest.raises(LayerError, match="9 anchors need scores of 1 x 18 x H x W"):
        build(layer_text("Proposal", "", "s d i", "r"), given)


def test_anchor_targets():
    truth = np.array([[20, 20, 90, 80, 3], [70, 5, 120, 60, 1]], np.float32)
    inputs = {"s": draw(1, 18, 6, 8), "t": truth, "i": IMAGE, "x": draw(1, 3, 96, 128)}
    param = "'feat_stride': 16\\n'scales': !!python/tuple [2, 4]\\n'allowed_border': 20"
    net = run(
        python("anchor_target_layer", param, "s t i x", "l d in out"),
        {**inputs, "s": draw(1, 12, 6, 8)},
        force=False,
    )
    base = anchors(16, scales=(2, 4))
    places = grid(6, 8, 16, base)
    shared = overlaps(places, truth[:, :4])
    inside = (places[:, :2] >= -20).all(1) & (places[:, 2] < 148) & (places[:, 3] < 116)
    best_of_box = (shared == shared[inside].max(0)).any(1)
    labels = np.full(len(places), -1)
    labels[inside & (shared.max(1) < 0.3)] = 0
    labels[inside & best_of_box] = 1
    labels[inside & (shared.max(1) >= 0.7)] = 1
    assert np.count_nonzero(labels >= 0) < 256
    got = net.blobs["l"].data.reshape(6, 6, 8).transpose(1, 2, 0).ravel()
    np.testing.assert_array_equal(got, labels)
    targets = net.blobs["d"].data.reshape(6, 4, 6, 8).transpose(2, 3, 0, 1).reshape(-1, 4)
    expected = encode(places[inside], truth[shared[inside].argmax(1), :4])
    np.testing.assert_allclose(targets[inside], expected, rtol=1e-4, atol=1e-5)
    weights = net.blobs["in"].data.reshape(6, 4, 6, 8).transpose(2, 3, 0, 1).reshape(-1, 4)
    np.testing.assert_array_equal(weights, np.repeat(labels == 1, 4).reshape(-1, 4))
    np.testing.assert_allclose(net.blobs["out"].data.max(), 1 / np.count_nonzero(labels >= 0))


def test_few_anchors_are_taken():
    truth = np.array([[20, 20, 90, 80, 3]], np.float32)
    inputs = {"s": draw(1, 12, 6, 8), "t": truth, "i": IMAGE, "x": draw(1, 3, 96, 128)}
    param = "'feat_stride': 16\\n'scales': [2, 4]\\n'allowed_border': 20\\n'batch_size': 10"
    net = run(python("anchor_target_layer", param, "s t i x", "l d in out"), inputs, force=False)
    assert np.count_nonzero(net.blobs["l"].data >= 0) == 10


@pytest.mark.parametrize(("classes", "column"), [(4, 12), (2, 4)])
def test_proposal_targets(classes, column):
    truth = np.array([[20, 20, 90, 80, 3]], np.float32)
    rois = np.array([[0, 22, 18, 92, 83], [0, 60, 60, 90, 90], [0, 0, 0, 9, 9]], np.float32)
    param = f"'num_classes': {classes}\\n'batch_size': -1"
    text = python("proposal_target_layer", param, "r t", "rois labels d in out")
    net = run(text, {"r": rois, "t": truth}, force=False)
    chosen = net.blobs["rois"].data
    assert chosen[:, 1:].tolist() == [
        rois[0, 1:].tolist(),
        truth[0, :4].tolist(),
        *rois[1:, 1:].tolist(),
    ]
    assert net.blobs["labels"].data.ravel().tolist() == [3, 3, 0, 0]
    deltas = net.blobs["d"].data.reshape(4, -1)
    assert deltas.shape == (4, 4 * classes)
    want = encode(rois[:1, 1:], truth[:, :4])[0] / [0.1, 0.1, 0.2, 0.2]
    np.testing.assert_allclose(deltas[0, column : column + 4], want, rtol=1e-4)
    assert not deltas[1].any()
    weights = net.blobs["in"].data.reshape(4, -1)
    assert weights.sum(1).tolist() == [4, 4, 0, 0]
    np.testing.assert_array_equal(weights, net.blobs["out"].data.reshape(4, -1))


def test_a_class_that_is_none():
    text = python("proposal_target_layer", "'num_classes': 3", "r t", "rois labels d in out")
    net = build(text, {"r": [[0, 20, 20, 90, 80]], "t": [[20, 20, 90, 80, 3]]}, force=False)
    with pytest.raises(LayerError, match="class 3: there are 3"):
        net.forward()


def test_a_net_of_unknown_origin_may_use_them():
    """They are sparknet's own code; another module of that name is not imported."""
    given = inputs()
    text = "".join(input_layer(name, value.shape) for name, value in given.items())
    text += python("proposal_layer", "'feat_stride': 16", "s d i", "r")
    message = caffe.Net.from_proto(with_trust(parse_net(text), False), 1)
    for name, value in given.items():
        message.blobs[name].data[...] = value
    message.forward()
    assert len(message.blobs["r"].data) > 1
    assert "rpn" not in sys.modules


@pytest.mark.parametrize(
    "text", ["'a': 1\n'b': !!python/tuple [4, 8]", "{'a': 1, 'b': (4, 8)}", "a: 1\nb: [4, 8]"]
)
def test_settings(text):
    actual = settings(text, {"c": 2})
    assert (actual["a"], list(actual["b"]), actual["c"]) == (1, [4, 8], 2)


def test_settings_that_cannot_be_read():
    with pytest.raises(ValueError, match="param_str cannot be read: 'import os'"):
        settings("import os", {})


def test_suppression():
    boxes = np.array([[0, 0, 9, 9], [1, 0, 10, 9], [20, 20, 29, 29], [0, 0, 9, 12]])
    assert nms(boxes, 0.7, 10).tolist() == [0, 2]
    assert nms(boxes, 0.79, 10).tolist() == [0, 2, 3]
    assert nms(boxes, 0.85, 10).tolist() == [0, 1, 2, 3]
    assert nms(boxes, 0.85, 2).tolist() == [0, 1]
