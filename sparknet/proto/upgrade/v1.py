"""The second generation, `layers { type: RELU }`, to the current one (upgrade_proto.cpp)."""

from __future__ import annotations

from typing import Any

from sparknet.proto import caffe_pb2

_V1 = caffe_pb2.V1LayerParameter
_TYPES: dict[int, str] = {
    _V1.NONE: "",
    _V1.ABSVAL: "AbsVal",
    _V1.ACCURACY: "Accuracy",
    _V1.ARGMAX: "ArgMax",
    _V1.BNLL: "BNLL",
    _V1.CONCAT: "Concat",
    _V1.CONTRASTIVE_LOSS: "ContrastiveLoss",
    _V1.CONVOLUTION: "Convolution",
    _V1.DATA: "Data",
    _V1.DECONVOLUTION: "Deconvolution",
    _V1.DROPOUT: "Dropout",
    _V1.DUMMY_DATA: "DummyData",
    _V1.ELTWISE: "Eltwise",
    _V1.EUCLIDEAN_LOSS: "EuclideanLoss",
    _V1.EXP: "Exp",
    _V1.FLATTEN: "Flatten",
    _V1.HDF5_DATA: "HDF5Data",
    _V1.HDF5_OUTPUT: "HDF5Output",
    _V1.HINGE_LOSS: "HingeLoss",
    _V1.IM2COL: "Im2col",
    _V1.IMAGE_DATA: "ImageData",
    _V1.INFOGAIN_LOSS: "InfogainLoss",
    _V1.INNER_PRODUCT: "InnerProduct",
    _V1.LRN: "LRN",
    _V1.MEMORY_DATA: "MemoryData",
    _V1.MULTINOMIAL_LOGISTIC_LOSS: "MultinomialLogisticLoss",
    _V1.MVN: "MVN",
    _V1.POOLING: "Pooling",
    _V1.POWER: "Power",
    _V1.RELU: "ReLU",
    _V1.SIGMOID: "Sigmoid",
    _V1.SIGMOID_CROSS_ENTROPY_LOSS: "SigmoidCrossEntropyLoss",
    _V1.SILENCE: "Silence",
    _V1.SLICE: "Slice",
    _V1.SOFTMAX: "Softmax",
    _V1.SOFTMAX_LOSS: "SoftmaxWithLoss",
    _V1.SPLIT: "Split",
    _V1.TANH: "TanH",
    _V1.THRESHOLD: "Threshold",
    _V1.WINDOW_DATA: "WindowData",
    # of forks
    _V1.CONVOLUTION3D: "Convolution3D",
    _V1.POOLING3D: "Pooling3D",
    _V1.DECONVOLUTION3D: "Deconvolution3D",
    _V1.VIDEO_DATA: "VideoData",
    _V1.VOXEL_SOFTMAX: "VoxelSoftmax",
    _V1.VOXEL_SOFTMAX_LOSS: "VoxelSoftmaxWithLoss",
    _V1.VOXEL_CUSTOM_LOSS: "VoxelCustomLoss",
    _V1.VIDEO_SEGMENTATION_DATA: "VideoSegmentationData",
    _V1.VIDEO_WITH_VOXEL_TRUTH_DATA: "VideoWithVoxelTruthData",
    _V1.VOLUME_DATA: "VolumeData",
    _V1.INTERP: "Interp",
    _V1.CROP: "Crop",
    _V1.IMAGE_SEG_DATA: "ImageSegData",
    _V1.DENSE_CRF: "DenseCRF",
    _V1.MAT_READ: "MatRead",
    _V1.MAT_WRITE: "MatWrite",
    _V1.SEG_ACCURACY: "SegAccuracy",
    _V1.BIAS_CHANNEL: "BiasChannel",
    _V1.UNIQUE_LABEL: "UniqueLabel",
    _V1.MULTI_STAGE_MEANFIELD: "MultiStageMeanfield",
    _V1.PRELU: "PReLU",
    _V1.BN: "BN",
    _V1.NORMALIZE: "Normalize",
    _V1.BATCH_NORM: "BatchNorm",
    _V1.ROIPOOLING: "ROIPooling",
    _V1.SMOOTH_L1_LOSS: "SmoothL1Loss",
    _V1.UPSAMPLE: "Upsample",
    _V1.DENSE_IMAGE_DATA: "DenseImageData",
    _V1.RELU6: "ReLU6",
    _V1.RESHAPE: "Reshape",
    _V1.PERMUTE: "Permute",
}

# Fields that became ParamSpec's, one for each blob; the share modes have kept their numbers.
_SPECS = {
    "param": "name",
    "blob_share_mode": "share_mode",
    "blobs_lr": "lr_mult",
    "weight_decay": "decay_mult",
}
_OTHERWISE = {"type", "layer", *_SPECS}


def upgrade(net: caffe_pb2.NetParameter) -> None:
    """Replace all `layers` by `layer`."""
    for old in net.layers:
        _upgrade_layer(old, net.layer.add())
    net.ClearField("layers")


def _upgrade_layer(old: caffe_pb2.V1LayerParameter, new: caffe_pb2.LayerParameter) -> None:
    if old.HasField("type"):
        new.type = _TYPES[old.type]
    for field, spec in _SPECS.items():
        for index, value in enumerate(getattr(old, field)):
            while len(new.param) <= index:
                new.param.add()
            setattr(new.param[index], spec, value)
    for descriptor, value in old.ListFields():
        if descriptor.name not in _OTHERWISE:
            _carry(new, descriptor.name, value)


def _carry(new: Any, field: str, value: Any) -> None:
    """Copy a field that has kept its name."""
    target = getattr(new, field)
    if hasattr(target, "CopyFrom"):
        target.CopyFrom(value)
    elif hasattr(target, "extend"):
        target.extend(value)
    else:
        setattr(new, field, value)
