# Written by python -m sparknet.dsl from the layer types and proto/caffe.proto.

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import SupportsFloat, SupportsIndex, TypeAlias, TypedDict

from typing_extensions import Unpack

from sparknet.dsl.layer_spec import LayerSpec
from sparknet.dsl.net_params import NetParams
from sparknet.proto import caffe_pb2

Blobs: TypeAlias = str | LayerSpec | Iterable[str | LayerSpec]
Text: TypeAlias = str | PathLike[str]
Dict: TypeAlias = Mapping[str, object]

__all__ = [
    "AbsVal",
    "Accuracy",
    "AnnotatedData",
    "ArgMax",
    "Axpy",
    "BN",
    "BNLL",
    "BatchGather",
    "BatchNorm",
    "BatchReindex",
    "Bias",
    "BoxAnnotatorOHEM",
    "BoxGroupOutput",
    "BoxOutput",
    "CenterLoss",
    "ChannelScale",
    "Clip",
    "Concat",
    "ContinuationIndicator",
    "ContrastiveLoss",
    "Convolution",
    "Convolution3D",
    "ConvolutionDepthwise",
    "Crop",
    "CtcLoss",
    "CumSum",
    "Data",
    "DecodeBBox",
    "Deconvolution",
    "Deconvolution3D",
    "DenseCRF",
    "DenseImageData",
    "DepthwiseConvolution",
    "DetectionEvaluate",
    "DetectionOutput",
    "Div",
    "Dropout",
    "DummyData",
    "ELU",
    "Eltwise",
    "Embed",
    "EuclideanLoss",
    "Exp",
    "Filter",
    "Flatten",
    "Flip",
    "FocalLoss",
    "FrcnnOutput",
    "GELU",
    "GRU",
    "Gather",
    "GridSample",
    "HDF5Data",
    "HDF5Output",
    "HardSwish",
    "HingeLoss",
    "Im2col",
    "ImageData",
    "ImageLabelmapData",
    "ImageSegData",
    "InfogainLoss",
    "InnerDistance",
    "InnerProduct",
    "Input",
    "Interp",
    "L1Loss",
    "LRN",
    "LSTM",
    "LSTMUnit",
    "LabelSpecificAdd",
    "LabelsequenceAccuracy",
    "LayerNorm",
    "Log",
    "LogSoftmax",
    "MMDLoss",
    "MVN",
    "MarginInnerProduct",
    "MatMul",
    "Math",
    "MemoryData",
    "Mish",
    "MultiBoxLoss",
    "MultiStageMeanfield",
    "MultinomialLogisticLoss",
    "Normalize",
    "PReLU",
    "PSROIPooling",
    "Parameter",
    "Permute",
    "Pooling",
    "Pooling3D",
    "Power",
    "PriorBox",
    "PriorBoxClustered",
    "Proposal",
    "ProposalTarget",
    "Python",
    "RNN",
    "ROIAlign",
    "ROIPooling",
    "ReLU",
    "ReLU6",
    "RecordWeights",
    "Reduction",
    "Reorg",
    "Reshape",
    "Resize",
    "Reverse",
    "SPP",
    "Scale",
    "ScaleRoute",
    "SegAccuracy",
    "SegData",
    "ShuffleChannel",
    "Sigmoid",
    "SigmoidCrossEntropyLoss",
    "Silence",
    "SizedLike",
    "Slice",
    "SmoothL1Loss",
    "SmoothL1LossOHEM",
    "Softmax",
    "SoftmaxWithLoss",
    "SoftmaxWithLossOHEM",
    "SpatialDropout",
    "Split",
    "Swish",
    "TanH",
    "Threshold",
    "Tile",
    "Transpose",
    "TripletLoss",
    "TrueBoxes",
    "Upsample",
    "Where",
    "WindowData",
    "YoloDetectionOutput",
    "Yolov3DetectionOutput",
]

class LayerOptions(TypedDict, total=False):
    bottom: Blobs
    top: Blobs | None
    tops: Blobs | None
    in_place: bool
    lr_mult: SupportsFloat | Iterable[SupportsFloat] | None
    decay_mult: SupportsFloat | Iterable[SupportsFloat] | None
    loss_weight: SupportsFloat | Iterable[SupportsFloat] | None
    param: Dict | caffe_pb2.ParamSpec | str | Iterable[Dict | caffe_pb2.ParamSpec | str] | None
    propagate_down: bool | Iterable[bool] | None
    include: Dict | caffe_pb2.NetStateRule | str | SupportsIndex | Iterable[Dict | caffe_pb2.NetStateRule | str | SupportsIndex] | None
    exclude: Dict | caffe_pb2.NetStateRule | str | SupportsIndex | Iterable[Dict | caffe_pb2.NetStateRule | str | SupportsIndex] | None
    phase: str | SupportsIndex | None

class SolverOptions(TypedDict, total=False):
    train_net: Text | NetParams | None
    test_net: Text | Iterable[Text] | NetParams | None
    test_iter: SupportsIndex | Iterable[SupportsIndex] | None
    test_interval: SupportsIndex | None
    base_lr: SupportsFloat | None
    display: SupportsIndex | None
    max_iter: SupportsIndex | None
    lr_policy: Text | None
    gamma: SupportsFloat | None
    power: SupportsFloat | None
    momentum: SupportsFloat | None
    weight_decay: SupportsFloat | None
    stepsize: SupportsIndex | None
    snapshot: SupportsIndex | None
    snapshot_prefix: Text | None
    snapshot_diff: bool | None
    solver_mode: str | SupportsIndex | None
    device_id: SupportsIndex | None
    test_compute_loss: bool | None
    random_seed: SupportsIndex | None
    train_net_param: Dict | caffe_pb2.NetParameter | None
    test_net_param: Dict | caffe_pb2.NetParameter | Iterable[Dict | caffe_pb2.NetParameter] | None
    debug_info: bool | None
    net: Text | NetParams | None
    net_param: Dict | caffe_pb2.NetParameter | None
    train_state: Dict | caffe_pb2.NetState | None
    test_state: Dict | caffe_pb2.NetState | Iterable[Dict | caffe_pb2.NetState] | None
    snapshot_after_train: bool | None
    regularization_type: Text | None
    solver_type: str | SupportsIndex | None
    delta: SupportsFloat | None
    test_initialization: bool | None
    average_loss: SupportsIndex | None
    stepvalue: SupportsIndex | Iterable[SupportsIndex] | None
    clip_gradients: SupportsFloat | None
    iter_size: SupportsIndex | None
    snapshot_format: str | SupportsIndex | None
    rms_decay: SupportsFloat | None
    momentum2: SupportsFloat | None
    type: Text | None
    layer_wise_reduce: bool | None
    weights: Text | Iterable[Text] | None
    plateau_winsize: SupportsIndex | Iterable[SupportsIndex] | None
    show_per_class_result: bool | None
    eval_type: Text | None
    ap_version: Text | None
    stagelr: SupportsFloat | Iterable[SupportsFloat] | None
    stageiter: SupportsIndex | Iterable[SupportsIndex] | None
    rampup_interval: SupportsIndex | None
    rampup_lr: SupportsFloat | None
    min_lr: SupportsFloat | None
    solver_data_type: str | SupportsIndex | None
    store_blobs_in_old_format: bool | None
    momentum_policy: Text | None
    max_momentum: SupportsFloat | None
    momentum_power: SupportsFloat | None
    larc: bool | None
    larc_policy: Text | None
    larc_eta: SupportsFloat | None
    weight_decay_policy: Text | None
    weight_decay_power: SupportsFloat | None
    larc_turbo: bool | None
    max_weight_decay: SupportsFloat | None
    warmup_iter: SupportsIndex | None
    warmup_start_lr: SupportsFloat | None
    local_lr_auto: bool | None
    local_gw_ratio: SupportsFloat | None
    test_offset: SupportsIndex | None
    further_device_id: SupportsIndex | Iterable[SupportsIndex] | None
    richness: SupportsIndex | None

class SolverFields:
    @property
    def train_net(self) -> str: ...
    @property
    def test_net(self) -> Sequence[str]: ...
    @property
    def test_iter(self) -> Sequence[int]: ...
    @property
    def test_interval(self) -> int: ...
    @property
    def base_lr(self) -> float: ...
    @property
    def display(self) -> int: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def lr_policy(self) -> str: ...
    @property
    def gamma(self) -> float: ...
    @property
    def power(self) -> float: ...
    @property
    def momentum(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def stepsize(self) -> int: ...
    @property
    def snapshot(self) -> int: ...
    @property
    def snapshot_prefix(self) -> str: ...
    @property
    def snapshot_diff(self) -> bool: ...
    @property
    def solver_mode(self) -> int: ...
    @property
    def device_id(self) -> int: ...
    @property
    def test_compute_loss(self) -> bool: ...
    @property
    def random_seed(self) -> int: ...
    @property
    def train_net_param(self) -> caffe_pb2.NetParameter: ...
    @property
    def test_net_param(self) -> Sequence[caffe_pb2.NetParameter]: ...
    @property
    def debug_info(self) -> bool: ...
    @property
    def net(self) -> str: ...
    @property
    def net_param(self) -> caffe_pb2.NetParameter: ...
    @property
    def train_state(self) -> caffe_pb2.NetState: ...
    @property
    def test_state(self) -> Sequence[caffe_pb2.NetState]: ...
    @property
    def snapshot_after_train(self) -> bool: ...
    @property
    def regularization_type(self) -> str: ...
    @property
    def solver_type(self) -> int: ...
    @property
    def delta(self) -> float: ...
    @property
    def test_initialization(self) -> bool: ...
    @property
    def average_loss(self) -> int: ...
    @property
    def stepvalue(self) -> Sequence[int]: ...
    @property
    def clip_gradients(self) -> float: ...
    @property
    def iter_size(self) -> int: ...
    @property
    def snapshot_format(self) -> int: ...
    @property
    def rms_decay(self) -> float: ...
    @property
    def momentum2(self) -> float: ...
    @property
    def type(self) -> str: ...
    @property
    def layer_wise_reduce(self) -> bool: ...
    @property
    def weights(self) -> Sequence[str]: ...
    @property
    def plateau_winsize(self) -> Sequence[int]: ...
    @property
    def show_per_class_result(self) -> bool: ...
    @property
    def eval_type(self) -> str: ...
    @property
    def ap_version(self) -> str: ...
    @property
    def stagelr(self) -> Sequence[float]: ...
    @property
    def stageiter(self) -> Sequence[int]: ...
    @property
    def rampup_interval(self) -> int: ...
    @property
    def rampup_lr(self) -> float: ...
    @property
    def min_lr(self) -> float: ...
    @property
    def solver_data_type(self) -> int: ...
    @property
    def store_blobs_in_old_format(self) -> bool: ...
    @property
    def momentum_policy(self) -> str: ...
    @property
    def max_momentum(self) -> float: ...
    @property
    def momentum_power(self) -> float: ...
    @property
    def larc(self) -> bool: ...
    @property
    def larc_policy(self) -> str: ...
    @property
    def larc_eta(self) -> float: ...
    @property
    def weight_decay_policy(self) -> str: ...
    @property
    def weight_decay_power(self) -> float: ...
    @property
    def larc_turbo(self) -> bool: ...
    @property
    def max_weight_decay(self) -> float: ...
    @property
    def warmup_iter(self) -> int: ...
    @property
    def warmup_start_lr(self) -> float: ...
    @property
    def local_lr_auto(self) -> bool: ...
    @property
    def local_gw_ratio(self) -> float: ...
    @property
    def test_offset(self) -> int: ...
    @property
    def further_device_id(self) -> Sequence[int]: ...
    @property
    def richness(self) -> int: ...

def AbsVal(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class AccuracyOptions(LayerOptions, total=False):
    accuracy_param: Dict | caffe_pb2.AccuracyParameter | None
    top_k: SupportsIndex | None
    axis: SupportsIndex | None
    ignore_label: SupportsIndex | None

def Accuracy(name: str, bottoms: Blobs = (), **options: Unpack[AccuracyOptions]) -> LayerSpec: ...

class AnnotatedDataOptions(LayerOptions, total=False):
    annotated_data_param: Dict | caffe_pb2.AnnotatedDataParameter | None
    data_param: Dict | caffe_pb2.DataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    batch_sampler: Dict | caffe_pb2.BatchSampler | Iterable[Dict | caffe_pb2.BatchSampler] | None
    label_map_file: Text | None
    anno_type: str | SupportsIndex | None
    yolo_data_type: SupportsIndex | None
    yolo_data_jitter: SupportsFloat | None
    train_diffcult: bool | None
    single_class: bool | None
    seg_scales: SupportsIndex | None
    seg_resize_width: SupportsIndex | None
    seg_resize_height: SupportsIndex | None
    source: Text | None
    scale: SupportsFloat | None
    mean_file: Text | None
    batch_size: SupportsIndex | None
    crop_size: SupportsIndex | None
    mirror: bool | None
    rand_skip: SupportsIndex | None
    backend: str | SupportsIndex | None
    force_encoded_color: bool | None
    prefetch: SupportsIndex | None
    shuffle: bool | None
    threads: SupportsIndex | None
    parser_threads: SupportsIndex | None
    cache: bool | None
    precache: bool | None
    side: SupportsIndex | Iterable[SupportsIndex] | None
    mean_value: SupportsFloat | Iterable[SupportsFloat] | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    is_flow: bool | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def AnnotatedData(name: str, bottoms: Blobs = (), **options: Unpack[AnnotatedDataOptions]) -> LayerSpec: ...

class ArgMaxOptions(LayerOptions, total=False):
    argmax_param: Dict | caffe_pb2.ArgMaxParameter | None
    out_max_val: bool | None
    top_k: SupportsIndex | None
    axis: SupportsIndex | None

def ArgMax(name: str, bottoms: Blobs = (), **options: Unpack[ArgMaxOptions]) -> LayerSpec: ...

def Axpy(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class BNOptions(LayerOptions, total=False):
    bn_param: Dict | caffe_pb2.BNParameter | None
    batch_norm_param: Dict | caffe_pb2.BatchNormParameter | None
    slope_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    momentum: SupportsFloat | None
    eps: SupportsFloat | None
    frozen: bool | None
    engine: str | SupportsIndex | None
    scale_filler: Dict | caffe_pb2.FillerParameter | str | None
    shift_filler: Dict | caffe_pb2.FillerParameter | str | None
    bn_mode: str | SupportsIndex | None
    use_global_stats: bool | None
    moving_average_fraction: SupportsFloat | None
    scale_bias: bool | None
    filler: Dict | caffe_pb2.FillerParameter | str | None

def BN(name: str, bottoms: Blobs = (), **options: Unpack[BNOptions]) -> LayerSpec: ...

def BNLL(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class BatchGatherOptions(LayerOptions, total=False):
    batch_gather_param: Dict | caffe_pb2.BatchGatherParameter | None
    axis: SupportsIndex | None

def BatchGather(name: str, bottoms: Blobs = (), **options: Unpack[BatchGatherOptions]) -> LayerSpec: ...

class BatchNormOptions(LayerOptions, total=False):
    batch_norm_param: Dict | caffe_pb2.BatchNormParameter | None
    use_global_stats: bool | None
    moving_average_fraction: SupportsFloat | None
    eps: SupportsFloat | None
    scale_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    scale_bias: bool | None
    engine: str | SupportsIndex | None
    filler: Dict | caffe_pb2.FillerParameter | str | None

def BatchNorm(name: str, bottoms: Blobs = (), **options: Unpack[BatchNormOptions]) -> LayerSpec: ...

def BatchReindex(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class BiasOptions(LayerOptions, total=False):
    bias_param: Dict | caffe_pb2.BiasParameter | None
    axis: SupportsIndex | None
    num_axes: SupportsIndex | None
    filler: Dict | caffe_pb2.FillerParameter | str | None

def Bias(name: str, bottoms: Blobs = (), **options: Unpack[BiasOptions]) -> LayerSpec: ...

class BoxAnnotatorOHEMOptions(LayerOptions, total=False):
    box_annotator_ohem_param: Dict | caffe_pb2.BoxAnnotatorOHEMParameter | None
    roi_per_img: SupportsIndex | None
    ignore_label: SupportsIndex | None

def BoxAnnotatorOHEM(name: str, bottoms: Blobs = (), **options: Unpack[BoxAnnotatorOHEMOptions]) -> LayerSpec: ...

class BoxGroupOutputOptions(LayerOptions, total=False):
    box_group_output_param: Dict | caffe_pb2.BoxGroupOutputParameter | None
    bbox_reg_param: Dict | caffe_pb2.BBoxRegParameter | None
    fg_thr: SupportsFloat | None
    iou_thr: SupportsFloat | None
    nms_type: Text | None
    box_group_param: Dict | caffe_pb2.BoxGroupParameter | Iterable[Dict | caffe_pb2.BoxGroupParameter] | None
    field_whr: SupportsFloat | None
    field_xyr: SupportsFloat | None
    max_nms_num: SupportsIndex | None
    max_post_nms_num: SupportsIndex | None
    min_size: SupportsFloat | None
    bbox_mean: SupportsFloat | Iterable[SupportsFloat] | None
    bbox_std: SupportsFloat | Iterable[SupportsFloat] | None
    cls_aware: bool | None

def BoxGroupOutput(name: str, bottoms: Blobs = (), **options: Unpack[BoxGroupOutputOptions]) -> LayerSpec: ...

class BoxOutputOptions(LayerOptions, total=False):
    box_output_param: Dict | caffe_pb2.BoxOutputParameter | None
    bbox_reg_param: Dict | caffe_pb2.BBoxRegParameter | None
    fg_thr: SupportsFloat | None
    iou_thr: SupportsFloat | None
    nms_type: Text | None
    field_h: SupportsIndex | Iterable[SupportsIndex] | None
    field_w: SupportsIndex | Iterable[SupportsIndex] | None
    downsample_rate: SupportsIndex | Iterable[SupportsIndex] | None
    field_whr: SupportsFloat | None
    field_xyr: SupportsFloat | None
    max_nms_num: SupportsIndex | None
    max_post_nms_num: SupportsIndex | None
    min_size: SupportsFloat | None
    bbox_mean: SupportsFloat | Iterable[SupportsFloat] | None
    bbox_std: SupportsFloat | Iterable[SupportsFloat] | None
    cls_aware: bool | None

def BoxOutput(name: str, bottoms: Blobs = (), **options: Unpack[BoxOutputOptions]) -> LayerSpec: ...

class CenterLossOptions(LayerOptions, total=False):
    center_loss_param: Dict | caffe_pb2.CenterLossParameter | None
    num_output: SupportsIndex | None
    center_filler: Dict | caffe_pb2.FillerParameter | str | None
    axis: SupportsIndex | None
    distance_type: Text | None

def CenterLoss(name: str, bottoms: Blobs = (), **options: Unpack[CenterLossOptions]) -> LayerSpec: ...

class ChannelScaleOptions(LayerOptions, total=False):
    channel_scale_param: Dict | caffe_pb2.ChannelScaleParameter | None
    do_forward: bool | None
    do_backward_feature: bool | None
    do_backward_scale: bool | None
    global_scale: bool | None
    max_global_scale: SupportsFloat | None
    min_global_scale: SupportsFloat | None
    init_global_scale: SupportsFloat | None

def ChannelScale(name: str, bottoms: Blobs = (), **options: Unpack[ChannelScaleOptions]) -> LayerSpec: ...

class ClipOptions(LayerOptions, total=False):
    clip_param: Dict | caffe_pb2.ClipParameter | None
    min: SupportsFloat | None
    max: SupportsFloat | None

def Clip(name: str, bottoms: Blobs = (), **options: Unpack[ClipOptions]) -> LayerSpec: ...

class ConcatOptions(LayerOptions, total=False):
    concat_param: Dict | caffe_pb2.ConcatParameter | None
    concat_dim: SupportsIndex | None
    axis: SupportsIndex | None
    per_fla_fuse: bool | None

def Concat(name: str, bottoms: Blobs = (), **options: Unpack[ConcatOptions]) -> LayerSpec: ...

class ContinuationIndicatorOptions(LayerOptions, total=False):
    continuation_indicator_param: Dict | caffe_pb2.ContinuationIndicatorParameter | None
    time_step: SupportsIndex | None
    batch_size: SupportsIndex | None

def ContinuationIndicator(name: str, bottoms: Blobs = (), **options: Unpack[ContinuationIndicatorOptions]) -> LayerSpec: ...

class ContrastiveLossOptions(LayerOptions, total=False):
    contrastive_loss_param: Dict | caffe_pb2.ContrastiveLossParameter | None
    margin: SupportsFloat | None
    legacy_version: bool | None

def ContrastiveLoss(name: str, bottoms: Blobs = (), **options: Unpack[ContrastiveLossOptions]) -> LayerSpec: ...

class ConvolutionOptions(LayerOptions, total=False):
    convolution_param: Dict | caffe_pb2.ConvolutionParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    pad: SupportsIndex | Iterable[SupportsIndex] | None
    kernel_size: SupportsIndex | Iterable[SupportsIndex] | None
    group: SupportsIndex | None
    stride: SupportsIndex | Iterable[SupportsIndex] | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    force_nd_im2col: bool | None
    dilation: SupportsIndex | Iterable[SupportsIndex] | None
    hole: SupportsIndex | Iterable[SupportsIndex] | None
    hole_h: SupportsIndex | None
    hole_w: SupportsIndex | None
    dilation_h: SupportsIndex | None
    dilation_w: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    temporal_pad: SupportsIndex | None
    filter_group: SupportsIndex | None
    cudnn_convolution_algo_seeker: str | SupportsIndex | None
    conv_algos_override: Text | None
    conv_algorithm: Text | None

def Convolution(name: str, bottoms: Blobs = (), **options: Unpack[ConvolutionOptions]) -> LayerSpec: ...

class Convolution3DOptions(LayerOptions, total=False):
    convolution3d_param: Dict | caffe_pb2.Convolution3DParameter | None
    convolution_param: Dict | caffe_pb2.ConvolutionParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    pad: SupportsIndex | None
    kernel_size: SupportsIndex | None
    group: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    stride: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    filter_group: SupportsIndex | None
    temporal_pad: SupportsIndex | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    force_nd_im2col: bool | None
    dilation: SupportsIndex | Iterable[SupportsIndex] | None
    hole: SupportsIndex | Iterable[SupportsIndex] | None
    hole_h: SupportsIndex | None
    hole_w: SupportsIndex | None
    dilation_h: SupportsIndex | None
    dilation_w: SupportsIndex | None
    cudnn_convolution_algo_seeker: str | SupportsIndex | None
    conv_algos_override: Text | None
    conv_algorithm: Text | None

def Convolution3D(name: str, bottoms: Blobs = (), **options: Unpack[Convolution3DOptions]) -> LayerSpec: ...

class ConvolutionDepthwiseOptions(LayerOptions, total=False):
    convolution_param: Dict | caffe_pb2.ConvolutionParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    pad: SupportsIndex | Iterable[SupportsIndex] | None
    kernel_size: SupportsIndex | Iterable[SupportsIndex] | None
    group: SupportsIndex | None
    stride: SupportsIndex | Iterable[SupportsIndex] | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    force_nd_im2col: bool | None
    dilation: SupportsIndex | Iterable[SupportsIndex] | None
    hole: SupportsIndex | Iterable[SupportsIndex] | None
    hole_h: SupportsIndex | None
    hole_w: SupportsIndex | None
    dilation_h: SupportsIndex | None
    dilation_w: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    temporal_pad: SupportsIndex | None
    filter_group: SupportsIndex | None
    cudnn_convolution_algo_seeker: str | SupportsIndex | None
    conv_algos_override: Text | None
    conv_algorithm: Text | None

def ConvolutionDepthwise(name: str, bottoms: Blobs = (), **options: Unpack[ConvolutionDepthwiseOptions]) -> LayerSpec: ...

class CropOptions(LayerOptions, total=False):
    crop_param: Dict | caffe_pb2.CropParameter | None
    axis: SupportsIndex | None
    offset: SupportsIndex | Iterable[SupportsIndex] | None
    align: bool | None

def Crop(name: str, bottoms: Blobs = (), **options: Unpack[CropOptions]) -> LayerSpec: ...

class CtcLossOptions(LayerOptions, total=False):
    ctc_loss_param: Dict | caffe_pb2.CtcLossParameter | None
    alphabet_size: SupportsIndex | None
    time_step: SupportsIndex | None
    blank_label: SupportsIndex | None

def CtcLoss(name: str, bottoms: Blobs = (), **options: Unpack[CtcLossOptions]) -> LayerSpec: ...

class CumSumOptions(LayerOptions, total=False):
    cum_sum_param: Dict | caffe_pb2.CumSumParameter | None
    axis: SupportsIndex | None
    exclusive: bool | None
    reverse: bool | None

def CumSum(name: str, bottoms: Blobs = (), **options: Unpack[CumSumOptions]) -> LayerSpec: ...

class DataOptions(LayerOptions, total=False):
    data_param: Dict | caffe_pb2.DataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    source: Text | None
    scale: SupportsFloat | None
    mean_file: Text | None
    batch_size: SupportsIndex | None
    crop_size: SupportsIndex | None
    mirror: bool | None
    rand_skip: SupportsIndex | None
    backend: str | SupportsIndex | None
    force_encoded_color: bool | None
    prefetch: SupportsIndex | None
    shuffle: bool | None
    threads: SupportsIndex | None
    parser_threads: SupportsIndex | None
    cache: bool | None
    precache: bool | None
    side: SupportsIndex | Iterable[SupportsIndex] | None
    mean_value: SupportsFloat | Iterable[SupportsFloat] | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    is_flow: bool | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def Data(name: str, bottoms: Blobs = (), **options: Unpack[DataOptions]) -> LayerSpec: ...

class DecodeBBoxOptions(LayerOptions, total=False):
    decode_bbox_param: Dict | caffe_pb2.DecodeBBoxParameter | None
    bbox_reg_param: Dict | caffe_pb2.BBoxRegParameter | None
    gt_iou_thr: SupportsFloat | None
    bbox_mean: SupportsFloat | Iterable[SupportsFloat] | None
    bbox_std: SupportsFloat | Iterable[SupportsFloat] | None
    cls_aware: bool | None

def DecodeBBox(name: str, bottoms: Blobs = (), **options: Unpack[DecodeBBoxOptions]) -> LayerSpec: ...

class DeconvolutionOptions(LayerOptions, total=False):
    convolution_param: Dict | caffe_pb2.ConvolutionParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    pad: SupportsIndex | Iterable[SupportsIndex] | None
    kernel_size: SupportsIndex | Iterable[SupportsIndex] | None
    group: SupportsIndex | None
    stride: SupportsIndex | Iterable[SupportsIndex] | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    force_nd_im2col: bool | None
    dilation: SupportsIndex | Iterable[SupportsIndex] | None
    hole: SupportsIndex | Iterable[SupportsIndex] | None
    hole_h: SupportsIndex | None
    hole_w: SupportsIndex | None
    dilation_h: SupportsIndex | None
    dilation_w: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    temporal_pad: SupportsIndex | None
    filter_group: SupportsIndex | None
    cudnn_convolution_algo_seeker: str | SupportsIndex | None
    conv_algos_override: Text | None
    conv_algorithm: Text | None

def Deconvolution(name: str, bottoms: Blobs = (), **options: Unpack[DeconvolutionOptions]) -> LayerSpec: ...

class Deconvolution3DOptions(LayerOptions, total=False):
    convolution3d_param: Dict | caffe_pb2.Convolution3DParameter | None
    convolution_param: Dict | caffe_pb2.ConvolutionParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    pad: SupportsIndex | None
    kernel_size: SupportsIndex | None
    group: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    stride: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    filter_group: SupportsIndex | None
    temporal_pad: SupportsIndex | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    force_nd_im2col: bool | None
    dilation: SupportsIndex | Iterable[SupportsIndex] | None
    hole: SupportsIndex | Iterable[SupportsIndex] | None
    hole_h: SupportsIndex | None
    hole_w: SupportsIndex | None
    dilation_h: SupportsIndex | None
    dilation_w: SupportsIndex | None
    cudnn_convolution_algo_seeker: str | SupportsIndex | None
    conv_algos_override: Text | None
    conv_algorithm: Text | None

def Deconvolution3D(name: str, bottoms: Blobs = (), **options: Unpack[Deconvolution3DOptions]) -> LayerSpec: ...

class DenseCRFOptions(LayerOptions, total=False):
    dense_crf_param: Dict | caffe_pb2.DenseCRFParameter | None
    max_iter: SupportsIndex | None
    pos_xy_std: SupportsFloat | Iterable[SupportsFloat] | None
    pos_w: SupportsFloat | Iterable[SupportsFloat] | None
    bi_xy_std: SupportsFloat | Iterable[SupportsFloat] | None
    bi_rgb_std: SupportsFloat | Iterable[SupportsFloat] | None
    bi_w: SupportsFloat | Iterable[SupportsFloat] | None
    output_probability: bool | None

def DenseCRF(name: str, bottoms: Blobs = (), **options: Unpack[DenseCRFOptions]) -> LayerSpec: ...

class DenseImageDataOptions(LayerOptions, total=False):
    dense_image_data_param: Dict | caffe_pb2.DenseImageDataParameter | None
    source: Text | None
    batch_size: SupportsIndex | None
    rand_skip: SupportsIndex | None
    shuffle: bool | None
    new_height: SupportsIndex | None
    new_width: SupportsIndex | None
    is_color: bool | None
    mean_file: Text | None
    root_folder: Text | None
    mirror: bool | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None
    label_divide_factor: SupportsIndex | None

def DenseImageData(name: str, bottoms: Blobs = (), **options: Unpack[DenseImageDataOptions]) -> LayerSpec: ...

class DepthwiseConvolutionOptions(LayerOptions, total=False):
    convolution_param: Dict | caffe_pb2.ConvolutionParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    pad: SupportsIndex | Iterable[SupportsIndex] | None
    kernel_size: SupportsIndex | Iterable[SupportsIndex] | None
    group: SupportsIndex | None
    stride: SupportsIndex | Iterable[SupportsIndex] | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    force_nd_im2col: bool | None
    dilation: SupportsIndex | Iterable[SupportsIndex] | None
    hole: SupportsIndex | Iterable[SupportsIndex] | None
    hole_h: SupportsIndex | None
    hole_w: SupportsIndex | None
    dilation_h: SupportsIndex | None
    dilation_w: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    temporal_pad: SupportsIndex | None
    filter_group: SupportsIndex | None
    cudnn_convolution_algo_seeker: str | SupportsIndex | None
    conv_algos_override: Text | None
    conv_algorithm: Text | None

def DepthwiseConvolution(name: str, bottoms: Blobs = (), **options: Unpack[DepthwiseConvolutionOptions]) -> LayerSpec: ...

class DetectionEvaluateOptions(LayerOptions, total=False):
    detection_evaluate_param: Dict | caffe_pb2.DetectionEvaluateParameter | None
    num_classes: SupportsIndex | None
    background_label_id: SupportsIndex | None
    overlap_threshold: SupportsFloat | None
    evaluate_difficult_gt: bool | None
    name_size_file: Text | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None

def DetectionEvaluate(name: str, bottoms: Blobs = (), **options: Unpack[DetectionEvaluateOptions]) -> LayerSpec: ...

class DetectionOutputOptions(LayerOptions, total=False):
    detection_output_param: Dict | caffe_pb2.DetectionOutputParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    num_classes: SupportsIndex | None
    share_location: bool | None
    background_label_id: SupportsIndex | None
    nms_param: Dict | caffe_pb2.NonMaximumSuppressionParameter | None
    save_output_param: Dict | caffe_pb2.SaveOutputParameter | None
    code_type: str | SupportsIndex | None
    keep_top_k: SupportsIndex | None
    variance_encoded_in_target: bool | None
    confidence_threshold: SupportsFloat | None
    visualize: bool | None
    visualize_threshold: SupportsFloat | None
    save_file: Text | None
    side: SupportsIndex | None
    num_box: SupportsIndex | None
    coords: SupportsIndex | None
    nms_threshold: SupportsFloat | None
    biases: SupportsFloat | Iterable[SupportsFloat] | None
    label_map_file: Text | None
    objectness_score: SupportsFloat | None
    scale: SupportsFloat | None
    mirror: bool | None
    crop_size: SupportsIndex | None
    mean_file: Text | None
    mean_value: SupportsFloat | Iterable[SupportsFloat] | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    is_flow: bool | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def DetectionOutput(name: str, bottoms: Blobs = (), **options: Unpack[DetectionOutputOptions]) -> LayerSpec: ...

def Div(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class DropoutOptions(LayerOptions, total=False):
    dropout_param: Dict | caffe_pb2.DropoutParameter | None
    dropout_ratio: SupportsFloat | None
    scale_train: bool | None
    sample_weights_test: bool | None

def Dropout(name: str, bottoms: Blobs = (), **options: Unpack[DropoutOptions]) -> LayerSpec: ...

class DummyDataOptions(LayerOptions, total=False):
    dummy_data_param: Dict | caffe_pb2.DummyDataParameter | None
    data_filler: Dict | caffe_pb2.FillerParameter | str | Iterable[Dict | caffe_pb2.FillerParameter | str] | None
    num: SupportsIndex | Iterable[SupportsIndex] | None
    channels: SupportsIndex | Iterable[SupportsIndex] | None
    height: SupportsIndex | Iterable[SupportsIndex] | None
    width: SupportsIndex | Iterable[SupportsIndex] | None
    shape: Dict | caffe_pb2.BlobShape | Iterable[SupportsIndex] | Iterable[Dict | caffe_pb2.BlobShape | Iterable[SupportsIndex]] | None

def DummyData(name: str, bottoms: Blobs = (), **options: Unpack[DummyDataOptions]) -> LayerSpec: ...

class ELUOptions(LayerOptions, total=False):
    elu_param: Dict | caffe_pb2.ELUParameter | None
    alpha: SupportsFloat | None

def ELU(name: str, bottoms: Blobs = (), **options: Unpack[ELUOptions]) -> LayerSpec: ...

class EltwiseOptions(LayerOptions, total=False):
    eltwise_param: Dict | caffe_pb2.EltwiseParameter | None
    operation: str | SupportsIndex | None
    coeff: SupportsFloat | Iterable[SupportsFloat] | None
    stable_prod_grad: bool | None

def Eltwise(name: str, bottoms: Blobs = (), **options: Unpack[EltwiseOptions]) -> LayerSpec: ...

class EmbedOptions(LayerOptions, total=False):
    embed_param: Dict | caffe_pb2.EmbedParameter | None
    num_output: SupportsIndex | None
    input_dim: SupportsIndex | None
    bias_term: bool | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None

def Embed(name: str, bottoms: Blobs = (), **options: Unpack[EmbedOptions]) -> LayerSpec: ...

def EuclideanLoss(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class ExpOptions(LayerOptions, total=False):
    exp_param: Dict | caffe_pb2.ExpParameter | None
    base: SupportsFloat | None
    scale: SupportsFloat | None
    shift: SupportsFloat | None

def Exp(name: str, bottoms: Blobs = (), **options: Unpack[ExpOptions]) -> LayerSpec: ...

def Filter(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class FlattenOptions(LayerOptions, total=False):
    flatten_param: Dict | caffe_pb2.FlattenParameter | None
    axis: SupportsIndex | None
    end_axis: SupportsIndex | None

def Flatten(name: str, bottoms: Blobs = (), **options: Unpack[FlattenOptions]) -> LayerSpec: ...

class FlipOptions(LayerOptions, total=False):
    flip_param: Dict | caffe_pb2.FlipParameter | None
    flip_width: bool | None
    flip_height: bool | None

def Flip(name: str, bottoms: Blobs = (), **options: Unpack[FlipOptions]) -> LayerSpec: ...

class FocalLossOptions(LayerOptions, total=False):
    focal_loss_param: Dict | caffe_pb2.FocalLossParameter | None
    loss_param: Dict | caffe_pb2.LossParameter | None
    softmax_param: Dict | caffe_pb2.SoftmaxParameter | None
    gamma: SupportsFloat | None
    alpha: SupportsFloat | None
    beta: SupportsFloat | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None

def FocalLoss(name: str, bottoms: Blobs = (), **options: Unpack[FocalLossOptions]) -> LayerSpec: ...

class FrcnnOutputOptions(LayerOptions, total=False):
    frcnn_output_param: Dict | caffe_pb2.FrcnnOutputParameter | None
    bbox_reg_param: Dict | caffe_pb2.BBoxRegParameter | None
    conf_thr: SupportsFloat | None
    iou_thr: SupportsFloat | None
    nms_type: Text | None
    max_det_num: SupportsIndex | None
    save_output_param: Dict | caffe_pb2.SaveOutputParameter | None
    bbox_mean: SupportsFloat | Iterable[SupportsFloat] | None
    bbox_std: SupportsFloat | Iterable[SupportsFloat] | None
    cls_aware: bool | None

def FrcnnOutput(name: str, bottoms: Blobs = (), **options: Unpack[FrcnnOutputOptions]) -> LayerSpec: ...

class GELUOptions(LayerOptions, total=False):
    gelu_param: Dict | caffe_pb2.GELUParameter | None
    approximate: str | SupportsIndex | None

def GELU(name: str, bottoms: Blobs = (), **options: Unpack[GELUOptions]) -> LayerSpec: ...

class GRUOptions(LayerOptions, total=False):
    recurrent_param: Dict | caffe_pb2.RecurrentParameter | None
    num_output: SupportsIndex | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    debug_info: bool | None
    expose_hidden: bool | None
    reset_after: bool | None

def GRU(name: str, bottoms: Blobs = (), **options: Unpack[GRUOptions]) -> LayerSpec: ...

class GatherOptions(LayerOptions, total=False):
    gather_param: Dict | caffe_pb2.GatherParameter | None
    axis: SupportsIndex | None
    index: SupportsIndex | Iterable[SupportsIndex] | None

def Gather(name: str, bottoms: Blobs = (), **options: Unpack[GatherOptions]) -> LayerSpec: ...

class GridSampleOptions(LayerOptions, total=False):
    grid_sample_param: Dict | caffe_pb2.GridSampleParameter | None
    mode: str | SupportsIndex | None
    padding_mode: str | SupportsIndex | None
    align_corners: bool | None

def GridSample(name: str, bottoms: Blobs = (), **options: Unpack[GridSampleOptions]) -> LayerSpec: ...

class HDF5DataOptions(LayerOptions, total=False):
    hdf5_data_param: Dict | caffe_pb2.HDF5DataParameter | None
    source: Text | None
    batch_size: SupportsIndex | None
    shuffle: bool | None

def HDF5Data(name: str, bottoms: Blobs = (), **options: Unpack[HDF5DataOptions]) -> LayerSpec: ...

class HDF5OutputOptions(LayerOptions, total=False):
    hdf5_output_param: Dict | caffe_pb2.HDF5OutputParameter | None
    file_name: Text | None

def HDF5Output(name: str, bottoms: Blobs = (), **options: Unpack[HDF5OutputOptions]) -> LayerSpec: ...

def HardSwish(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class HingeLossOptions(LayerOptions, total=False):
    hinge_loss_param: Dict | caffe_pb2.HingeLossParameter | None
    norm: str | SupportsIndex | None

def HingeLoss(name: str, bottoms: Blobs = (), **options: Unpack[HingeLossOptions]) -> LayerSpec: ...

class Im2colOptions(LayerOptions, total=False):
    convolution_param: Dict | caffe_pb2.ConvolutionParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    pad: SupportsIndex | Iterable[SupportsIndex] | None
    kernel_size: SupportsIndex | Iterable[SupportsIndex] | None
    group: SupportsIndex | None
    stride: SupportsIndex | Iterable[SupportsIndex] | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    force_nd_im2col: bool | None
    dilation: SupportsIndex | Iterable[SupportsIndex] | None
    hole: SupportsIndex | Iterable[SupportsIndex] | None
    hole_h: SupportsIndex | None
    hole_w: SupportsIndex | None
    dilation_h: SupportsIndex | None
    dilation_w: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    temporal_pad: SupportsIndex | None
    filter_group: SupportsIndex | None
    cudnn_convolution_algo_seeker: str | SupportsIndex | None
    conv_algos_override: Text | None
    conv_algorithm: Text | None

def Im2col(name: str, bottoms: Blobs = (), **options: Unpack[Im2colOptions]) -> LayerSpec: ...

class ImageDataOptions(LayerOptions, total=False):
    image_data_param: Dict | caffe_pb2.ImageDataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    source: Text | None
    scale: SupportsFloat | None
    mean_file: Text | None
    batch_size: SupportsIndex | None
    crop_size: SupportsIndex | None
    mirror: bool | None
    rand_skip: SupportsIndex | None
    shuffle: bool | None
    new_height: SupportsIndex | None
    new_width: SupportsIndex | None
    is_color: bool | None
    root_folder: Text | None
    new_length: SupportsIndex | None
    show_data: SupportsIndex | None
    use_image: bool | None
    sampling_rate: SupportsIndex | None
    use_label: bool | None
    use_temporal_jitter: bool | None
    mean_value: SupportsFloat | None
    num_truth_channels: SupportsIndex | None
    use_byte_input: bool | None
    is_flow: bool | None
    truth_scale: SupportsFloat | None
    ignore_label: SupportsIndex | None
    label_type: str | SupportsIndex | None
    has_label: bool | None
    short_side: SupportsIndex | None
    threads: SupportsIndex | None
    cache: bool | None
    precache: bool | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def ImageData(name: str, bottoms: Blobs = (), **options: Unpack[ImageDataOptions]) -> LayerSpec: ...

class ImageLabelmapDataOptions(LayerOptions, total=False):
    image_data_param: Dict | caffe_pb2.ImageDataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    source: Text | None
    scale: SupportsFloat | None
    mean_file: Text | None
    batch_size: SupportsIndex | None
    crop_size: SupportsIndex | None
    mirror: bool | None
    rand_skip: SupportsIndex | None
    shuffle: bool | None
    new_height: SupportsIndex | None
    new_width: SupportsIndex | None
    is_color: bool | None
    root_folder: Text | None
    new_length: SupportsIndex | None
    show_data: SupportsIndex | None
    use_image: bool | None
    sampling_rate: SupportsIndex | None
    use_label: bool | None
    use_temporal_jitter: bool | None
    mean_value: SupportsFloat | None
    num_truth_channels: SupportsIndex | None
    use_byte_input: bool | None
    is_flow: bool | None
    truth_scale: SupportsFloat | None
    ignore_label: SupportsIndex | None
    label_type: str | SupportsIndex | None
    has_label: bool | None
    short_side: SupportsIndex | None
    threads: SupportsIndex | None
    cache: bool | None
    precache: bool | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def ImageLabelmapData(name: str, bottoms: Blobs = (), **options: Unpack[ImageLabelmapDataOptions]) -> LayerSpec: ...

class ImageSegDataOptions(LayerOptions, total=False):
    image_data_param: Dict | caffe_pb2.ImageDataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    source: Text | None
    scale: SupportsFloat | None
    mean_file: Text | None
    batch_size: SupportsIndex | None
    crop_size: SupportsIndex | None
    mirror: bool | None
    rand_skip: SupportsIndex | None
    shuffle: bool | None
    new_height: SupportsIndex | None
    new_width: SupportsIndex | None
    is_color: bool | None
    root_folder: Text | None
    new_length: SupportsIndex | None
    show_data: SupportsIndex | None
    use_image: bool | None
    sampling_rate: SupportsIndex | None
    use_label: bool | None
    use_temporal_jitter: bool | None
    mean_value: SupportsFloat | None
    num_truth_channels: SupportsIndex | None
    use_byte_input: bool | None
    is_flow: bool | None
    truth_scale: SupportsFloat | None
    ignore_label: SupportsIndex | None
    label_type: str | SupportsIndex | None
    has_label: bool | None
    short_side: SupportsIndex | None
    threads: SupportsIndex | None
    cache: bool | None
    precache: bool | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def ImageSegData(name: str, bottoms: Blobs = (), **options: Unpack[ImageSegDataOptions]) -> LayerSpec: ...

class InfogainLossOptions(LayerOptions, total=False):
    infogain_loss_param: Dict | caffe_pb2.InfogainLossParameter | None
    loss_param: Dict | caffe_pb2.LossParameter | None
    source: Text | None
    axis: SupportsIndex | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None

def InfogainLoss(name: str, bottoms: Blobs = (), **options: Unpack[InfogainLossOptions]) -> LayerSpec: ...

class InnerDistanceOptions(LayerOptions, total=False):
    inner_distance_param: Dict | caffe_pb2.InnerDistanceParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    axis: SupportsIndex | None
    transpose: bool | None
    distance_type: Text | None
    normalize: bool | None
    update_center_only: bool | None

def InnerDistance(name: str, bottoms: Blobs = (), **options: Unpack[InnerDistanceOptions]) -> LayerSpec: ...

class InnerProductOptions(LayerOptions, total=False):
    inner_product_param: Dict | caffe_pb2.InnerProductParameter | None
    num_output: SupportsIndex | None
    bias_term: bool | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    axis: SupportsIndex | None
    transpose: bool | None
    normalize: bool | None

def InnerProduct(name: str, bottoms: Blobs = (), **options: Unpack[InnerProductOptions]) -> LayerSpec: ...

class InputOptions(LayerOptions, total=False):
    input_param: Dict | caffe_pb2.InputParameter | None
    shape: Dict | caffe_pb2.BlobShape | Iterable[SupportsIndex] | Iterable[Dict | caffe_pb2.BlobShape | Iterable[SupportsIndex]] | None
    record_axis: SupportsIndex | Iterable[SupportsIndex] | None

def Input(name: str, bottoms: Blobs = (), **options: Unpack[InputOptions]) -> LayerSpec: ...

class InterpOptions(LayerOptions, total=False):
    interp_param: Dict | caffe_pb2.InterpParameter | None
    height: SupportsIndex | None
    width: SupportsIndex | None
    zoom_factor: SupportsIndex | None
    shrink_factor: SupportsIndex | None
    pad_beg: SupportsIndex | None
    pad_end: SupportsIndex | None

def Interp(name: str, bottoms: Blobs = (), **options: Unpack[InterpOptions]) -> LayerSpec: ...

def L1Loss(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class LRNOptions(LayerOptions, total=False):
    lrn_param: Dict | caffe_pb2.LRNParameter | None
    local_size: SupportsIndex | None
    alpha: SupportsFloat | None
    beta: SupportsFloat | None
    norm_region: str | SupportsIndex | None
    k: SupportsFloat | None
    engine: str | SupportsIndex | None

def LRN(name: str, bottoms: Blobs = (), **options: Unpack[LRNOptions]) -> LayerSpec: ...

class LSTMOptions(LayerOptions, total=False):
    recurrent_param: Dict | caffe_pb2.RecurrentParameter | None
    num_output: SupportsIndex | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    debug_info: bool | None
    expose_hidden: bool | None
    reset_after: bool | None

def LSTM(name: str, bottoms: Blobs = (), **options: Unpack[LSTMOptions]) -> LayerSpec: ...

def LSTMUnit(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class LabelSpecificAddOptions(LayerOptions, total=False):
    label_specific_add_param: Dict | caffe_pb2.LabelSpecificAddParameter | None
    bias: SupportsFloat | None
    transform_test: bool | None
    bias_base: SupportsFloat | None
    bias_gamma: SupportsFloat | None
    bias_power: SupportsFloat | None
    bias_min: SupportsFloat | None
    bias_max: SupportsFloat | None
    iteration: SupportsIndex | None

def LabelSpecificAdd(name: str, bottoms: Blobs = (), **options: Unpack[LabelSpecificAddOptions]) -> LayerSpec: ...

class LabelsequenceAccuracyOptions(LayerOptions, total=False):
    labelsequence_accuracy_param: Dict | caffe_pb2.LabelsequenceAccuracyParameter | None
    blank_label: SupportsIndex | None

def LabelsequenceAccuracy(name: str, bottoms: Blobs = (), **options: Unpack[LabelsequenceAccuracyOptions]) -> LayerSpec: ...

class LayerNormOptions(LayerOptions, total=False):
    layer_norm_param: Dict | caffe_pb2.LayerNormParameter | None
    axis: SupportsIndex | None
    eps: SupportsFloat | None

def LayerNorm(name: str, bottoms: Blobs = (), **options: Unpack[LayerNormOptions]) -> LayerSpec: ...

class LogOptions(LayerOptions, total=False):
    log_param: Dict | caffe_pb2.LogParameter | None
    base: SupportsFloat | None
    scale: SupportsFloat | None
    shift: SupportsFloat | None

def Log(name: str, bottoms: Blobs = (), **options: Unpack[LogOptions]) -> LayerSpec: ...

class LogSoftmaxOptions(LayerOptions, total=False):
    softmax_param: Dict | caffe_pb2.SoftmaxParameter | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None

def LogSoftmax(name: str, bottoms: Blobs = (), **options: Unpack[LogSoftmaxOptions]) -> LayerSpec: ...

class MMDLossOptions(LayerOptions, total=False):
    mmd_param: Dict | caffe_pb2.MMDParameter | None
    kernel_num: SupportsIndex | None
    kernel_mul: SupportsFloat | None
    fix_gamma: bool | None

def MMDLoss(name: str, bottoms: Blobs = (), **options: Unpack[MMDLossOptions]) -> LayerSpec: ...

class MVNOptions(LayerOptions, total=False):
    mvn_param: Dict | caffe_pb2.MVNParameter | None
    normalize_variance: bool | None
    across_channels: bool | None
    eps: SupportsFloat | None

def MVN(name: str, bottoms: Blobs = (), **options: Unpack[MVNOptions]) -> LayerSpec: ...

class MarginInnerProductOptions(LayerOptions, total=False):
    margin_inner_product_param: Dict | caffe_pb2.MarginInnerProductParameter | None
    num_output: SupportsIndex | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    axis: SupportsIndex | None
    base: SupportsFloat | None
    gamma: SupportsFloat | None
    power: SupportsFloat | None
    iteration: SupportsIndex | None
    lambda_min: SupportsFloat | None

def MarginInnerProduct(name: str, bottoms: Blobs = (), **options: Unpack[MarginInnerProductOptions]) -> LayerSpec: ...

class MatMulOptions(LayerOptions, total=False):
    matmul_param: Dict | caffe_pb2.MatMulParameter | None
    transpose_a: bool | None
    transpose_b: bool | None

def MatMul(name: str, bottoms: Blobs = (), **options: Unpack[MatMulOptions]) -> LayerSpec: ...

class MathOptions(LayerOptions, total=False):
    math_param: Dict | caffe_pb2.MathParameter | None
    function: str | SupportsIndex | None

def Math(name: str, bottoms: Blobs = (), **options: Unpack[MathOptions]) -> LayerSpec: ...

class MemoryDataOptions(LayerOptions, total=False):
    memory_data_param: Dict | caffe_pb2.MemoryDataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    batch_size: SupportsIndex | None
    channels: SupportsIndex | None
    height: SupportsIndex | None
    width: SupportsIndex | None
    source: Text | None
    share_in_parallel: bool | None
    image_encoded: bool | None
    dataframe_format: Text | None
    dataframe_column_select: Text | Iterable[Text] | None
    scale: SupportsFloat | None
    mirror: bool | None
    crop_size: SupportsIndex | None
    mean_file: Text | None
    mean_value: SupportsFloat | Iterable[SupportsFloat] | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    is_flow: bool | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def MemoryData(name: str, bottoms: Blobs = (), **options: Unpack[MemoryDataOptions]) -> LayerSpec: ...

def Mish(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class MultiBoxLossOptions(LayerOptions, total=False):
    multibox_loss_param: Dict | caffe_pb2.MultiBoxLossParameter | None
    loss_param: Dict | caffe_pb2.LossParameter | None
    loc_loss_type: str | SupportsIndex | None
    conf_loss_type: str | SupportsIndex | None
    loc_weight: SupportsFloat | None
    num_classes: SupportsIndex | None
    share_location: bool | None
    match_type: str | SupportsIndex | None
    overlap_threshold: SupportsFloat | None
    use_prior_for_matching: bool | None
    background_label_id: SupportsIndex | None
    use_difficult_gt: bool | None
    do_neg_mining: bool | None
    neg_pos_ratio: SupportsFloat | None
    neg_overlap: SupportsFloat | None
    code_type: str | SupportsIndex | None
    encode_variance_in_target: bool | None
    map_object_to_agnostic: bool | None
    ignore_cross_boundary_bbox: bool | None
    bp_inside: bool | None
    mining_type: str | SupportsIndex | None
    nms_param: Dict | caffe_pb2.NonMaximumSuppressionParameter | None
    sample_size: SupportsIndex | None
    use_prior_for_nms: bool | None
    objectness_score: SupportsFloat | None
    ignore_difficult_gt: bool | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None

def MultiBoxLoss(name: str, bottoms: Blobs = (), **options: Unpack[MultiBoxLossOptions]) -> LayerSpec: ...

class MultiStageMeanfieldOptions(LayerOptions, total=False):
    multi_stage_meanfield_param: Dict | caffe_pb2.MultiStageMeanfieldParameter | None
    num_iterations: SupportsIndex | None
    theta_alpha: SupportsFloat | None
    theta_beta: SupportsFloat | None
    theta_gamma: SupportsFloat | None
    spatial_filter_weights_str: Text | None
    bilateral_filter_weights_str: Text | None
    forward_compat: bool | None
    compat: SupportsFloat | None
    spatial_filter_weight: SupportsFloat | None
    bilateral_filter_weight: SupportsFloat | None
    compatibility_mode: str | SupportsIndex | None
    threshold: SupportsIndex | None

def MultiStageMeanfield(name: str, bottoms: Blobs = (), **options: Unpack[MultiStageMeanfieldOptions]) -> LayerSpec: ...

def MultinomialLogisticLoss(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class NormalizeOptions(LayerOptions, total=False):
    norm_param: Dict | caffe_pb2.NormalizeParameter | None
    across_spatial: bool | None
    scale_filler: Dict | caffe_pb2.FillerParameter | str | None
    channel_shared: bool | None
    eps: SupportsFloat | None
    learned_scale: bool | None

def Normalize(name: str, bottoms: Blobs = (), **options: Unpack[NormalizeOptions]) -> LayerSpec: ...

class PReLUOptions(LayerOptions, total=False):
    prelu_param: Dict | caffe_pb2.PReLUParameter | None
    filler: Dict | caffe_pb2.FillerParameter | str | None
    channel_shared: bool | None

def PReLU(name: str, bottoms: Blobs = (), **options: Unpack[PReLUOptions]) -> LayerSpec: ...

class PSROIPoolingOptions(LayerOptions, total=False):
    psroi_pooling_param: Dict | caffe_pb2.PSROIPoolingParameter | None
    spatial_scale: SupportsFloat | None
    output_dim: SupportsIndex | None
    group_size: SupportsIndex | None

def PSROIPooling(name: str, bottoms: Blobs = (), **options: Unpack[PSROIPoolingOptions]) -> LayerSpec: ...

class ParameterOptions(LayerOptions, total=False):
    parameter_param: Dict | caffe_pb2.ParameterParameter | None
    shape: Dict | caffe_pb2.BlobShape | Iterable[SupportsIndex] | None

def Parameter(name: str, bottoms: Blobs = (), **options: Unpack[ParameterOptions]) -> LayerSpec: ...

class PermuteOptions(LayerOptions, total=False):
    permute_param: Dict | caffe_pb2.PermuteParameter | None
    order: SupportsIndex | Iterable[SupportsIndex] | None

def Permute(name: str, bottoms: Blobs = (), **options: Unpack[PermuteOptions]) -> LayerSpec: ...

class PoolingOptions(LayerOptions, total=False):
    pooling_param: Dict | caffe_pb2.PoolingParameter | None
    pool: str | SupportsIndex | None
    kernel_size: SupportsIndex | None
    stride: SupportsIndex | None
    pad: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    global_pooling: bool | None
    round_mode: str | SupportsIndex | None
    ceil_mode: bool | None
    torch_pooling: bool | None
    kernel_depth: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    temporal_pad: SupportsIndex | None

def Pooling(name: str, bottoms: Blobs = (), **options: Unpack[PoolingOptions]) -> LayerSpec: ...

class Pooling3DOptions(LayerOptions, total=False):
    pooling3d_param: Dict | caffe_pb2.Pooling3DParameter | None
    pooling_param: Dict | caffe_pb2.PoolingParameter | None
    pool: str | SupportsIndex | None
    kernel_size: SupportsIndex | None
    stride: SupportsIndex | None
    pad: SupportsIndex | None
    kernel_depth: SupportsIndex | None
    temporal_stride: SupportsIndex | None
    kernel_h: SupportsIndex | None
    kernel_w: SupportsIndex | None
    stride_h: SupportsIndex | None
    stride_w: SupportsIndex | None
    pad_h: SupportsIndex | None
    pad_w: SupportsIndex | None
    engine: str | SupportsIndex | None
    global_pooling: bool | None
    round_mode: str | SupportsIndex | None
    ceil_mode: bool | None
    torch_pooling: bool | None
    temporal_pad: SupportsIndex | None

def Pooling3D(name: str, bottoms: Blobs = (), **options: Unpack[Pooling3DOptions]) -> LayerSpec: ...

class PowerOptions(LayerOptions, total=False):
    power_param: Dict | caffe_pb2.PowerParameter | None
    power: SupportsFloat | None
    scale: SupportsFloat | None
    shift: SupportsFloat | None

def Power(name: str, bottoms: Blobs = (), **options: Unpack[PowerOptions]) -> LayerSpec: ...

class PriorBoxOptions(LayerOptions, total=False):
    prior_box_param: Dict | caffe_pb2.PriorBoxParameter | None
    min_size: SupportsFloat | Iterable[SupportsFloat] | None
    max_size: SupportsFloat | Iterable[SupportsFloat] | None
    aspect_ratio: SupportsFloat | Iterable[SupportsFloat] | None
    flip: bool | None
    clip: bool | None
    variance: SupportsFloat | Iterable[SupportsFloat] | None
    img_size: SupportsIndex | None
    img_h: SupportsIndex | None
    img_w: SupportsIndex | None
    step: SupportsFloat | None
    step_h: SupportsFloat | None
    step_w: SupportsFloat | None
    offset: SupportsFloat | None
    width: SupportsFloat | Iterable[SupportsFloat] | None
    height: SupportsFloat | Iterable[SupportsFloat] | None
    arrangement: str | SupportsIndex | None

def PriorBox(name: str, bottoms: Blobs = (), **options: Unpack[PriorBoxOptions]) -> LayerSpec: ...

class PriorBoxClusteredOptions(LayerOptions, total=False):
    prior_box_param: Dict | caffe_pb2.PriorBoxParameter | None
    min_size: SupportsFloat | Iterable[SupportsFloat] | None
    max_size: SupportsFloat | Iterable[SupportsFloat] | None
    aspect_ratio: SupportsFloat | Iterable[SupportsFloat] | None
    flip: bool | None
    clip: bool | None
    variance: SupportsFloat | Iterable[SupportsFloat] | None
    img_size: SupportsIndex | None
    img_h: SupportsIndex | None
    img_w: SupportsIndex | None
    step: SupportsFloat | None
    step_h: SupportsFloat | None
    step_w: SupportsFloat | None
    offset: SupportsFloat | None
    width: SupportsFloat | Iterable[SupportsFloat] | None
    height: SupportsFloat | Iterable[SupportsFloat] | None
    arrangement: str | SupportsIndex | None

def PriorBoxClustered(name: str, bottoms: Blobs = (), **options: Unpack[PriorBoxClusteredOptions]) -> LayerSpec: ...

class ProposalOptions(LayerOptions, total=False):
    proposal_param: Dict | caffe_pb2.ProposalParameter | None
    feat_stride: SupportsIndex | None
    base_size: SupportsIndex | None
    min_size: SupportsIndex | None
    ratio: SupportsFloat | Iterable[SupportsFloat] | None
    scale: SupportsFloat | Iterable[SupportsFloat] | None
    pre_nms_topn: SupportsIndex | None
    post_nms_topn: SupportsIndex | None
    nms_thresh: SupportsFloat | None

def Proposal(name: str, bottoms: Blobs = (), **options: Unpack[ProposalOptions]) -> LayerSpec: ...

class ProposalTargetOptions(LayerOptions, total=False):
    proposal_target_param: Dict | caffe_pb2.ProposalTargetParameter | None
    bbox_reg_param: Dict | caffe_pb2.BBoxRegParameter | None
    cls_num: SupportsIndex | None
    batch_size: SupportsIndex | None
    fg_fraction: SupportsFloat | None
    num_img_per_batch: SupportsIndex | None
    fg_thr: SupportsFloat | None
    bg_thr_hg: SupportsFloat | None
    bg_thr_lw: SupportsFloat | None
    img_width: SupportsIndex | None
    img_height: SupportsIndex | None
    iou_weighted: bool | None
    bbox_thr_lw: SupportsFloat | None
    bbox_thr_hg: SupportsFloat | None
    pickup_discard: bool | None
    append_gtbox: bool | None
    bbox_mean: SupportsFloat | Iterable[SupportsFloat] | None
    bbox_std: SupportsFloat | Iterable[SupportsFloat] | None
    cls_aware: bool | None

def ProposalTarget(name: str, bottoms: Blobs = (), **options: Unpack[ProposalTargetOptions]) -> LayerSpec: ...

class PythonOptions(LayerOptions, total=False):
    python_param: Dict | caffe_pb2.PythonParameter | None
    module: Text | None
    layer: Text | None
    param_str: Text | None
    share_in_parallel: bool | None

def Python(name: str, bottoms: Blobs = (), **options: Unpack[PythonOptions]) -> LayerSpec: ...

class RNNOptions(LayerOptions, total=False):
    recurrent_param: Dict | caffe_pb2.RecurrentParameter | None
    num_output: SupportsIndex | None
    weight_filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None
    debug_info: bool | None
    expose_hidden: bool | None
    reset_after: bool | None

def RNN(name: str, bottoms: Blobs = (), **options: Unpack[RNNOptions]) -> LayerSpec: ...

class ROIAlignOptions(LayerOptions, total=False):
    roi_pooling_param: Dict | caffe_pb2.ROIPoolingParameter | None
    pooled_h: SupportsIndex | None
    pooled_w: SupportsIndex | None
    spatial_scale: SupportsFloat | None
    pad_ratio: SupportsFloat | None

def ROIAlign(name: str, bottoms: Blobs = (), **options: Unpack[ROIAlignOptions]) -> LayerSpec: ...

class ROIPoolingOptions(LayerOptions, total=False):
    roi_pooling_param: Dict | caffe_pb2.ROIPoolingParameter | None
    pooled_h: SupportsIndex | None
    pooled_w: SupportsIndex | None
    spatial_scale: SupportsFloat | None
    pad_ratio: SupportsFloat | None

def ROIPooling(name: str, bottoms: Blobs = (), **options: Unpack[ROIPoolingOptions]) -> LayerSpec: ...

class ReLUOptions(LayerOptions, total=False):
    relu_param: Dict | caffe_pb2.ReLUParameter | None
    negative_slope: SupportsFloat | None
    engine: str | SupportsIndex | None

def ReLU(name: str, bottoms: Blobs = (), **options: Unpack[ReLUOptions]) -> LayerSpec: ...

def ReLU6(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

def RecordWeights(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class ReductionOptions(LayerOptions, total=False):
    reduction_param: Dict | caffe_pb2.ReductionParameter | None
    operation: str | SupportsIndex | None
    axis: SupportsIndex | None
    coeff: SupportsFloat | None

def Reduction(name: str, bottoms: Blobs = (), **options: Unpack[ReductionOptions]) -> LayerSpec: ...

class ReorgOptions(LayerOptions, total=False):
    reorg_param: Dict | caffe_pb2.ReorgParameter | None
    stride: SupportsIndex | None
    reverse: bool | None

def Reorg(name: str, bottoms: Blobs = (), **options: Unpack[ReorgOptions]) -> LayerSpec: ...

class ReshapeOptions(LayerOptions, total=False):
    reshape_param: Dict | caffe_pb2.ReshapeParameter | None
    shape: Dict | caffe_pb2.BlobShape | Iterable[SupportsIndex] | None
    axis: SupportsIndex | None
    num_axes: SupportsIndex | None

def Reshape(name: str, bottoms: Blobs = (), **options: Unpack[ReshapeOptions]) -> LayerSpec: ...

class ResizeOptions(LayerOptions, total=False):
    resize_image_param: Dict | caffe_pb2.ResizeImageParameter | None
    height: SupportsIndex | None
    width: SupportsIndex | None
    scale_h: SupportsFloat | None
    scale_w: SupportsFloat | None
    mode: str | SupportsIndex | None
    coordinates: str | SupportsIndex | None
    nearest_mode: str | SupportsIndex | None
    cubic_coeff_a: SupportsFloat | None
    exclude_outside: bool | None

def Resize(name: str, bottoms: Blobs = (), **options: Unpack[ResizeOptions]) -> LayerSpec: ...

class ReverseOptions(LayerOptions, total=False):
    reverse_param: Dict | caffe_pb2.ReverseParameter | None
    axis: SupportsIndex | None

def Reverse(name: str, bottoms: Blobs = (), **options: Unpack[ReverseOptions]) -> LayerSpec: ...

class SPPOptions(LayerOptions, total=False):
    spp_param: Dict | caffe_pb2.SPPParameter | None
    pyramid_height: SupportsIndex | None
    pool: str | SupportsIndex | None
    engine: str | SupportsIndex | None

def SPP(name: str, bottoms: Blobs = (), **options: Unpack[SPPOptions]) -> LayerSpec: ...

class ScaleOptions(LayerOptions, total=False):
    scale_param: Dict | caffe_pb2.ScaleParameter | None
    axis: SupportsIndex | None
    num_axes: SupportsIndex | None
    filler: Dict | caffe_pb2.FillerParameter | str | None
    bias_term: bool | None
    bias_filler: Dict | caffe_pb2.FillerParameter | str | None

def Scale(name: str, bottoms: Blobs = (), **options: Unpack[ScaleOptions]) -> LayerSpec: ...

class ScaleRouteOptions(LayerOptions, total=False):
    scale_route_param: Dict | caffe_pb2.ScaleRouteParameter | None
    low_scale: SupportsFloat | None
    high_scale: SupportsFloat | None

def ScaleRoute(name: str, bottoms: Blobs = (), **options: Unpack[ScaleRouteOptions]) -> LayerSpec: ...

class SegAccuracyOptions(LayerOptions, total=False):
    seg_accuracy_param: Dict | caffe_pb2.SegAccuracyParameter | None
    metric: str | SupportsIndex | None
    ignore_label: SupportsIndex | Iterable[SupportsIndex] | None
    reset: bool | None

def SegAccuracy(name: str, bottoms: Blobs = (), **options: Unpack[SegAccuracyOptions]) -> LayerSpec: ...

class SegDataOptions(LayerOptions, total=False):
    seg_data_param: Dict | caffe_pb2.SegDataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    source: Text | None
    root_dir: Text | None
    shuffle: bool | None
    balance: bool | None
    scale: SupportsFloat | None
    mirror: bool | None
    crop_size: SupportsIndex | None
    mean_file: Text | None
    mean_value: SupportsFloat | Iterable[SupportsFloat] | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    is_flow: bool | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def SegData(name: str, bottoms: Blobs = (), **options: Unpack[SegDataOptions]) -> LayerSpec: ...

class ShuffleChannelOptions(LayerOptions, total=False):
    shuffle_channel_param: Dict | caffe_pb2.ShuffleChannelParameter | None
    group: SupportsIndex | None

def ShuffleChannel(name: str, bottoms: Blobs = (), **options: Unpack[ShuffleChannelOptions]) -> LayerSpec: ...

class SigmoidOptions(LayerOptions, total=False):
    sigmoid_param: Dict | caffe_pb2.SigmoidParameter | None
    engine: str | SupportsIndex | None

def Sigmoid(name: str, bottoms: Blobs = (), **options: Unpack[SigmoidOptions]) -> LayerSpec: ...

class SigmoidCrossEntropyLossOptions(LayerOptions, total=False):
    sigmoid_param: Dict | caffe_pb2.SigmoidParameter | None
    loss_param: Dict | caffe_pb2.LossParameter | None
    engine: str | SupportsIndex | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None

def SigmoidCrossEntropyLoss(name: str, bottoms: Blobs = (), **options: Unpack[SigmoidCrossEntropyLossOptions]) -> LayerSpec: ...

def Silence(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class SizedLikeOptions(LayerOptions, total=False):
    sized_like_param: Dict | caffe_pb2.SizedLikeParameter | None
    size: Dict | caffe_pb2.SizedLikeParameter.Size | Iterable[Dict | caffe_pb2.SizedLikeParameter.Size] | None
    reshape: bool | None

def SizedLike(name: str, bottoms: Blobs = (), **options: Unpack[SizedLikeOptions]) -> LayerSpec: ...

class SliceOptions(LayerOptions, total=False):
    slice_param: Dict | caffe_pb2.SliceParameter | None
    slice_dim: SupportsIndex | None
    slice_point: SupportsIndex | Iterable[SupportsIndex] | None
    axis: SupportsIndex | None

def Slice(name: str, bottoms: Blobs = (), **options: Unpack[SliceOptions]) -> LayerSpec: ...

class SmoothL1LossOptions(LayerOptions, total=False):
    smooth_l1_loss_param: Dict | caffe_pb2.SmoothL1LossParameter | None
    loss_param: Dict | caffe_pb2.LossParameter | None
    sigma: SupportsFloat | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None

def SmoothL1Loss(name: str, bottoms: Blobs = (), **options: Unpack[SmoothL1LossOptions]) -> LayerSpec: ...

class SmoothL1LossOHEMOptions(LayerOptions, total=False):
    loss_param: Dict | caffe_pb2.LossParameter | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None

def SmoothL1LossOHEM(name: str, bottoms: Blobs = (), **options: Unpack[SmoothL1LossOHEMOptions]) -> LayerSpec: ...

class SoftmaxOptions(LayerOptions, total=False):
    softmax_param: Dict | caffe_pb2.SoftmaxParameter | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None

def Softmax(name: str, bottoms: Blobs = (), **options: Unpack[SoftmaxOptions]) -> LayerSpec: ...

class SoftmaxWithLossOptions(LayerOptions, total=False):
    softmax_param: Dict | caffe_pb2.SoftmaxParameter | None
    loss_param: Dict | caffe_pb2.LossParameter | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None

def SoftmaxWithLoss(name: str, bottoms: Blobs = (), **options: Unpack[SoftmaxWithLossOptions]) -> LayerSpec: ...

class SoftmaxWithLossOHEMOptions(LayerOptions, total=False):
    softmax_param: Dict | caffe_pb2.SoftmaxParameter | None
    loss_param: Dict | caffe_pb2.LossParameter | None
    engine: str | SupportsIndex | None
    axis: SupportsIndex | None
    ignore_label: SupportsIndex | None
    normalize: bool | None
    normalization: str | SupportsIndex | None
    pre_fixed_normalizer: SupportsFloat | None
    weight_by_label_freqs: bool | None
    class_weighting: SupportsFloat | Iterable[SupportsFloat] | None
    class_balanced: bool | None

def SoftmaxWithLossOHEM(name: str, bottoms: Blobs = (), **options: Unpack[SoftmaxWithLossOHEMOptions]) -> LayerSpec: ...

class SpatialDropoutOptions(LayerOptions, total=False):
    dropout_param: Dict | caffe_pb2.DropoutParameter | None
    dropout_ratio: SupportsFloat | None
    scale_train: bool | None
    sample_weights_test: bool | None

def SpatialDropout(name: str, bottoms: Blobs = (), **options: Unpack[SpatialDropoutOptions]) -> LayerSpec: ...

def Split(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class SwishOptions(LayerOptions, total=False):
    swish_param: Dict | caffe_pb2.SwishParameter | None
    beta: SupportsFloat | None

def Swish(name: str, bottoms: Blobs = (), **options: Unpack[SwishOptions]) -> LayerSpec: ...

class TanHOptions(LayerOptions, total=False):
    tanh_param: Dict | caffe_pb2.TanHParameter | None
    engine: str | SupportsIndex | None

def TanH(name: str, bottoms: Blobs = (), **options: Unpack[TanHOptions]) -> LayerSpec: ...

class ThresholdOptions(LayerOptions, total=False):
    threshold_param: Dict | caffe_pb2.ThresholdParameter | None
    threshold: SupportsFloat | None

def Threshold(name: str, bottoms: Blobs = (), **options: Unpack[ThresholdOptions]) -> LayerSpec: ...

class TileOptions(LayerOptions, total=False):
    tile_param: Dict | caffe_pb2.TileParameter | None
    axis: SupportsIndex | None
    tiles: SupportsIndex | None

def Tile(name: str, bottoms: Blobs = (), **options: Unpack[TileOptions]) -> LayerSpec: ...

class TransposeOptions(LayerOptions, total=False):
    transpose_param: Dict | caffe_pb2.TransposeParameter | None
    dim: SupportsIndex | Iterable[SupportsIndex] | None

def Transpose(name: str, bottoms: Blobs = (), **options: Unpack[TransposeOptions]) -> LayerSpec: ...

class TripletLossOptions(LayerOptions, total=False):
    triplet_loss_param: Dict | caffe_pb2.TripletLossParameter | None
    margin: SupportsFloat | None

def TripletLoss(name: str, bottoms: Blobs = (), **options: Unpack[TripletLossOptions]) -> LayerSpec: ...

def TrueBoxes(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class UpsampleOptions(LayerOptions, total=False):
    upsample_param: Dict | caffe_pb2.UpsampleParameter | None
    scale: SupportsIndex | None
    scale_h: SupportsIndex | None
    scale_w: SupportsIndex | None
    pad_out_h: bool | None
    pad_out_w: bool | None
    upsample_h: SupportsIndex | None
    upsample_w: SupportsIndex | None

def Upsample(name: str, bottoms: Blobs = (), **options: Unpack[UpsampleOptions]) -> LayerSpec: ...

def Where(name: str, bottoms: Blobs = (), **options: Unpack[LayerOptions]) -> LayerSpec: ...

class WindowDataOptions(LayerOptions, total=False):
    window_data_param: Dict | caffe_pb2.WindowDataParameter | None
    transform_param: Dict | caffe_pb2.TransformationParameter | None
    source: Text | None
    scale: SupportsFloat | None
    mean_file: Text | None
    batch_size: SupportsIndex | None
    crop_size: SupportsIndex | None
    mirror: bool | None
    fg_threshold: SupportsFloat | None
    bg_threshold: SupportsFloat | None
    fg_fraction: SupportsFloat | None
    context_pad: SupportsIndex | None
    crop_mode: Text | None
    cache_images: bool | None
    root_folder: Text | None
    mean_value: SupportsFloat | Iterable[SupportsFloat] | None
    force_color: bool | None
    force_gray: bool | None
    resize_param: Dict | caffe_pb2.ResizeParameter | None
    noise_param: Dict | caffe_pb2.NoiseParameter | None
    emit_constraint: Dict | caffe_pb2.EmitConstraint | None
    crop_h: SupportsIndex | None
    crop_w: SupportsIndex | None
    distort_param: Dict | caffe_pb2.DistortionParameter | None
    expand_param: Dict | caffe_pb2.ExpansionParameter | None
    random_resize_param: Dict | caffe_pb2.RandomResizeParameter | None
    random_aspect_ratio_param: Dict | caffe_pb2.RandomAspectRatioParameter | None
    flow: bool | None
    bgr2rgb: bool | None
    pad: SupportsIndex | None
    use_gpu_transform: bool | None
    random_seed: SupportsIndex | None
    img_rand_resize_lower: SupportsIndex | None
    img_rand_resize_upper: SupportsIndex | None
    rand_resize_ratio_lower: SupportsFloat | None
    rand_resize_ratio_upper: SupportsFloat | None
    vertical_stretch_lower: SupportsFloat | None
    vertical_stretch_upper: SupportsFloat | None
    horizontal_stretch_lower: SupportsFloat | None
    horizontal_stretch_upper: SupportsFloat | None
    interpolation_algo_down: str | SupportsIndex | None
    interpolation_algo_up: str | SupportsIndex | None
    allow_upscale: bool | None
    fix_crop: bool | None
    multi_scale: bool | None
    scale_ratios: SupportsFloat | Iterable[SupportsFloat] | None
    max_distort: SupportsIndex | None
    is_flow: bool | None
    more_fix_crop: bool | None
    stride: SupportsIndex | None
    upper_size: SupportsIndex | None
    upper_height: SupportsIndex | None
    upper_width: SupportsIndex | None
    original_image: bool | None
    further_resize_param: Dict | caffe_pb2.ResizeParameter | Iterable[Dict | caffe_pb2.ResizeParameter] | None
    scale_factors: SupportsFloat | Iterable[SupportsFloat] | None
    crop_width: SupportsIndex | None
    crop_height: SupportsIndex | None

def WindowData(name: str, bottoms: Blobs = (), **options: Unpack[WindowDataOptions]) -> LayerSpec: ...

class YoloDetectionOutputOptions(LayerOptions, total=False):
    yolo_detection_output_param: Dict | caffe_pb2.YoloDetectionOutputParameter | None
    side: SupportsIndex | None
    num_classes: SupportsIndex | None
    num_box: SupportsIndex | None
    coords: SupportsIndex | None
    confidence_threshold: SupportsFloat | None
    nms_threshold: SupportsFloat | None
    biases: SupportsFloat | Iterable[SupportsFloat] | None
    label_map_file: Text | None

def YoloDetectionOutput(name: str, bottoms: Blobs = (), **options: Unpack[YoloDetectionOutputOptions]) -> LayerSpec: ...

class Yolov3DetectionOutputOptions(LayerOptions, total=False):
    yolov3_detection_output_param: Dict | caffe_pb2.Yolov3DetectionOutputParameter | None
    num_classes: SupportsIndex | None
    num_box: SupportsIndex | None
    confidence_threshold: SupportsFloat | None
    nms_threshold: SupportsFloat | None
    biases: SupportsFloat | Iterable[SupportsFloat] | None
    anchors_scale: SupportsIndex | Iterable[SupportsIndex] | None
    mask_group_num: SupportsIndex | None
    mask: SupportsIndex | Iterable[SupportsIndex] | None
    gaussian_box: bool | None

def Yolov3DetectionOutput(name: str, bottoms: Blobs = (), **options: Unpack[Yolov3DetectionOutputOptions]) -> LayerSpec: ...
