"""The first generation, `layers { layer { type: "relu" } }`, to the second (upgrade_proto.cpp)."""

from __future__ import annotations

import warnings
from typing import Any

from sparknet.errors import LayerError
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean


class UpgradeWarning(UserWarning):
    """Something in an old file has no counterpart in the current generation."""


def warn_dropped(message: str) -> None:
    """Say so, once for each thing left out."""
    warnings.warn(message, UpgradeWarning, stacklevel=2)


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


V1Layer = caffe_pb2.V1LayerParameter


def fold(net: caffe_pb2.NetParameter) -> list[V1Layer]:
    """Copies of the layers, without the padding layers."""
    folded: list[V1Layer] = []
    makers: dict[str, V1Layer | None] = dict.fromkeys(net.input)
    for layer in net.layers:
        if layer.layer.type != "padding":
            copy = V1Layer()
            copy.CopyFrom(layer)
            folded.append(copy)
        _fold_bottoms(layer, folded, makers)
        makers.update(dict.fromkeys(layer.top, layer))
    return folded


def _fold_bottoms(layer: V1Layer, folded: list[V1Layer], makers: dict[str, V1Layer | None]) -> None:
    for index, blob in enumerate(layer.bottom):
        if blob not in makers:
            raise LayerError(layer.layer.name, f"unknown bottom '{blob}'")
        maker = makers[blob]
        if maker is not None and maker.layer.type == "padding":
            _check(layer, maker)
            folded[-1].layer.pad = maker.layer.pad
            folded[-1].bottom[index] = maker.bottom[0]


def _check(layer: V1Layer, padding: V1Layer) -> None:
    name = layer.layer.name
    if layer.layer.type not in ("conv", "pool"):
        raise LayerError(name, f"type '{layer.layer.type}' cannot read a padding layer")
    if len(layer.bottom) != 1:
        raise LayerError(name, f"{len(layer.bottom)} bottoms, one of them a padding layer")
    if len(padding.bottom) != 1 or len(padding.top) != 1:
        raise LayerError(padding.layer.name, "a padding layer has one bottom and one top")


_KEPT = {"name", "layers", "input", "input_dim", "force_backward"}


def needed(net: caffe_pb2.NetParameter) -> bool:
    return any(layer.HasField("layer") for layer in net.layers)


def upgrade(net: caffe_pb2.NetParameter) -> None:
    """Fold padding layers in, then sort each layer's settings into the message of its type."""
    old_layers = fold(net)
    net.ClearField("layers")
    for descriptor, _ in net.ListFields():
        if descriptor.name not in _KEPT:
            net.ClearField(descriptor.name)
            warn_dropped(f"a net of the first generation has no '{descriptor.name}': left out")
    for old in old_layers:
        _upgrade_connection(old, net.layers.add())


def _upgrade_connection(old: caffe_pb2.V1LayerParameter, new: caffe_pb2.V1LayerParameter) -> None:
    new.bottom.extend(old.bottom)
    new.top.extend(old.top)
    if old.HasField("layer"):
        _upgrade_layer(old.layer, new)
    else:
        warn_dropped(f"layer '{old.name}' has no settings of the first generation: left out")


def _upgrade_layer(old: caffe_pb2.V0LayerParameter, new: caffe_pb2.V1LayerParameter) -> None:
    if old.HasField("name"):
        new.name = old.name
    if old.HasField("type"):
        new.type = _new_type(old)
    new.blobs.extend(old.blobs)
    new.blobs_lr.extend(old.blobs_lr)
    new.weight_decay.extend(old.weight_decay)
    for field, by_type in FIELDS.items():
        if not old.HasField(field):
            continue
        path = by_type.get(old.type) or by_type.get(ANY_TYPE)
        if path:
            _put(new, path, getattr(old, field))
        else:
            warn_dropped(
                f"layer '{old.name}': type '{old.type}' has no setting '{field}': left out"
            )


def _new_type(old: caffe_pb2.V0LayerParameter) -> caffe_pb2.V1LayerParameter.LayerType:
    if old.type not in TYPES:
        hint = did_you_mean(old.type, TYPES)
        raise LayerError(old.name, f"unknown type '{old.type}'{hint}")
    return TYPES[old.type]


def _put(new: caffe_pb2.V1LayerParameter, path: str, value: Any) -> None:
    message: Any = new
    *messages, field = path.split(".")
    for name in messages:
        message = getattr(message, name)
    target = getattr(message, field)
    if hasattr(target, "CopyFrom"):
        target.CopyFrom(value)
    elif hasattr(target, "append"):
        target.append(value)
    else:
        setattr(message, field, value)
