"""The layers that Cascade R-CNN's nets find boxes by, against plain loops."""

import math

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.layers.cascade_rcnn import nms
from tests.caffe.gradient import build, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw, same

REG = "bbox_reg_param { bbox_std: 0.1 bbox_std: 0.1 bbox_std: 0.2 bbox_std: 0.2 " + (
    "bbox_mean: 0.01 bbox_mean: 0 bbox_mean: 0 bbox_mean: 0.02 cls_aware: false }"
)
STDS, MEANS = (0.1, 0.1, 0.2, 0.2), (0.01, 0.0, 0.0, 0.02)
ROIS = np.array([[0, 10, 10, 40, 50], [0, 12, 14, 44, 52], [0, 30, 5, 90, 70]], np.float32)


def iou(a, b, kind="IOU"):
    """bbox_util.cpp, JaccardOverlap: boxes without a size, or apart, overlap nowhere."""
    if any(c[2] < c[0] or c[3] < c[1] for c in (a, b)):
        return 0
    low, high = [max(a[i], b[i]) for i in (0, 1)], [min(a[i], b[i]) for i in (2, 3)]
    apart = low[0] > high[0] or low[1] >= high[1]
    common = 0 if apart else (high[0] - low[0] + 1) * (high[1] - low[1] + 1)
    one, two = ((c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b))
    return float(common / {"IOU": one + two - common, "IOMU": min(one, two), "IOFU": one}[kind])


def moved(delta, box):
    d = [float(v) * s + m for v, s, m in zip(delta, STDS, MEANS, strict=True)]
    wide, high = box[2] - box[0] + 1, box[3] - box[1] + 1
    x, y = d[0] * wide + (box[0] + box[2]) / 2, d[1] * high + (box[1] + box[3]) / 2
    w, h = wide * math.exp(d[2]), high * math.exp(d[3])
    x, y = x - (w - 1) / 2, y - (h - 1) / 2
    return [x, y, x + w - 1, y + h - 1]


def greedy(found, threshold, kind="IOU"):
    chosen = []
    for score, box in sorted(found, key=lambda one: -one[0]):
        if all(iou(other, box, kind) <= threshold for _, other in chosen):
            chosen.append((score, box))
    return chosen


def cut(box, high, wide):
    """ClipBBox: to the size itself, not to the last pixel."""
    return [max(box[0], 0), max(box[1], 0), min(box[2], wide), min(box[3], high)]


@pytest.mark.parametrize("kind", ["IOU", "IOMU", "IOFU"])
def test_groups_of_anchors(kind):
    inputs = {
        "s": 1 / (1 + np.exp(-draw(4, 3, 3, 4))),
        "d": draw(4, 4, 3, 4, seed=1),
        "t": 1 / (1 + np.exp(-draw(2, 3, 2, 2, seed=2))),
        "e": draw(2, 4, 2, 2, seed=3),
    }
    groups = [(16, (30, 20), (20, 40)), (32, (60,), (50,))]
    words = " ".join(
        f"box_group_param {{ stride: {stride} {' '.join(f'field_h: {h}' for h in hs)} "
        f"{' '.join(f'field_w: {w}' for w in ws)} }}"
        for stride, hs, ws in groups
    )
    limits = f"fg_thr: 0.4 iou_thr: 0.5 min_size: 12 max_nms_num: 20 nms_type: '{kind}'"
    options = f"box_group_output_param {{ {limits} {words} }} {REG}"
    net = run(layer_text("BoxGroupOutput", options, "s d t e", "r c"), inputs, force=False)
    rows = []
    for image in (0, 1):
        found = []
        for (stride, hs, ws), s, d in zip(groups, ("s", "t"), ("d", "e"), strict=True):
            for a, i, j in np.ndindex(len(hs), *inputs[s].shape[2:]):
                n, size = image * len(hs) + a, inputs[s].shape[2:]
                known = zip(inputs[d][n, :, i, j], STDS, MEANS, strict=True)
                delta = [float(v) * q + m for v, q, m in known]
                x = min(max(delta[0], -0.5), 0.5) * ws[a] + (j + 0.5) * stride
                y = min(max(delta[1], -0.5), 0.5) * hs[a] + (i + 0.5) * stride
                w = ws[a] * math.exp(min(max(delta[2], -math.log(2)), math.log(2)))
                h = hs[a] * math.exp(min(max(delta[3], -math.log(2)), math.log(2)))
                box = [x - w / 2, y - h / 2, x + w / 2 - 1, y + h / 2 - 1]
                box = cut(box, size[0] * stride, size[1] * stride)
                score = 1 - float(inputs[s][n, 0, i, j])
                if score >= 0.4 and min(box[2] - box[0], box[3] - box[1]) + 1 >= 12:
                    found.append((score, box))
        found.sort(key=lambda one: -one[0])
        rows += [[image, *box, score] for score, box in greedy(found[:20], 0.5, kind)]
    assert len(rows) > 6
    assert max(row[3] for row in rows) == 64
    same(net.blobs["c"].data[:, :, 0, 0], np.array(rows), 1e-4, 1e-3)
    same(net.blobs["r"].data[:, :, 0, 0], np.array(rows)[:, :5], 1e-4, 1e-3)


def test_the_boxes_of_the_next_stage():
    deltas = draw(3, 8)
    text = layer_text("DecodeBBox", REG, "d r")
    net = run(text, {"d": deltas, "r": ROIS}, force=False, phase=1)
    want = [[0, *moved(deltas[n, 4:], ROIS[n, 1:])] for n in range(3)]
    same(net.blobs["y"].data, np.array(want), 1e-4, 1e-3)


def test_no_box_of_a_group():
    group = "box_group_param { stride: 16 field_h: 30 field_w: 20 }"
    options = f"box_group_output_param {{ fg_thr: 2 {group} }}"
    inputs = {"s": draw(1, 3, 2, 2), "d": draw(1, 4, 2, 2)}
    net = run(layer_text("BoxGroupOutput", options, "s d", "r c"), inputs, force=False)
    assert net.blobs["r"].data.ravel().tolist() == [0, 1, 1, 10, 10]
    assert net.blobs["c"].data.ravel().tolist() == [0] * 6
    with pytest.raises(LayerError, match="nms_type 'NEW' must be one of IOU, IOMU, IOFU"):
        build(layer_text("BoxGroupOutput", options.replace("fg", "nms_type: 'NEW' fg"), "s d"),
              inputs)  # fmt: skip


def test_boxes_that_touch():
    """Boxes of one column in common overlap there, of one row they do not, nor with a gap."""
    first = [10.0, 10, 19, 19]
    others = [[19.0, 10, 28, 19], [10, 19, 19, 28], [19.5, 10, 28.5, 19], [30, 30, 20, 40]]
    for other in others:
        boxes = np.array([first, other])
        share = iou(first, other)
        assert len(nms(boxes, max(share - 1e-9, 0), "IOU", 9, 1)) == (1 if share else 2)
        assert len(nms(boxes, share, "IOU", 9, 1)) == 2
    assert [iou(first, other) > 0 for other in others] == [True, False, False, False]


@pytest.mark.parametrize("kind", ["IOU", "IOMU", "IOFU"])
@pytest.mark.parametrize("most", [0, 2])
def test_detections(most, kind):
    scores = np.array([[0.1, 0.8, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], np.float32)
    inputs = {"s": scores, "d": draw(3, 8) * 0.1, "r": ROIS, "i": [[60, 80]]}
    limits = f"conf_thr: 0.2 iou_thr: 0.5 max_det_num: {most} nms_type: '{kind}'"
    options = f"frcnn_output_param {{ {limits} }} {REG}"
    net = run(layer_text("FrcnnOutput", options, "s d r i"), inputs, force=False)
    rows = []
    for label in (1, 2):
        found = []
        for n in range(3):
            box = moved(inputs["d"][n, 4:], ROIS[n, 1:])
            box = cut(box, 60, 80)
            if scores[n, label] >= 0.2:
                found.append((float(scores[n, label]), box))
        rows += [[0, *box, label, score] for score, box in greedy(found, 0.5, kind)]
    assert max(row[3] for row in rows) == 80
    if most:
        least = sorted((row[6] for row in rows), reverse=True)[most - 1]
        rows = [row for row in rows if row[6] >= least]
    same(net.blobs["y"].data[:, :, 0, 0], np.array([[0] + [-1] * 6, *rows]), 1e-4, 1e-3)


@pytest.mark.parametrize("missing", ["", "output_directory", "label_map_file", "name_size_file"])
def test_files_of_detections_are_refused(missing):
    """Where the forks write them: with all three names."""
    names = {"output_directory": "out", "label_map_file": "l.txt", "name_size_file": "n.txt"}
    words = " ".join(f"{key}: '{value}'" for key, value in names.items() if key != missing)
    saving = f"save_output_param {{ {words} }}"
    found = {"s": draw(3, 3), "d": draw(3, 8), "r": ROIS, "i": [[60, 80]]}
    priors = {"l": draw(1, 8), "c": draw(1, 6), "p": np.abs(draw(1, 2, 8))}
    texts = [
        (layer_text("FrcnnOutput", f"frcnn_output_param {{ {saving} }} {REG}", "s d r i"), found),
        (
            layer_text(
                "DetectionOutput", f"detection_output_param {{ num_classes: 3 {saving} }}", "l c p"
            ),
            priors,
        ),
    ]
    for text, inputs in texts:
        if missing:
            build(text, inputs, force=False)
            continue
        with pytest.raises(LayerError, match="files of detections in 'out'"):
            build(text, inputs, force=False)
