"""A small net of the shape of Cascade R-CNN's, in words of our own."""

# ruff: noqa: E501 (a layer a line)

import numpy as np

from tests.caffe.fork_nets import Writer

ANCHORS = "field_w: 16 field_w: 30 field_h: 16 field_h: 30 stride: 16"
REG = "bbox_reg_param { cls_aware: false bbox_mean: [0, 0, 0, 0] bbox_std: [0.1, 0.1, 0.2, 0.2] }"
STOP = " propagate_down: false"
ONCE = " propagate_down: true propagate_down: false"
"""As in the fork's nets: no gradient passes from boxes to what made them."""
SIDE = 64
TRUTH = np.array(
    [[0, 4, 5, 22, 20, 1, 0, 0], [0, 30, 28, 60, 58, 2, 0, 0], [1, 10, 34, 26, 48, 2, 0, 0]],
    np.float32,
)


def backbone(net: Writer) -> str:
    top = "data"
    for number in range(4):
        top = net.pool(f"pool{number}", net.conv(f"conv{number}", top, 8))
    return top


def proposals(net: Writer, top: str) -> str:
    """Scores and deltas of anchors, and the boxes that they make."""
    rpn = net.conv("rpn", top, 12)
    shape = "reshape_param {{ shape {{ dim: -1 dim: {} dim: 0 dim: 0 }} }}"
    scores = net.add("Reshape", "scores", net.conv("cls", rpn, 4, 1, relu=False), shape.format(2))
    deltas = net.add("Reshape", "deltas", net.conv("box", rpn, 8, 1, relu=False), shape.format(4))
    chances = net.add("Softmax", "chances", scores)
    groups = f"box_group_output_param {{ fg_thr: 0.01 iou_thr: 0.7 min_size: 4 max_post_nms_num: 12 box_group_param {{ {ANCHORS} }} }}"
    return net.add(
        "BoxGroupOutput", "proposals", f"{chances} {deltas}", f"{groups} {REG} {STOP * 2}"
    )


def stage(net: Writer, name: str, top: str, boxes: str) -> tuple[str, str]:
    """Classes and deltas of boxes."""
    pooled = net.add(
        "ROIPooling", f"{name}_roi", f"{top} {boxes}",
        f"roi_pooling_param {{ pooled_w: 3 pooled_h: 3 spatial_scale: 0.0625 }} {ONCE}",
    )  # fmt: skip
    full = net.add("ReLU", f"{name}_relu", net.full(f"{name}_fc", pooled, 16))
    return net.full(f"{name}_cls", full, 3), net.full(f"{name}_box", full, 8)


def tested():
    sizes = np.full((2, 2), SIDE, np.float32)
    net = Writer(data=picture(), gt=TRUTH, sizes=sizes)
    top = backbone(net)
    boxes = proposals(net, top)
    _, deltas = stage(net, "one", top, boxes)
    boxes = net.add("DecodeBBox", "one_next", f"{deltas} {boxes}", REG)
    scores, deltas = stage(net, "two", top, boxes)
    chances = net.add("Softmax", "p", scores)
    found = net.add(
        "FrcnnOutput", "found", f"{chances} {deltas} {boxes} sizes",
        f"frcnn_output_param {{ conf_thr: 0.05 iou_thr: 0.5 }} {REG}",
    )  # fmt: skip
    net.add(
        "DetectionEvaluate",
        "judged",
        f"{found} gt sizes",
        "detection_evaluate_param { num_classes: 3 }",
    )
    return net


def picture() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(2, 3, SIDE, SIDE)).astype(np.float32)
