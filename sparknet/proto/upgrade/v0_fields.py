"""Where each setting of a first-generation layer went, by the layer's type.

Caffe: upgrade_proto.cpp, UpgradeV0LayerParameter and UpgradeV0LayerType.
"""

from __future__ import annotations

from sparknet.proto import caffe_pb2

_V1 = caffe_pb2.V1LayerParameter
ANY_TYPE = "*"


def _weighted(field: str) -> dict[str, str]:
    return {"conv": f"convolution_param.{field}", "innerproduct": f"inner_product_param.{field}"}


def _window(field: str) -> dict[str, str]:
    return {"conv": f"convolution_param.{field}", "pool": f"pooling_param.{field}"}


def _image_window(field: str) -> dict[str, str]:
    return {"window_data": f"window_data_param.{field}"}


def _transform(field: str) -> dict[str, str]:
    return {ANY_TYPE: f"transform_param.{field}"}


FIELDS: dict[str, dict[str, str]] = {
    "num_output": _weighted("num_output"),
    "biasterm": _weighted("bias_term"),
    "weight_filler": _weighted("weight_filler"),
    "bias_filler": _weighted("bias_filler"),
    "pad": _window("pad"),
    "kernelsize": _window("kernel_size"),
    "group": {"conv": "convolution_param.group"},
    "stride": _window("stride"),
    "pool": {"pool": "pooling_param.pool"},
    "dropout_ratio": {"dropout": "dropout_param.dropout_ratio"},
    "local_size": {"lrn": "lrn_param.local_size"},
    "alpha": {"lrn": "lrn_param.alpha"},
    "beta": {"lrn": "lrn_param.beta"},
    "k": {"lrn": "lrn_param.k"},
    "source": {
        "data": "data_param.source",
        "hdf5_data": "hdf5_data_param.source",
        "images": "image_data_param.source",
        "window_data": "window_data_param.source",
        "infogain_loss": "infogain_loss_param.source",
    },
    "scale": _transform("scale"),
    "meanfile": _transform("mean_file"),
    "batchsize": {
        "data": "data_param.batch_size",
        "hdf5_data": "hdf5_data_param.batch_size",
        "images": "image_data_param.batch_size",
        "window_data": "window_data_param.batch_size",
    },
    "cropsize": _transform("crop_size"),
    "mirror": _transform("mirror"),
    "rand_skip": {"data": "data_param.rand_skip", "images": "image_data_param.rand_skip"},
    "shuffle_images": {"images": "image_data_param.shuffle"},
    "new_height": {"images": "image_data_param.new_height"},
    "new_width": {"images": "image_data_param.new_width"},
    "concat_dim": {"concat": "concat_param.concat_dim"},
    "det_fg_threshold": _image_window("fg_threshold"),
    "det_bg_threshold": _image_window("bg_threshold"),
    "det_fg_fraction": _image_window("fg_fraction"),
    "det_context_pad": _image_window("context_pad"),
    "det_crop_mode": _image_window("crop_mode"),
    "hdf5_output_param": {"hdf5_output": "hdf5_output_param"},
}

TYPES: dict[str, caffe_pb2.V1LayerParameter.LayerType] = {
    "accuracy": _V1.ACCURACY,
    "bnll": _V1.BNLL,
    "concat": _V1.CONCAT,
    "conv": _V1.CONVOLUTION,
    "data": _V1.DATA,
    "dropout": _V1.DROPOUT,
    "euclidean_loss": _V1.EUCLIDEAN_LOSS,
    "flatten": _V1.FLATTEN,
    "hdf5_data": _V1.HDF5_DATA,
    "hdf5_output": _V1.HDF5_OUTPUT,
    "im2col": _V1.IM2COL,
    "images": _V1.IMAGE_DATA,
    "infogain_loss": _V1.INFOGAIN_LOSS,
    "innerproduct": _V1.INNER_PRODUCT,
    "lrn": _V1.LRN,
    "multinomial_logistic_loss": _V1.MULTINOMIAL_LOGISTIC_LOSS,
    "pool": _V1.POOLING,
    "relu": _V1.RELU,
    "sigmoid": _V1.SIGMOID,
    "softmax": _V1.SOFTMAX,
    "softmax_loss": _V1.SOFTMAX_LOSS,
    "split": _V1.SPLIT,
    "tanh": _V1.TANH,
    "window_data": _V1.WINDOW_DATA,
}
