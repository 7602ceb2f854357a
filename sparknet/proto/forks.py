"""Public forks of Caffe: names that sparknet lacks, and names that mean something else there.

Where fields tell forks apart (BN's `bn_mode`, `slope_filler`) no dialect is needed; where they do
not, a dialect writes down in the layers what its fork does without saying so.

The names come from the forks' caffe.proto and registered layers. One that sparknet learns leaves
the table (tests/proto/test_forks.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from google.protobuf.message import DecodeError

from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import ByteSource
from sparknet.proto.wire import BYTES, WireField, encode_varint, read_field

Layer = caffe_pb2.LayerParameter


class ForkWarning(UserWarning):
    """Two forks mean different things by a layer's text: which was taken, and how to say others."""


def _segnet(layer: Layer) -> None:
    """BN has scale and shift, and takes the statistics of the batch in both phases."""
    if layer.type == "BN" and not layer.bn_param.HasField("bn_mode"):
        layer.bn_param.bn_mode = caffe_pb2.BNParameter.LEARN


def _normalize(layer: Layer, across_spatial: bool, eps: float) -> None:
    """Normalize learns no factor."""
    if layer.type == "Normalize" and not layer.HasField("norm_param"):
        layer.norm_param.across_spatial = across_spatial
        layer.norm_param.eps = eps
        layer.norm_param.learned_scale = False


def _pspnet(layer: Layer) -> None:
    """BN has slope, bias and running statistics."""
    if layer.type == "BN" and not layer.bn_param.HasField("frozen"):
        layer.bn_param.frozen = False


def _hed(layer: Layer) -> None:
    """Balance the loss of edges, which are few, and align Crop's bottoms."""
    if layer.type == "SigmoidCrossEntropyLoss":
        layer.loss_param.class_balanced = True
    elif layer.type == "Crop" and not layer.crop_param.offset and layer.crop_param.axis in (2, -2):
        layer.crop_param.align = True


def _textboxes(layer: Layer) -> None:
    """Shift all default boxes by half a place."""
    if layer.type == "PriorBox":
        layer.prior_box_param.arrangement = caffe_pb2.PriorBoxParameter.TWO_ROWS


def _faceboxes(layer: Layer) -> None:
    """Small default boxes lie densely."""
    if layer.type == "PriorBox":
        layer.prior_box_param.arrangement = caffe_pb2.PriorBoxParameter.DENSE


def _happynear(layer: Layer) -> None:
    """Normalize divides at each place; BN is PSPNet's."""
    _normalize(layer, across_spatial=False, eps=1e-6)
    _pspnet(layer)


def _tsn(layer: Layer) -> None:
    """Normalize divides by the norm of a whole image; BN is PSPNet's."""
    _normalize(layer, across_spatial=True, eps=0)
    _pspnet(layer)


def _rfcn(layer: Layer) -> None:
    """Make SmoothL1Loss of at most three bottoms R-FCN's SmoothL1LossOHEM."""
    if layer.type == "SmoothL1Loss" and len(layer.bottom) < 4:
        layer.type = "SmoothL1LossOHEM"
        layer.ClearField("smooth_l1_loss_param")


DIALECTS: Mapping[str, Callable[[Layer], None]] = {
    "segnet": _segnet,
    "pspnet": _pspnet,
    "hed": _hed,
    "textboxes": _textboxes,
    "faceboxes": _faceboxes,
    "happynear": _happynear,
    "tsn": _tsn,
    "rfcn": _rfcn,
}


def in_dialect(net: caffe_pb2.NetParameter, dialect: str | None) -> caffe_pb2.NetParameter:
    """Write the meaning of a fork down in a net of the current generation."""
    if dialect is None:
        return net
    if dialect not in DIALECTS:
        raise SpecError(f"unknown dialect '{dialect}': it is one of {', '.join(DIALECTS)}")
    for layer in net.layer:
        DIALECTS[dialect](layer)
    return net


LACKED: Mapping[str, Mapping[str, str]] = {
    # forks: a message type, or "type" (of a layer) or "value" (of an enumeration): its names
    "LisaAnne/lisa-caffe-public": {
        "AccuracyParameter": "denominator",
        "EltwiseParameter": "coeff_blob",
    },
    "LisaAnne/lisa-caffe-public intel/caffe": {
        "ImageDataParameter": "min_height min_width",
    },
    "LisaAnne/lisa-caffe-public alexgkendall/caffe-segnet tianzhi0549/CTPN": {
        "SolverParameter": "stepearly",
    },
    "NVIDIA/caffe": {
        "AnnotatedDatum": "record_id",
        "Datum": "record_id",
        "DropoutParameter": "engine random_seed",
        "ELUParameter": "lambda",
        "ImageDataParameter": "dataset_share_per_node",
        "LayerParameter": "debug",
        "SolverParameter": "test_and_snapshot_last_epochs",
        "TransformationParameter": ("display forward_packing num_labels"),
        "type": "DetectNetTransformation TRT",
        "value": "SAG",
    },
    "NVIDIA/caffe intel/caffe": {
        "LossParameter": "label_smoothing",
    },
    "ZheC/Realtime_Multi-Person_Pose_Estimation": {
        "LayerParameter": "cpm_transform_param",
        "type": "CPMData",
    },
    "daijifeng001/MNC": {
        "LayerParameter": "mask_pooling_param mask_resize_param roi_warping_param",
        "type": "MaskPooling MaskResize ROIWarping",
    },
    "eric612/MobileNet-YOLO": {
        "AnnotatedDataParameter": "difficult_label_warmup",
        "Annotation": "lanes",
        "Datum": "seg_label",
        "TransformationParameter": (
            "apply_probability contrast_brightness_adjustment cvt_bgr2rgb debug_params "
            "enable_classf_aug max_brightness_shift max_color_shift max_contrast "
            "max_rotation_angle max_scaling_factor max_smooth min_contrast min_scaling_factor "
            "min_side min_side_max min_side_min smooth_filtering"
        ),
        "type": "AssistedExcitation GaussianYolov3 LaneData SegmentationEvaluate YoloSeg Yolov3",
        "value": "BBOXandSeg LANE",
    },
    "facebook/C3D": {
        "BlobProto": "length",
        "DataParameter": "show_data",
        "ImageDataParameter": "clip_max clip_min",
        "LayerParameter": "blobs_lr down_sampling_param layer weight_decay",
        "type": (
            "BlackHole L2Normalize VideoData VideoSegmentationData VideoWithVoxelTruthData "
            "VoxelSoftmax VoxelSoftmaxWithLoss"
        ),
        "value": "DOWN_SAMPLING ELTWISE_PRODUCT",
    },
    "gklz1982/caffe-yolov2": {
        "QuantizationParameter": "exp_bits exp_max exp_min mant_bits",
        "type": (
            "BoxData ConvolutionRistretto DeconvolutionRistretto EvalDetection FcRistretto "
            "LRNRistretto RegionLoss"
        ),
        "value": "INTEGER_POWER_OF_2_WEIGHTS MINIFLOAT",
    },
    "happynear/caffe-windows": {
        "AccuracyParameter": "min_is_better",
        "BatchNormParameter": "disable_mean disable_variance",
        "ConvolutionParameter": "shape_offset",
        "DropoutParameter": "sqrt_scale",
        "FillerParameter": "alpha",
        "ImageDataParameter": (
            "balance_by balance_class face_mirror face_point_num face_transform label_cut_end "
            "label_cut_start max_aspect_ratio max_random_scale max_random_shift "
            "max_rotate_angle max_shear_ratio min_random_scale"
        ),
        "LayerParameter": (
            "batch_contrastive_loss_param confidence_penalty_loss_param eltwise_affine_param "
            "fcn_data_param feature_decay_loss_param general_contrastive_loss_param "
            "general_triplet_loss_param hotspot_param infimum_loss_param insanity_param "
            "label_specific_affine_param label_specific_hard_margin_param "
            "label_specific_margin_param label_specific_rescale_param "
            "largemargin_inner_product_param local_param nca_param noise_param normalize_param "
            "ordinal_regression_loss_param pairwise_param predict_box_param resize_param "
            "smoothl1_param soft_contrastive_loss_param soft_truncation_param sub_region_param "
            "truncation_param"
        ),
        "MemoryDataParameter": "transpose",
        "NoiseParameter": "bias gaussian_std uniform_range",
        "NormalizeParameter": "bp_norm fix_gradient normalize_type",
        "ParameterParameter": "blob_filler",
        "PoolingParameter": "blobs_a_min blobs_lr",
        "ResizeParameter": "is_pyramid_test out_height_scale out_width_scale",
        "ScaleParameter": "max_value min_value",
        "SoftmaxParameter": (
            "class_weight cutting_point hard_mining_label hard_ratio label_smooth_factor "
            "normalize_type"
        ),
        "SolverParameter": "clamp_weights_lower clamp_weights_upper clip_weights",
        "TransformationParameter": (
            "aspect_max aspect_min center_crop erase_ratio scale_max scale_min"
        ),
        "V1LayerParameter": (
            "eltwise_affine_param insanity_param local_param noise_param sub_region_param "
            "triplet_loss_param"
        ),
        "type": (
            "Arccos BatchContrastiveLoss ConfidencePenaltyLoss CorrelationLoss "
            "Cosine FCNAccuracy GeneralContrastiveLoss GeneralTripletLoss "
            "GlobalLSEMargin Gram Hotspot Insanity "
            "LargeMarginInnerProduct Local MovingNormalize MultiLabelImageData NCALoss Noise "
            "Pairwise PredictBox Slope SoftContrastiveLoss SoftTruncation SubRegion Transformer "
            "Truncation"
        ),
        "value": (
            "DEF DEF_ALL DEF_ALL2 DEF_ALL3 DEF_ALL4 ELTWISE_AFFINE HARD INSANITY LOCAL LOWRES "
            "SOFT SORT TRIPLET_LOSS"
        ),
    },
    "hszhao/PSPNet": {
        "BatchNormParameter": "update_global_stats",
        "LayerParameter": "adaptive_bias_channel_param domain_transform_param unique_label_param",
        "type": (
            "AdaptiveBiasChannel BiasChannel DomainTransform "
            "DomainTransformForwardOnly MatRead MatWrite SpatialProduct UniqueLabel"
        ),
    },
    "intel/caffe": {
        "BatchNormParameter": "bias_term relu stats_batch_size use_weight_bias",
        "ConcatParameter": "engine",
        "ConvolutionParameter": "coeff fusion_type negative_slope relu",
        "EltwiseParameter": "engine",
        "FillerParameter": "scale",
        "InnerProductParameter": "engine negative_slope relu",
        "LayerParameter": (
            "mn_activation_param mn_grad_compress_param multinode spatial_dropout_param split_param"
        ),
        "NetParameter": "compile_net_state multinode",
        "PoolingParameter": "avg_include_pad axis kernel_size_3d pad_3d stride_3d",
        "ROIPoolingParameter": "pooled_size",
        "ReLUParameter": "fuse",
        "ReshapeParameter": "pixelshuffler",
        "SolverParameter": "disabled_update engine",
        "type": "MKLBatchNorm MnActivation",
    },
    "jeffdonahue/caffe": {
        "LayerParameter": "scalar_param",
        "type": "Scalar",
    },
    "senlinuc/caffe_ocr": {
        "LayerParameter": "ctc_decoder_param denseblock_param",
        "type": "CTCGreedyDecoder DenseBlock WarpCTCLoss",
    },
    "senlinuc/caffe_ocr tianzhi0549/CTPN": {
        "LayerParameter": "lstm_param",
        "type": "Lstm",
    },
    "soeaver/caffe-model": {
        "InterpParameter": "use_blob_size",
        "LayerParameter": "selu_dropout_param",
        "type": "SeLu SeLuDropout",
    },
    "wenwei202/caffe": {
        "LayerParameter": "sparsify_param",
        "ParamSpec": "force_mult",
        "SolverParameter": "force_iter",
        "type": "Sparsify",
    },
    "xiaolonw/caffe-video_triplet": {
        "ImageDataParameter": "pair_size",
        "type": "RankHardLoss",
    },
    "yahoo/CaffeOnSpark": {
        "LayerParameter": "cos_data_param",
        "type": "CoSData",
    },
    "yjxiong/caffe": {
        "ReductionParameter": "k",
        "SolverParameter": "group_id",
        "VideoDataParameter": "length_first rand_step step",
        "type": "BatchReduction Scatter SyncBN",
        "value": "STOCHASTIC_SUM TOPK",
    },
    "zhaoweicai/cascade-rcnn": {
        "type": (
            "BboxAccuracy DetectionData DetectionGroupAccuracy DetectionGroupLoss EvalData "
            "HardMining"
        ),
    },
    "zhaoweicai/mscnn": {
        "type": "DetectionAccuracy DetectionLoss ImageGtData",
    },
}


@cache
def _forks() -> dict[tuple[str, str], tuple[str, ...]]:
    return {
        (kind, name): tuple(forks.split())
        for forks, kinds in LACKED.items()
        for kind, names in kinds.items()
        for name in names.split()
    }


def origin(kind: str, name: str) -> str:
    """Return the part of a sentence that says which fork has an unknown name, or ""."""
    forks = _forks().get((kind, name)) or _forks().get(("value", name))
    return f", which {' and '.join(forks)} {'has' if len(forks) == 1 else 'have'}" if forks else ""


LAYER = 100
"""The number of `layer` in a net, and of the first settings in a layer."""


def without_foreign(skeleton: bytes) -> bytes:
    """Return a net's message without settings of layers that cannot be read."""
    source, position, parts = ByteSource(skeleton), 0, []
    while position < len(skeleton):
        field = read_field(source, position, len(skeleton))
        content = skeleton[field.body : field.stop]
        if field.number == LAYER and field.wire == BYTES:
            layer = _layer(content)
            parts.append(encode_varint(LAYER << 3 | BYTES) + encode_varint(len(layer)) + layer)
        else:
            parts.append(skeleton[position : field.stop])
        position = field.stop
    return b"".join(parts)


def _layer(content: bytes) -> bytes:
    source, position, parts = ByteSource(content), 0, []
    while position < len(content):
        field = read_field(source, position, len(content))
        if field.number < LAYER or _is_readable(content, field):
            parts.append(content[position : field.stop])
        position = field.stop
    return b"".join(parts)


def _is_readable(content: bytes, field: WireField) -> bool:
    layer = caffe_pb2.LayerParameter()
    try:
        layer.ParseFromString(content[field.start : field.stop])
        layer.SerializePartialToString()
        str(layer)
    except (DecodeError, RecursionError, ValueError):
        return False
    return True
