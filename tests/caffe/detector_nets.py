"""Small nets of the shapes of RefineDet's, MS-CNN's and DetectNet's, in words of our own."""

# ruff: noqa: E501 (a layer a line)

from __future__ import annotations

import numpy as np

from tests.caffe.fork_nets import XAVIER, Writer, images

CODE = "code_type: CENTER_SIZE share_location: true objectness_score: 0.01"
TRAIN, TEST = "include { phase: TRAIN }", "include { phase: TEST }"


def heads(net: Writer, stage: str, top: str, level: int, classes: int) -> list[str]:
    """Locations and scores of two anchors at each place."""
    found = []
    for what, width in (("loc", 8), ("conf", 2 * classes)):
        head = net.conv(f"{stage}_{what}{level}", top, width, relu=False)
        order = "permute_param { order: 0 order: 2 order: 3 order: 1 }"
        head = net.add("Permute", f"{head}_perm", head, order)
        found.append(net.add("Flatten", f"{head}_flat", head))
    return found


def chances(net: Writer, scores: str, classes: int) -> str:
    shape = f"reshape_param {{ shape {{ dim: 0 dim: -1 dim: {classes} }} }}"
    rows = net.add("Reshape", f"{scores}_rows", scores, shape)
    soft = net.add("Softmax", f"{scores}_p", rows, "softmax_param { axis: 2 }")
    return net.add("Flatten", f"{scores}_flat", soft)


def refinedet() -> Writer:
    """Anchors are refined by a first stage; the second has the features of the level above too."""
    truth = np.array([[0, 1, 0, 0.1, 0.1, 0.5, 0.6, 0], [1, 2, 0, 0.4, 0.3, 0.9, 0.9, 0]])
    net = Writer(data=images(2, 3, 64, 64), label=truth.reshape(1, 1, 2, 8))
    top, first, features = net.pool("pool1", net.conv("conv1", "data", 8)), [], []
    for level in (1, 2):
        top = net.pool(f"down{level}", net.conv(f"feature{level}", top, 12))
        features.append(top)
        prior = f"prior_box_param {{ min_size: {12 + 14 * level} aspect_ratio: 2 flip: false variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }}"
        parts = heads(net, "arm", top, level, 2)
        first.append([*parts, net.add("PriorBox", f"prior{level}", f"{top} data", prior)])
    above = net.conv("tcb2", features[1], 12)
    up = net.add("Deconvolution", "up", above, f"convolution_param {{ num_output: 12 kernel_size: 2 stride: 2 {XAVIER} }}")  # fmt: skip
    both = net.add("Eltwise", "both", f"{net.conv('tcb1', features[0], 12, relu=False)} {up}")
    second = [heads(net, "odm", own, level, 3) for level, own in ((1, both), (2, above))]
    arm_loc, arm_conf, priors = (
        net.add("Concat", name, " ".join(one[place] for one in first), f"concat_param {{ axis: {1 + (place == 2)} }}")
        for place, name in enumerate(("arm_loc", "arm_conf", "priors"))
    )  # fmt: skip
    odm_loc, odm_conf = (
        net.add("Concat", name, " ".join(one[place] for one in second))
        for place, name in enumerate(("odm_loc", "odm_conf"))
    )
    sure = chances(net, arm_conf, 2)
    for name, classes, bottoms in (
        ("arm_loss", 2, f"{arm_loc} {arm_conf} {priors} label"),
        ("odm_loss", 3, f"{odm_loc} {odm_conf} {priors} label {sure} {arm_loc}"),
    ):
        net.add("MultiBoxLoss", name, bottoms, f"multibox_loss_param {{ num_classes: {classes} {CODE} }} {TRAIN}")  # fmt: skip
    options = f"detection_output_param {{ num_classes: 3 {CODE} keep_top_k: 20 nms_param {{ nms_threshold: 0.45 top_k: 40 }} }} {TEST}"
    net.add("DetectionOutput", "found", f"{odm_loc} {chances(net, odm_conf, 3)} {priors} {sure} {arm_loc}", options)  # fmt: skip
    return net


FIELDS = ((8, 20), (16, 36))
"""The strides and sizes of MS-CNN's fields."""
REG = "bbox_reg_param { bbox_mean: [0, 0, 0, 0] bbox_std: [0.1, 0.1, 0.2, 0.2] }"


def mscnn(source: str) -> Writer:
    """From the pictures of a window file to the losses of proposals and of their classes."""
    net = Writer()
    own = " ".join(f"downsample_rate: {rate} field_w: {size} field_h: {size}" for rate, size in FIELDS)  # fmt: skip
    size = "resize_width: 96 resize_height: 96 crop_width: 64 crop_height: 64"
    net.add("ImageGtData", "data", "", f"image_gt_data_param {{ {source} batch_size: 2 {own} {size} shuffle: true output_gt_boxes: true scale: 0.01 }} transform_param {{ mirror: true mean_value: 100 }}", "data label1 label2 gt")  # fmt: skip
    top, parts = net.pool("pool1", net.conv("conv1", "data", 8)), []
    top = net.pool("pool2", net.conv("conv2", top, 8))
    for number, (rate, field) in enumerate(FIELDS, 1):
        top = net.pool(f"down{number}", net.conv(f"feature{number}", top, 8))
        parts.append(net.conv(f"head{number}", top, 7, relu=False))
        facts = (
            f"field_w: {field} field_h: {field} downsample_rate: {rate} field_whr: 2 field_xyr: 2"
        )
        options = f"detection_loss_param {{ cls_num: 3 coord_num: 4 {facts} bb_smooth: true bg_threshold: 0.2 bg_multiple: 2 pos_neg_weighted: true }}"
        net.add("DetectionLoss", f"loss{number}", f"{parts[-1]} label{number}", f"{options} loss_weight: 0.9")  # fmt: skip
        net.add("DetectionAccuracy", f"right{number}", f"{parts[-1]} label{number}", f"detection_accuracy_param {{ cls_num: 3 coord_num: 4 {facts} }}", f"right{number} iou{number}")  # fmt: skip
    stop = "propagate_down: false " * 2
    boxes = net.add("BoxOutput", "proposals", " ".join(parts), f"box_output_param {{ fg_thr: -10 iou_thr: 0.65 {own} field_whr: 2 field_xyr: 2 max_nms_num: 40 }} {stop}")  # fmt: skip
    target = "proposal_target_param { cls_num: 3 batch_size: 16 fg_fraction: 0.25 num_img_per_batch: 2 fg_thr: 0.5 bg_thr_hg: 0.5 bg_thr_lw: 0 img_width: 64 img_height: 64 }"
    net.add("ProposalTarget", "target", f"{boxes} gt", f"{target} {REG} {stop}", "rois kind want inside outside match")  # fmt: skip
    pooled = net.add("ROIPooling", "roi", "feature1 rois", "roi_pooling_param { pooled_w: 3 pooled_h: 3 spatial_scale: 0.25 } propagate_down: true propagate_down: false")  # fmt: skip
    full = net.add("ReLU", "full_relu", net.full("full", pooled, 16))
    scores, deltas = net.full("scores", full, 3), net.full("deltas", full, 12)
    net.add(
        "SoftmaxWithLoss",
        "class_loss",
        f"{scores} kind",
        "propagate_down: true propagate_down: false",
    )
    net.add("SmoothL1Loss", "box_loss", f"{deltas} want inside outside")
    return net


def detectnet() -> Writer:
    """Coverage and corners at each place of a grid, weighted by the sizes of objects."""
    labels = np.zeros((2, 1, 3, 16), np.float32)
    for item, (x, y, wide, high) in enumerate(((6, 4, 24, 20), (18, 14, 28, 16))):
        labels[item, 0, 0, :2] = 1, 16
        labels[item, 0, 1, [0, 1, 2, 3, 5]] = x, y, wide, high, 1
    net = Writer(pictures=images(2, 3, 40, 56) * 100 + 100, boxes=labels)
    grid = (
        "detectnet_groundtruth_param { image_size_x: 48 image_size_y: 32 stride: 8 scale_cvg: 0.8 }"
    )
    more = "detectnet_augmentation_param { flip_prob: 0.5 crop_prob: -1 rotation_prob: -1 scale_prob: -1 }"
    net.add("DetectNetTransformation", "change", "pictures boxes", f"{grid} {more} transform_param {{ mean_value: 127 }}", "data maps")  # fmt: skip
    points = " ".join(f"slice_point: {point}" for point in (1, 5, 7, 8))
    net.add("Slice", "slice", "maps", f"slice_param {{ {points} }}", "there corners size norm want")
    blocks = [net.add("Concat", f"{one}_block", " ".join([one] * times)) for one, times in (("there", 4), ("size", 2), ("norm", 4))]  # fmt: skip
    small = net.add("Power", "small", "data", "power_param { scale: 0.01 }")
    top = small
    for level in (1, 2, 3):
        top = net.pool(f"pool{level}", net.conv(f"conv{level}", top, 8))
    coverage = net.add("Sigmoid", "coverage", net.conv("cvg", top, 1, 1, relu=False))
    found, wanted = net.conv("boxed", top, 4, 1, relu=False), "corners"
    times = "eltwise_param { operation: PROD }"
    found = net.add("Eltwise", "found_there", f"{found} {blocks[0]}", times)
    for place, block in enumerate(blocks[1:]):
        found = net.add("Eltwise", f"found{place}", f"{found} {block}", times)
        wanted = net.add("Eltwise", f"wanted{place}", f"{wanted} {block}", times)
    net.add("L1Loss", "corner_loss", f"{found} {wanted}", "loss_weight: 2")
    net.add("EuclideanLoss", "coverage_loss", f"{coverage} want")
    return net
