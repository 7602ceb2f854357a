"""YOLOv2 and YOLOv3: boxes from maps, and what their losses teach, against plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import build, draw, same

V2 = [1.0, 2.0, 3.0, 1.5]
V3 = [10, 13, 40, 30, 60, 90, 20, 25]
LABELS = np.zeros((2, 4, 5), np.float32)
LABELS[0, :2] = [[1, 0.3, 0.6, 0.4, 0.3], [2, 0.8, 0.1, 0.2, 0.5]]
LABELS[1, :1] = [[0, 0.5, 0.5, 0.9, 0.8]]


def numbers(name: str, values: Any) -> str:
    return " ".join(f"{name}: {value}" for value in values)


def sig(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def iou(a: Any, b: Any) -> float:
    low = [max(a[i] - a[i + 2] / 2, b[i] - b[i + 2] / 2) for i in (0, 1)]
    high = [min(a[i] + a[i + 2] / 2, b[i] + b[i + 2] / 2) for i in (0, 1)]
    common = max(high[0] - low[0], 0) * max(high[1] - low[1], 0)
    return float(common / (a[2] * a[3] + b[2] * b[3] - common))


def cells(x: Any, boxes: int) -> Any:
    """Image, box, row, column, and the values there."""
    length = x.shape[1] // boxes
    for n, a, i, j in np.ndindex(x.shape[0], boxes, *x.shape[2:]):
        yield n, a, i, j, [float(v) for v in x[n, a * length : (a + 1) * length, i, j]]


def box(values: Any, i: int, j: int, size: Any, anchor: Any) -> Any:
    wide, high = size[1], size[0]
    return (
        (j + sig(values[0])) / wide,
        (i + sig(values[1])) / high,
        math.exp(values[2]) * anchor[0] / wide,
        math.exp(values[3]) * anchor[1] / high,
    )


def survivors(found: Any, images: int, threshold: float) -> Any:
    rows = []
    for n in range(images):
        kept: list[Any] = []
        for score, label, where, _ in sorted((f for f in found if f[3] == n), key=lambda f: -f[0]):
            if all(iou(where, other) < threshold for _, _, other in kept):
                kept.append((score, label, where))
        rows += [
            [n, label, score, w[0] - w[2] / 2, w[1] - w[3] / 2, w[0] + w[2] / 2, w[1] + w[3] / 2]
            for score, label, w in kept
        ]
    return np.array(rows)


def test_yolov2_boxes() -> None:
    x = draw(2, 2 * 8, 3, 4)
    options = (
        "num_classes: 3 num_box: 2 confidence_threshold: 0.3 nms_threshold: 0.3 "
        f"{numbers('biases', V2)}"
    )
    made = build(
        layer_text("YoloDetectionOutput", f"yolo_detection_output_param {{ {options} }}"),
        {"x": x},
        force=False,
    )
    made.forward()
    found = []
    for n, a, i, j, values in cells(x, 2):
        e = [math.exp(v) for v in values[5:]]
        score = sig(values[4]) * max(e) / sum(e)
        if score >= 0.3:
            found.append((score, e.index(max(e)) + 1, box(values, i, j, (3, 4), V2[2 * a :]), n))
    want = survivors(found, 2, 0.3)
    assert len(want) > 4
    same(made.blobs["y"].data[0, 0], want, 1e-4, 1e-5)


def test_yolov3_boxes() -> None:
    inputs = {"a": draw(2, 2 * 7, 2, 3), "b": draw(2, 2 * 7, 4, 6, seed=1)}
    options = (
        f"num_classes: 2 num_box: 2 confidence_threshold: 0.5 nms_threshold: 0.4 mask_group_num: 2 "
        f"{numbers('biases', V3)} {numbers('mask', [2, 1, 0, 3])} "
        "anchors_scale: 32 anchors_scale: 16"
    )
    made = build(
        layer_text(
            "Yolov3DetectionOutput", f"yolov3_detection_output_param {{ {options} }}", "a b"
        ),
        inputs,
        force=False,
    )
    made.forward()
    found = []
    for name, mask, scale in (("a", [2, 1], 32), ("b", [0, 3], 16)):
        for n, a, i, j, values in cells(inputs[name], 2):
            anchor = [V3[2 * mask[a]] / scale, V3[2 * mask[a] + 1] / scale]
            where = box(values, i, j, inputs[name].shape[2:], anchor)
            for c in (0, 1):
                score = sig(values[4]) * sig(values[5 + c])
                if score > 0.5:
                    found.append((score, c + 1, where, n))
    want = survivors(found, 2, 0.4)
    assert len(want) > 3
    same(made.blobs["y"].data[0, 0], want, 1e-4, 1e-5)


def test_no_box_is_sure_enough() -> None:
    options = f"num_classes: 3 num_box: 2 confidence_threshold: 2 {numbers('biases', V2)}"
    made = build(
        layer_text("YoloDetectionOutput", f"yolo_detection_output_param {{ {options} }}"),
        {"x": draw(2, 16, 2, 2)},
        force=False,
    )
    made.forward()
    assert made.blobs["y"].data[0, 0].tolist() == [[0] + [-1] * 6, [1] + [-1] * 6]
