"""A small net of the shape of Cascade R-CNN's, in words of our own."""

# ruff: noqa: E501 (a layer a line)

from __future__ import annotations

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


def labels() -> np.ndarray:
    """Of both anchors at each place the true box that lies there, if one does."""
    found = np.zeros((2, 2, 6, 4, 4), np.float32)
    for item, x1, y1, x2, y2, label, _, _ in TRUTH:
        x, y, wide, high = (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1 + 1, y2 - y1 + 1
        anchor = int(wide > 20)
        found[int(item), anchor, :, int(y // 16), int(x // 16)] = [label, x, y, wide, high, 0.7]
    return found.reshape(2, 12, 4, 4)


def backbone(net: Writer) -> str:
    top = "data"
    for number in range(4):
        top = net.pool(f"pool{number}", net.conv(f"conv{number}", top, 8))
    return top


def proposals(net: Writer, top: str, train: bool) -> str:
    """Scores and deltas of anchors, and the boxes that they make."""
    rpn = net.conv("rpn", top, 12)
    shape = "reshape_param {{ shape {{ dim: -1 dim: {} dim: 0 dim: 0 }} }}"
    scores = net.add("Reshape", "scores", net.conv("cls", rpn, 4, 1, relu=False), shape.format(2))
    deltas = net.add("Reshape", "deltas", net.conv("box", rpn, 8, 1, relu=False), shape.format(4))
    if train:
        maps = net.add("Reshape", "maps", "labels", shape.format(6))
        options = f"cls_num: 2 objectness: true field_whr: 4 field_xyr: 2 {ANCHORS}"
        net.add(
            "DetectionGroupLoss", "rpn_loss", f"{scores} {deltas} {maps}",
            f"detection_group_loss_param {{ batch_size: 8 bg_multiple: 3 {options} }} {REG}",
        )  # fmt: skip
        net.add(
            "DetectionGroupAccuracy", "rpn_right", f"{scores} {deltas} {maps}",
            f"detection_group_accuracy_param {{ {options} }} {REG}", "rpn_right rpn_iou",
        )  # fmt: skip
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


def learn(net: Writer, name: str, top: str, boxes: str, least: float) -> str:
    """A stage with its losses; returns the boxes for the next."""
    parts = " ".join(f"{name}_{part}" for part in ("rois", "label", "want", "in", "out", "match"))
    net.add(
        "ProposalTarget", f"{name}_target", f"{boxes} gt",
        f"proposal_target_param {{ cls_num: 3 batch_size: 12 num_img_per_batch: 2 fg_thr: {least} bg_thr_hg: {least} bg_thr_lw: 0 img_width: 64 img_height: 64 }} {REG}", parts,
    )  # fmt: skip
    sized = " ".join(f"{part}_s" for part in parts.split())
    net.add("ScaleRoute", f"{name}_route", parts, "scale_route_param { high_scale: 200 }", sized)
    rois, label, want, inside, outside, match = sized.split()
    scores, deltas = stage(net, name, top, rois)
    net.add(
        "SoftmaxWithLoss",
        f"{name}_loss",
        f"{scores} {label}",
        ONCE,
        f"{name}_loss {name}_p {name}_each",
    )
    net.add("SmoothL1Loss", f"{name}_l1", f"{deltas} {want} {inside} {outside}", ONCE + STOP * 2)
    net.add(
        "BboxAccuracy",
        f"{name}_iou",
        f"{deltas} {rois} {match}",
        REG,
        f"{name}_after {name}_before",
    )
    hard = f"{name}_hard {name}_hard_x"
    net.add(
        "HardMining",
        f"{name}_mined",
        f"{name}_each {rois} {label}",
        "hard_mining_param { num_image: 2 num_roi_per_image: 3 }",
        hard,
    )
    return net.add("DecodeBBox", f"{name}_next", f"{deltas} {rois} {match}", REG + STOP * 3)


def trained() -> Writer:
    net = Writer(data=picture(), labels=labels(), gt=TRUTH)
    top = backbone(net)
    boxes = learn(net, "one", top, proposals(net, top, True), 0.4)
    learn(net, "two", top, boxes, 0.5)
    return net


def tested() -> Writer:
    sizes = np.full((2, 2), SIDE, np.float32)
    net = Writer(data=picture(), gt=TRUTH, sizes=sizes)
    top = backbone(net)
    boxes = proposals(net, top, False)
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
