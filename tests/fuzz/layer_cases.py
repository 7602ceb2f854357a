"""One small sound layer or more of every type that computes from blobs: where drawing begins."""

from typing import NamedTuple

Shape = tuple[int, ...]


class Case(NamedTuple):
    """A layer's options, the shapes of its bottoms, and how many tops it has."""

    options: str
    shapes: tuple[Shape, ...]
    tops: int = 1


IMAGE, VECTOR, CLIP = (2, 3, 6, 5), (3, 4), (2, 3, 4, 5, 5)
WINDOW = "num_output: 4 kernel_size: 3 pad: 1 stride: 2"
RANDOM = 'weight_filler { type: "gaussian" std: 1 } bias_filler { type: "constant" value: 0.5 }'
GROUP = "cls_num: 2 field_h: 8 field_h: 6 field_w: 6 field_w: 8 stride: 4"
FIELD = "cls_num: 3 field_h: 8 field_w: 6 downsample_rate: 4"
RECURRENT = f"recurrent_param {{ num_output: 2 {RANDOM} }}"
V3 = " ".join(f"biases: {size}" for size in (10, 13, 40, 30, 60, 90, 20, 25))
CRF = "num_iterations: 2 theta_alpha: 5 theta_beta: 3 theta_gamma: 3"
SSD = ((2, 12), (2, 9), (1, 2, 12))


def _one(options: str, *shapes: Shape, tops: int = 1) -> tuple[Case, ...]:
    return (Case(options, shapes, tops),)


def _elementwise(*names: str) -> dict[str, tuple[Case, ...]]:
    return {name: (Case("", (IMAGE,)), Case("", (VECTOR,))) for name in names}


def _windows(name: str) -> dict[str, tuple[Case, ...]]:
    return {
        name: (
            Case(f"convolution_param {{ {WINDOW} {RANDOM} }}", (IMAGE,)),
            Case(f"convolution_param {{ {WINDOW} {RANDOM} }}", (IMAGE, IMAGE), 2),
            Case("convolution_param { num_output: 4 kernel_size: 3 dilation: 2 }", ((1, 2, 7, 8),)),
            Case("convolution_param { num_output: 2 kernel_size: 2 }", (CLIP,)),
        )
    }


def _recurrent(name: str, states: int, fixed: bool = True) -> dict[str, tuple[Case, ...]]:
    hidden = ((1, 2, 2),) * states
    exposed = RECURRENT.replace("{", "{ expose_hidden: true", 1)
    return {
        name: (
            Case(RECURRENT, ((3, 2, 4), (3, 2))),
            *((Case(RECURRENT, ((3, 2, 4), (3, 2), (2, 5))),) if fixed else ()),
            Case(exposed, ((3, 2, 4), (3, 2), *hidden), 1 + states),
        )
    }


CASES: dict[str, tuple[Case, ...]] = {
    **_elementwise("AbsVal", "BNLL", "Dropout", "ELU", "Exp", "GELU", "Log", "Mish", "Power"),
    **_elementwise(
        "HardSwish",
        "LogSoftmax",
        "PReLU",
        "ReLU",
        "ReLU6",
        "Sigmoid",
        "Softmax",
        "SpatialDropout",
        "Swish",
    ),
    **_elementwise("TanH", "Threshold", "MVN", "BatchNorm", "LayerNorm", "Flatten"),
    **_windows("Convolution"),
    **_windows("Deconvolution"),
    **_recurrent("LSTM", 2),
    **_recurrent("RNN", 1),
    **_recurrent("GRU", 1, fixed=False),
    "Accuracy": (
        Case("", ((4, 3), (4,))),
        Case("accuracy_param { top_k: 2 axis: 1 ignore_label: 1 }", (IMAGE, (2, 1, 6, 5)), 2),
    ),
    "ArgMax": _one("argmax_param { top_k: 2 axis: 1 }", IMAGE) + _one("", VECTOR),
    "Axpy": _one("", (2, 3), IMAGE, IMAGE) + _one("", (2, 3, 1, 1), IMAGE, IMAGE),
    "BN": _one("bn_param { bn_mode: LEARN }", IMAGE) + _one("bn_param { frozen: false }", IMAGE),
    "BatchGather": _one("", (2, 3, 4), (2, 2)) + _one("batch_gather_param { axis: 0 }", (3,), (4,)),
    "BatchReindex": _one("", VECTOR, (5,)),
    "Bias": _one("bias_param { axis: 1 }", IMAGE) + _one("bias_param { axis: 1 }", IMAGE, (3, 6)),
    "BoxAnnotatorOHEM": _one(
        "box_annotator_ohem_param { roi_per_img: 2 }", (4, 5), (4, 1), (4, 1), (4, 8), tops=2
    ),
    "BoxGroupOutput": _one(
        "box_group_output_param { fg_thr: 0.1 iou_thr: 0.5 nms_type: 'IOU' field_whr: 2 "
        "field_xyr: 2 box_group_param { field_h: 8 field_h: 6 field_w: 6 field_w: 8 stride: 4 } "
        "box_group_param { field_h: 8 field_w: 6 stride: 2 } }",
        *((4, 2, 3, 3), (4, 4, 3, 3), (2, 2, 5, 4), (2, 4, 5, 4)),
        tops=2,
    ),
    "BoxOutput": _one(
        "box_output_param { fg_thr: -5 iou_thr: 0.5 nms_type: 'IOU' field_h: 8 field_h: 6 "
        "field_w: 6 field_w: 8 downsample_rate: 4 downsample_rate: 2 field_whr: 2 field_xyr: 2 }",
        *((2, 7, 3, 3), (2, 7, 5, 4)),
        tops=2,
    ),
    "CenterLoss": _one("center_loss_param { num_output: 3 }", VECTOR, (3,)),
    "ChannelScale": _one("", IMAGE, (2, 1, 6, 5)),
    "Clip": _one("clip_param { min: -1 max: 1 }", IMAGE),
    "Concat": _one("", IMAGE, IMAGE)
    + _one("concat_param { axis: 2 }", IMAGE, (2, 3, 1, 5), IMAGE)
    + _one("concat_param { axis: 0 }", VECTOR, (1, 4)),
    "ContinuationIndicator": _one("continuation_indicator_param { time_step: 2 batch_size: 3 }"),
    "ContrastiveLoss": _one("", VECTOR, VECTOR, (3,)),
    "Convolution3D": _one(
        f"convolution3d_param {{ num_output: 4 kernel_size: 3 kernel_depth: 2 pad: 1 {RANDOM} }}",
        CLIP,
    ),
    "ConvolutionDepthwise": _one(f"convolution_param {{ {WINDOW} }}", (2, 4, 6, 5)),
    "Crop": _one("crop_param { axis: 2 offset: 1 }", IMAGE, (2, 3, 3, 4)),
    "CtcLoss": _one(
        "ctc_loss_param { alphabet_size: 3 blank_label: 2 time_step: 4 }", (4, 2, 3), (2, 3)
    ),
    "DecodeBBox": _one("", (4, 8), (4, 5)),
    "Deconvolution3D": _one(
        f"convolution3d_param {{ num_output: 2 kernel_size: 3 kernel_depth: 2 {RANDOM} }}",
        CLIP,
    ),
    "DenseCRF": _one(
        "dense_crf_param { max_iter: 2 pos_w: 1 pos_xy_std: 3 bi_w: 2 bi_xy_std: 5 bi_rgb_std: 4 }",
        *(IMAGE, (2, 2), IMAGE),
    ),
    "DepthwiseConvolution": _one(f"convolution_param {{ {WINDOW} }}", (2, 4, 6, 5)),
    "DetectionEvaluate": _one(
        "detection_evaluate_param { num_classes: 3 }", (1, 1, 4, 7), (1, 1, 3, 8)
    )
    + _one("detection_evaluate_param { num_classes: 3 }", (4, 7), (3, 8), (2, 2)),
    "DetectionOutput": _one("detection_output_param { num_classes: 3 }", *SSD)
    + _one("detection_output_param { num_classes: 3 }", *SSD, (2, 6), (2, 12)),
    "DummyData": _one(
        "dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: 'xavier' } }"
    ),
    "Eltwise": _one("", IMAGE, IMAGE)
    + _one("eltwise_param { operation: MAX }", VECTOR, VECTOR, VECTOR)
    + _one("eltwise_param { operation: PROD }", IMAGE, IMAGE),
    "Embed": _one(f"embed_param {{ num_output: 2 input_dim: 3 {RANDOM} }}", (2, 3)),
    "EuclideanLoss": _one("", VECTOR, VECTOR),
    "Filter": _one("", VECTOR, (3, 2, 2), (3,), tops=2),
    "Flip": _one("flip_param { flip_width: true flip_height: true }", IMAGE),
    "FocalLoss": _one("", (4, 3), (4,), tops=2)
    + _one("focal_loss_param { gamma: 2 type: ONEADDP }", IMAGE, (2, 1, 6, 5)),
    "FrcnnOutput": _one(
        "frcnn_output_param { conf_thr: 0.1 iou_thr: 0.5 } bbox_reg_param { cls_aware: false }",
        *((4, 3), (4, 8), (4, 5), (1, 2)),
    ),
    "CumSum": _one("", IMAGE) + _one("cum_sum_param { axis: 0 exclusive: true }", VECTOR),
    "Gather": _one("gather_param { axis: 1 index: 2 index: 0 index: 0 }", IMAGE),
    "HingeLoss": _one("", VECTOR, (3,)) + _one("hinge_loss_param { norm: L2 }", VECTOR, (3,)),
    "Im2col": _one("convolution_param { kernel_size: 3 pad: 1 stride: 2 }", IMAGE),
    "InfogainLoss": _one("", (4, 3), (4,), (3, 3), tops=2),
    "InnerDistance": _one(
        f"inner_distance_param {{ num_output: 3 {RANDOM} }}".replace(
            'bias_filler { type: "constant" value: 0.5 } ', ""
        ),
        VECTOR,
    )
    + _one("", VECTOR, (2, 4))
    + _one("inner_distance_param { num_output: 3 update_center_only: true }", VECTOR, (3,)),
    "InnerProduct": _one(f"inner_product_param {{ num_output: 3 {RANDOM} }}", IMAGE)
    + _one("inner_product_param { num_output: 3 axis: 2 transpose: true }", IMAGE),
    "Input": _one("input_param { shape { dim: 2 dim: 3 } }"),
    "Interp": _one("interp_param { height: 9 width: 4 }", IMAGE)
    + _one("", IMAGE, (1, 1, 3, 8))
    + _one("interp_param { zoom_factor: 2 pad_beg: -1 }", IMAGE),
    "L1Loss": _one("", VECTOR, VECTOR),
    "LRN": _one("", IMAGE) + _one("lrn_param { norm_region: WITHIN_CHANNEL local_size: 3 }", IMAGE),
    "LSTMUnit": _one("", (1, 3, 2), (1, 3, 8), (1, 3), tops=2),
    "LabelSpecificAdd": _one("label_specific_add_param { bias: 0.5 }", VECTOR, (3,)),
    "LabelsequenceAccuracy": _one(
        "labelsequence_accuracy_param { blank_label: 2 }", (2, 4, 3), (2, 3)
    ),
    "MMDLoss": _one("", VECTOR, (5, 4)) + _one("mmd_param { fix_gamma: true }", VECTOR, VECTOR),
    "MarginInnerProduct": _one(
        "margin_inner_product_param { num_output: 3 type: TRIPLE }", VECTOR, (3,)
    )
    + _one("margin_inner_product_param { num_output: 3 }", VECTOR, (3,), tops=2),
    "Math": _one("math_param { function: SIN }", IMAGE)
    + _one("math_param { function: TRUNC }", VECTOR),
    "MatMul": _one("", (2, 3, 4), (2, 4, 5))
    + _one("matmul_param { transpose_a: true transpose_b: true }", (2, 4, 3), (2, 5, 4)),
    "MultiBoxLoss": _one("multibox_loss_param { num_classes: 3 }", *SSD, (1, 1, 2, 8))
    + _one(
        "multibox_loss_param { num_classes: 3 conf_loss_type: LOGISTIC mining_type: HARD_EXAMPLE "
        "match_type: BIPARTITE }",
        *(*SSD, (1, 1, 2, 8)),
    )
    + _one(
        "multibox_loss_param { num_classes: 3 share_location: false mining_type: NONE }",
        *((2, 36), (2, 9), (1, 2, 12), (1, 1, 2, 8)),
    )
    + _one("multibox_loss_param { num_classes: 3 }", *SSD, (1, 1, 2, 8), (2, 6), (2, 12)),
    "MultiStageMeanfield": _one(
        f"multi_stage_meanfield_param {{ {CRF} }}", (1, 2, 4, 3), (1, 2, 4, 3), (1, 3, 4, 3)
    ),
    "MultinomialLogisticLoss": _one("", (4, 3), (4,)),
    "Normalize": _one("norm_param { across_spatial: true }", IMAGE)
    + _one("norm_param { across_spatial: false channel_shared: false }", IMAGE),
    "PSROIPooling": _one(
        "psroi_pooling_param { group_size: 2 output_dim: 3 spatial_scale: 0.5 }",
        (2, 12, 6, 5),
        (3, 5),
    ),
    "Parameter": _one("parameter_param { shape { dim: 2 dim: 3 } }"),
    "Permute": _one("permute_param { order: 0 order: 2 order: 3 order: 1 }", IMAGE),
    "Pooling": _one("pooling_param { kernel_size: 3 stride: 2 pad: 1 }", IMAGE)
    + _one("pooling_param { kernel_size: 2 stride: 2 }", IMAGE, tops=2)
    + _one("pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }", IMAGE)
    + _one("pooling_param { pool: STOCHASTIC kernel_size: 2 }", IMAGE)
    + _one("pooling_param { pool: AVE global_pooling: true }", IMAGE),
    "Pooling3D": _one(
        "pooling3d_param { pool: MAX kernel_size: 2 kernel_depth: 2 stride: 2 }", CLIP
    ),
    "PriorBox": _one(
        "prior_box_param { min_size: 4 max_size: 8 aspect_ratio: 2 }", IMAGE, (2, 3, 24, 20)
    ),
    "PriorBoxClustered": _one("prior_box_param { width: 4 height: 2 }", IMAGE, (2, 3, 24, 20)),
    "Proposal": _one(
        "proposal_param { ratio: 1 scale: 1 scale: 2 feat_stride: 4 base_size: 4 min_size: 1 }",
        *((1, 4, 3, 3), (1, 8, 3, 3), (1, 3)),
        tops=2,
    ),
    "ROIAlign": _one(
        "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.5 }", IMAGE, (3, 5)
    ),
    "ROIPooling": _one(
        "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.5 }", IMAGE, (3, 5)
    ),
    "RecordWeights": _one("", VECTOR, (3,)),
    "Reduction": _one("reduction_param { axis: 1 operation: SUMSQ }", IMAGE)
    + _one("reduction_param { axis: 2 operation: MEAN }", IMAGE),
    "Reorg": _one("reorg_param { stride: 2 }", (2, 4, 4, 6)),
    "Reshape": _one("reshape_param { shape { dim: 0 dim: -1 } }", IMAGE),
    "GridSample": _one("", IMAGE, (2, 5, 3, 2))
    + _one("grid_sample_param { mode: BICUBIC padding_mode: BORDER }", IMAGE, (2, 1, 4, 2))
    + _one(
        "grid_sample_param { mode: NEAREST padding_mode: REFLECTION align_corners: true }",
        *(IMAGE, (2, 2, 2, 2)),
    ),
    "Resize": _one("resize_image_param { height: 5 width: 13 mode: LINEAR }", IMAGE)
    + _one("resize_image_param { mode: CUBIC }", IMAGE, (1, 1, 3, 8)),
    "Reverse": _one("reverse_param { axis: 1 }", IMAGE),
    "SPP": _one("spp_param { pyramid_height: 2 }", IMAGE),
    "Scale": _one("scale_param { bias_term: true }", IMAGE)
    + _one("scale_param { axis: 0 }", IMAGE, (2, 3))
    + _one("scale_param { axis: 0 }", IMAGE, (2, 3, 6)),
    "ScaleRoute": _one("scale_route_param { high_scale: 20 }", (4, 5), (4, 3), tops=2),
    "SegAccuracy": _one("", IMAGE, (2, 1, 6, 5)),
    "ShuffleChannel": _one("shuffle_channel_param { group: 2 }", (2, 4, 3, 3)),
    "SigmoidCrossEntropyLoss": _one("", VECTOR, VECTOR)
    + _one("loss_param { class_balanced: true }", (2, 1, 4, 4), (2, 1, 4, 4)),
    "Silence": _one("", VECTOR, tops=0),
    "Slice": _one("", (2, 4, 3, 3), tops=2)
    + _one("slice_param { axis: 2 slice_point: 1 }", IMAGE, tops=2),
    "SmoothL1Loss": _one("", VECTOR, VECTOR)
    + _one("smooth_l1_loss_param { sigma: 3 }", IMAGE, IMAGE, IMAGE, IMAGE),
    "SmoothL1LossOHEM": _one("", (3, 8), (3, 8), (3, 8), tops=2),
    "SoftmaxWithLoss": _one("", (4, 3), (4,), tops=3)
    + _one("loss_param { ignore_label: 1 }", IMAGE, (2, 1, 6, 5), tops=2),
    "SoftmaxWithLossOHEM": _one("", (4, 3), (4,), tops=3),
    "Split": _one("", IMAGE, tops=3),
    "Tile": _one("tile_param { axis: 1 tiles: 3 }", IMAGE),
    "Transpose": _one("transpose_param { dim: 3 dim: 0 dim: 2 dim: 1 }", IMAGE),
    "TripletLoss": _one("", VECTOR, VECTOR, VECTOR),
    "TrueBoxes": _one("", (2, 3, 5)) + _one("", (2, 3, 6)),
    "Upsample": _one("upsample_param { scale: 2 }", IMAGE)
    + _one("upsample_param { scale: 2 }", IMAGE, IMAGE),
    "YoloDetectionOutput": _one(
        "yolo_detection_output_param { num_classes: 3 num_box: 2 confidence_threshold: 0.01 "
        "biases: 1 biases: 2 biases: 3 biases: 1.5 }",
        (2, 16, 3, 4),
    ),
    "SizedLike": (
        Case("sized_like_param { size { dim: 3 } size { axis: 1 } }", ((1, 9), (2, 4))),
        Case(
            "sized_like_param { size { axis: 1 } size { dim: -1 } reshape: true }", ((6, 4), (2, 3))
        ),
    ),
    "Div": _one("", (2, 3, 1), (2, 1, 5)),
    "Where": _one("", (2, 3, 1), (2, 1, 5), (3, 5)),
    "Yolov3DetectionOutput": _one(
        "yolov3_detection_output_param { num_classes: 2 num_box: 2 confidence_threshold: 0.01 "
        "mask: 0 mask: 1 mask: 2 mask: 3 mask_group_num: 2 anchors_scale: 8 anchors_scale: 4 "
        f"{V3} }}",
        *((2, 14, 2, 3), (2, 14, 4, 6)),
    ),
}

READ_FILES = frozenset(
    {
        *("AnnotatedData", "Data", "DenseImageData"),
        *("HDF5Data", "HDF5Output", "ImageData", "ImageLabelmapData"),
        *("ImageSegData", "MemoryData", "SegData", "WindowData"),
    }
)
"""Types that read or write files, or wait for arrays: they have no bottoms to draw."""

USERS = frozenset({"Python"})
"""Types that are a user's code."""
