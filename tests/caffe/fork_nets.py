"""Small nets of the shapes that public forks are known for, in words of our own."""

# ruff: noqa: E501 (a layer a line)

import numpy as np

from tests.caffe.gradient import input_layer

XAVIER = 'weight_filler { type: "xavier" }'


class Writer:
    """Writes layers one after the other; each returns the name of its top."""

    def __init__(self, **inputs):
        self.inputs = inputs
        self.parts = [input_layer(name, np.shape(value)) for name, value in inputs.items()]

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def add(self, kind: str, name: str, bottom: str, options: str = "", top: str = "") -> str:
        bottoms = " ".join(f'bottom: "{one}"' for one in bottom.split())
        tops = " ".join(f'top: "{one}"' for one in (top or name).split())
        self.parts.append(f'layer {{ name: "{name}" type: "{kind}" {bottoms} {tops} {options} }}\n')
        return (top or name).split()[0]

    def conv(
        self,
        name: str,
        bottom: str,
        outputs: int,
        kernel: int = 3,
        more: str = "",
        kind: str = "Convolution",
        relu: bool = True,
    ) -> str:
        pad = 0 if "pad" in more else kernel // 2
        extra = f"pad: {pad}" if pad else ""
        options = f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} {extra} {more} {XAVIER} }}"
        top = self.add(kind, name, bottom, options)
        return self.add("ReLU", f"{name}_relu", top, top=top) if relu else top

    def pool(
        self, name: str, bottom: str, options: str = "kernel_size: 2 stride: 2", top: str = ""
    ) -> str:
        return self.add("Pooling", name, bottom, f"pooling_param {{ {options} }}", top)

    def full(self, name: str, bottom: str, outputs: int) -> str:
        return self.add(
            "InnerProduct",
            name,
            bottom,
            f"inner_product_param {{ num_output: {outputs} {XAVIER} }}",
        )


def images(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def pixel_labels(num, size, classes):
    return np.random.default_rng(1).integers(0, classes, (num, 1, size, size)).astype(np.float32)


def ssd() -> Writer:
    truth = np.array([[0, 1, 0, 0.1, 0.1, 0.5, 0.6, 0], [1, 2, 0, 0.4, 0.3, 0.9, 0.9, 0]])
    net = Writer(data=images(2, 3, 64, 64), label=truth.reshape(1, 1, 2, 8))
    top, parts = net.pool("pool1", net.conv("conv1", "data", 8)), []
    for level in (2, 3):
        top = net.pool(f"pool{level}", net.conv(f"conv{level}", top, 16))
        own = net.add(
            "Normalize",
            f"norm{level}",
            top,
            "norm_param { across_spatial: false channel_shared: false scale_filler { value: 20 } }",
        )
        names = []
        for what, width in (("loc", 4 * 4), ("conf", 4 * 3)):
            head = net.conv(f"{what}{level}", own, width, relu=False)
            head = net.add(
                "Permute",
                f"{head}_perm",
                head,
                "permute_param { order: 0 order: 2 order: 3 order: 1 }",
            )
            names.append(net.add("Flatten", f"{head}_flat", head))
        names.append(
            net.add(
                "PriorBox",
                f"prior{level}",
                f"{own} data",
                f"prior_box_param {{ min_size: {12 * level} max_size: {20 * level} aspect_ratio: 2 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }}",
            )
        )
        parts.append(names)
    joined = [
        net.add(
            "Concat",
            name,
            " ".join(part[place] for part in parts),
            f"concat_param {{ axis: {2 if place == 2 else 1} }}",
        )
        for place, name in enumerate(("mbox_loc", "mbox_conf", "mbox_prior"))
    ]
    net.add(
        "MultiBoxLoss",
        "loss",
        f"{' '.join(joined)} label",
        "multibox_loss_param { num_classes: 3 code_type: CENTER_SIZE } include { phase: TRAIN }",
    )
    soft = net.add(
        "Reshape",
        "conf_r",
        "mbox_conf",
        "reshape_param { shape { dim: 0 dim: -1 dim: 3 } } include { phase: TEST }",
    )
    soft = net.add("Softmax", "conf_s", soft, "softmax_param { axis: 2 } include { phase: TEST }")
    soft = net.add("Flatten", "conf_f", soft, "include { phase: TEST }")
    found = net.add(
        "DetectionOutput",
        "found",
        f"mbox_loc {soft} mbox_prior",
        "detection_output_param { num_classes: 3 code_type: CENTER_SIZE keep_top_k: 20 nms_param { nms_threshold: 0.45 top_k: 40 } } include { phase: TEST }",
    )
    net.add(
        "DetectionEvaluate",
        "judged",
        f"{found} label",
        "detection_evaluate_param { num_classes: 3 } include { phase: TEST }",
    )
    return net


def region_proposals(net: Writer, top: str, train: bool) -> str:
    rpn = net.conv("rpn", top, 16)
    score = net.conv("rpn_score", rpn, 18, 1, relu=False)
    deltas = net.conv("rpn_box", rpn, 36, 1, relu=False)
    two = net.add(
        "Reshape", "rpn_two", score, "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } }"
    )
    if train:
        words = "'feat_stride': 16\\n'allowed_border': 400"
        net.add(
            "Python",
            "anchors",
            f"{score} gt im_info data",
            f'python_param {{ module: "rpn.anchor_target_layer" layer: "AnchorTargetLayer" param_str: "{words}" }}',
            "rpn_l rpn_t rpn_i rpn_o",
        )
        net.add(
            "SoftmaxWithLoss",
            "rpn_cls",
            f"{two} rpn_l",
            "propagate_down: true propagate_down: false loss_param { ignore_label: -1 }",
        )
        net.add(
            "SmoothL1Loss",
            "rpn_reg",
            f"{deltas} rpn_t rpn_i rpn_o",
            "smooth_l1_loss_param { sigma: 3 }",
        )
    prob = net.add("Softmax", "rpn_prob", two)
    prob = net.add(
        "Reshape", "rpn_back", prob, "reshape_param { shape { dim: 0 dim: 18 dim: -1 dim: 0 } }"
    )
    words = "'feat_stride': 16\\n'post_nms_topn': 30\\n'min_size': 4"
    return net.add(
        "Python",
        "proposal",
        f"{prob} {deltas} im_info",
        f'python_param {{ module: "rpn.proposal_layer" layer: "ProposalLayer" param_str: "{words}" }}',
        "rois",
    )


def detector(train: bool, position_sensitive: bool) -> Writer:
    inputs = {"data": images(1, 3, 96, 128), "im_info": [[96, 128, 1]]}
    if train:
        inputs["gt"] = np.array([[10, 10, 60, 70, 1], [50, 20, 120, 90, 2]], np.float32)
    net, top = Writer(**inputs), "data"
    for level in range(1, 5):
        top = net.pool(f"pool{level}", net.conv(f"conv{level}", top, 8))
    rois = region_proposals(net, top, train)
    if train:
        words = "'num_classes': 3" + ("\\n'batch_size': -1" if position_sensitive else "")
        rois = net.add(
            "Python",
            "targets",
            "rois gt",
            f'python_param {{ module: "rpn.proposal_target_layer" layer: "ProposalTargetLayer" param_str: "{words}" }}',
            "chosen labels box_t box_i box_o",
        )
    if position_sensitive:
        _position_sensitive(net, top, rois, train)
        return net
    pooled = net.add(
        "ROIPooling",
        "pooled",
        f"{top} {rois}",
        "roi_pooling_param { pooled_h: 3 pooled_w: 3 spatial_scale: 0.0625 }",
    )
    hidden = net.add("ReLU", "fc_relu", net.full("fc", pooled, 32))
    score, box = net.full("score", hidden, 3), net.full("box", hidden, 12)
    if train:
        net.add(
            "SoftmaxWithLoss",
            "loss",
            f"{score} labels",
            "propagate_down: true propagate_down: false",
        )
        flat = (
            net.add("Flatten", "box_flat", "box_t"),
            net.add("Flatten", "in_flat", "box_i"),
            net.add("Flatten", "out_flat", "box_o"),
        )
        net.add("SmoothL1Loss", "box_loss", f"{box} {' '.join(flat)}")
    else:
        net.add("Softmax", "prob", score)
    return net


def _position_sensitive(net: Writer, top: str, rois: str, train: bool) -> None:
    maps = {
        "cls": net.conv("cls_map", top, 3 * 9, 1, relu=False),
        "box": net.conv("box_map", top, 12 * 9, 1, relu=False),
    }
    means = {}
    for what, width in (("cls", 3), ("box", 12)):
        pooled = net.add(
            "PSROIPooling",
            f"{what}_ps",
            f"{maps[what]} {rois}",
            f"psroi_pooling_param {{ spatial_scale: 0.0625 output_dim: {width} group_size: 3 }}",
        )
        means[what] = net.pool(f"{what}_mean", pooled, "pool: AVE kernel_size: 3 stride: 3")
    if not train:
        net.add("Softmax", "prob", means["cls"])
        return
    net.add(
        "SoftmaxWithLossOHEM",
        "each_cls",
        f"{means['cls']} labels",
        "loss_weight: 0 loss_weight: 0 loss_weight: 0 propagate_down: false propagate_down: false",
        "l0 p0 cls_each",
    )
    net.add(
        "SmoothL1LossOHEM",
        "each_box",
        f"{means['box']} box_t box_i",
        "loss_weight: 0 loss_weight: 0 propagate_down: false propagate_down: false propagate_down: false",
        "b0 box_each",
    )
    each = net.add("Eltwise", "each", "cls_each box_each")
    net.parts.append(
        'layer { name: "quiet" type: "Silence" '
        + " ".join(f'bottom: "{one}"' for one in ("l0", "p0", "b0", "box_o"))
        + " }\n"
    )
    net.add(
        "BoxAnnotatorOHEM",
        "hard",
        f"{rois} {each} labels box_i",
        "propagate_down: false propagate_down: false propagate_down: false propagate_down: false box_annotator_ohem_param { roi_per_img: 16 }",
        "hard_l hard_w",
    )
    fixed = "loss_param { ignore_label: -1 normalization: PRE_FIXED pre_fixed_normalizer: 16 }"
    net.add(
        "SoftmaxWithLoss",
        "loss",
        f"{means['cls']} hard_l",
        f"propagate_down: true propagate_down: false {fixed}",
    )
    net.add(
        "SmoothL1LossOHEM",
        "box_loss",
        f"{means['box']} box_t hard_w",
        f"propagate_down: true propagate_down: false propagate_down: false {fixed}",
    )


def segnet(drops: bool = False) -> Writer:
    """With `drops` it has ENet's SpatialDropout and PReLU."""
    net = Writer(data=images(2, 3, 32, 32), label=pixel_labels(2, 32, 4))
    filler = "bn_param { scale_filler { value: 1 } shift_filler { value: 0.001 } }"
    top, masks = "data", []
    for level in (1, 2):
        top = net.conv(f"conv{level}", top, 8, relu=False)
        top = net.add("BN", f"bn{level}", top, filler, top)
        top = net.add("PReLU" if drops else "ReLU", f"act{level}", top, top=top)
        masks.append(f"pool{level}_mask")
        top = net.pool(f"pool{level}", top, top=f"pool{level} pool{level}_mask")
    if drops:
        top = net.add("SpatialDropout", "drop", top, "dropout_param { dropout_ratio: 0.1 }", top)
    for level, mask in zip((2, 1), reversed(masks), strict=True):
        top = net.add("Upsample", f"up{level}", f"{top} {mask}", "upsample_param { scale: 2 }")
        top = net.conv(f"back{level}", top, 8 if level == 2 else 4, relu=False)
        top = net.add("BN", f"back_bn{level}", top, filler, top)
    net.add(
        "SoftmaxWithLoss",
        "loss",
        f"{top} label",
        "loss_param { weight_by_label_freqs: true ignore_label: 9 class_weighting: 0.5 class_weighting: 1 class_weighting: 2 class_weighting: 1 }",
    )
    return net


def pspnet() -> Writer:
    net = Writer(data=images(2, 3, 33, 33), label=pixel_labels(2, 33, 4))
    norm = "bn_param { slope_filler { value: 1 } }"
    top = "data"
    for level, more in ((1, "stride: 2 pad: 1"), (2, "pad: 2 dilation: 2")):
        top = net.conv(f"conv{level}", top, 16, more=more, relu=False)
        top = net.add("BN", f"bn{level}", top, norm, top)
        top = net.add("ReLU", f"act{level}", top, top=top)
    parts = [top]
    for size in (17, 9):
        part = net.pool(
            f"pool{size}", top, f"pool: AVE kernel_size: {size} stride: {size} ceil_mode: false"
        )
        part = net.conv(f"level{size}", part, 4, 1)
        parts.append(
            net.add("Interp", f"wide{size}", part, "interp_param { height: 17 width: 17 }")
        )
    top = net.conv("last", net.add("Concat", "pyramid", " ".join(parts)), 4, 1, relu=False)
    top = net.add("Interp", "full", top, "interp_param { zoom_factor: 2 }")
    net.add("SoftmaxWithLoss", "loss", f"{top} label", "loss_param { ignore_label: 255 }")
    return net


def deeplab() -> Writer:
    net = Writer(data=images(1, 3, 33, 33), label=pixel_labels(1, 33, 4))
    top = net.pool("pool1", net.conv("conv1", "data", 8), "kernel_size: 3 stride: 2 pad: 1")
    top = net.conv("wide", top, 16, more="pad: 4 hole: 4")
    top = net.conv("score", net.add("Dropout", "drop", top, top=top), 4, 1, relu=False)
    top = net.add("Interp", "full", top, "interp_param { height: 33 width: 33 }")
    net.add("SoftmaxWithLoss", "loss", f"{top} label", "loss_param { ignore_label: 255 }")
    return net


def yolov2() -> Writer:
    net = Writer(data=images(2, 3, 64, 64))
    early = net.pool("pool2", net.pool("pool1", net.conv("conv1", "data", 8)))
    late = net.pool("pool3", net.conv("conv2", early, 16))
    early = net.add("Reorg", "reorg", early, "reorg_param { stride: 2 }")
    top = net.conv("region", net.add("Concat", "both", f"{early} {late}"), 2 * 8, 1, relu=False)
    biases = "biases: 1.5 biases: 2 biases: 4 biases: 3"
    options = f"yolo_detection_output_param {{ num_classes: 3 num_box: 2 {biases} }}"
    net.add("YoloDetectionOutput", "found", top, options)
    return net


def yolov3() -> Writer:
    net = Writer(data=images(2, 3, 64, 64))
    biases = (
        "biases: 8 biases: 10 biases: 20 biases: 15 biases: 30 biases: 40 biases: 50 biases: 60"
    )
    fine = net.conv(
        "conv2", net.conv("conv1", "data", 8, more="pad: 1 stride: 2"), 8, more="pad: 1 stride: 4"
    )
    coarse = net.conv("conv3", fine, 16, more="pad: 1 stride: 2")
    back = net.add(
        "Upsample", "up", net.conv("narrow", coarse, 8, 1), "upsample_param { scale: 2 }"
    )
    maps = (
        net.conv("map0", coarse, 2 * 8, 1, relu=False),
        net.conv("map1", net.add("Concat", "both", f"{back} {fine}"), 2 * 8, 1, relu=False),
    )
    masks = "mask_group_num: 2 anchors_scale: 16 anchors_scale: 8 mask: 2 mask: 3 mask: 0 mask: 1"
    options = f"num_classes: 3 num_box: 2 {masks} {biases}"
    net.add(
        "Yolov3DetectionOutput",
        "found",
        " ".join(maps),
        f"yolov3_detection_output_param {{ {options} }}",
    )
    return net


def shufflenet() -> Writer:
    net = Writer(data=images(2, 3, 32, 32), label=np.array([1, 3], np.float32))
    top = net.conv("conv1", "data", 12, more="pad: 1 stride: 2")
    for unit in (1, 2):
        before = top
        top = net.conv(f"in{unit}", top, 12, 1, "group: 3")
        top = net.add("ShuffleChannel", f"mix{unit}", top, "shuffle_channel_param { group: 3 }")
        top = net.conv(f"each{unit}", top, 12, kind="ConvolutionDepthwise", relu=False)
        top = net.add("BatchNorm", f"norm{unit}", top, "batch_norm_param { scale_bias: true }", top)
        top = net.add(
            "Eltwise",
            f"sum{unit}",
            f"{before} {net.conv(f'out{unit}', top, 12, 1, 'group: 3', relu=False)}",
        )
    top = net.pool("mean", top, "pool: AVE global_pooling: true")
    net.add("SoftmaxWithLoss", "loss", f"{net.full('score', top, 5)} label")
    return net


def crnn() -> Writer:
    marks = np.ones((8, 2), np.float32)
    marks[0] = 0
    net = Writer(
        data=images(2, 1, 16, 32), marks=marks, label=pixel_labels(8, 1, 6)[:, :, 0, 0].repeat(2, 1)
    )
    top = net.pool("pool2", net.conv("conv2", net.pool("pool1", net.conv("conv1", "data", 8)), 16))
    top = net.add("Permute", "time", top, "permute_param { order: 3 order: 0 order: 1 order: 2 }")
    top = net.add(
        "LSTM",
        "lstm",
        f"{top} marks",
        'recurrent_param { num_output: 12 weight_filler { type: "uniform" min: -0.1 max: 0.1 } }',
    )
    top = net.add(
        "InnerProduct", "score", top, f"inner_product_param {{ num_output: 6 axis: 2 {XAVIER} }}"
    )
    net.add("SoftmaxWithLoss", "loss", f"{top} label", "softmax_param { axis: 2 }")
    return net


def c3d() -> Writer:
    net = Writer(data=images(1, 3, 8, 24, 24), label=np.array([2], np.float32))
    top = "data"
    for level, depth in ((1, 1), (2, 2)):
        options = f"convolution3d_param {{ num_output: 8 kernel_size: 3 kernel_depth: 3 pad: 1 temporal_pad: 1 {XAVIER} }}"
        top = net.add("Convolution3D", f"conv{level}", top, options)
        top = net.add("ReLU", f"act{level}", top, top=top)
        top = net.add(
            "Pooling3D",
            f"pool{level}",
            top,
            f"pooling3d_param {{ kernel_size: 2 kernel_depth: {depth} stride: 2 temporal_stride: {depth} }}",
        )
    top = net.add(
        "Dropout", "drop", net.full("fc", top, 16), "dropout_param { scale_train: false }"
    )
    net.add("SoftmaxWithLoss", "loss", f"{net.full('score', top, 5)} label")
    return net


TRAINED = {
    "SSD": ssd,
    "Faster R-CNN": lambda: detector(True, False),
    "R-FCN": lambda: detector(True, True),
    "SegNet": segnet,
    "ENet": lambda: segnet(drops=True),
    "PSPNet": pspnet,
    "DeepLab": deeplab,
    "ShuffleNet": shufflenet,
    "CRNN": crnn,
    "C3D": c3d,
}
TESTED = {
    **TRAINED,
    "Faster R-CNN": lambda: detector(False, False),
    "R-FCN": lambda: detector(False, True),
    "YOLOv2": yolov2,
    "YOLOv3": yolov3,
}
