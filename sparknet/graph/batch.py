"""Another batch size for a net's description."""

from __future__ import annotations

from sparknet.proto import caffe_pb2

_SOURCES = (
    "data_param",
    "hdf5_data_param",
    "image_data_param",
    "memory_data_param",
    "window_data_param",
)


def set_batch(net: caffe_pb2.NetParameter, batch: int) -> None:
    """Change the batch size of every layer that brings data in, in place.

    It is the first axis; in nets with LSTM or RNN layers, where time comes first, the second.
    """
    axis = 1 if any(layer.type in {"LSTM", "RNN"} for layer in net.layer) else 0
    for layer in net.layer:
        for shape in [*layer.input_param.shape, *layer.dummy_data_param.shape]:
            if len(shape.dim) > axis:
                shape.dim[axis] = batch
        for index in range(len(layer.dummy_data_param.num)):
            layer.dummy_data_param.num[index] = batch
        for field in _SOURCES:
            if layer.HasField(field):
                getattr(layer, field).batch_size = batch
