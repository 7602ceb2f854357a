from __future__ import annotations

import pickle

import sparknet.caffe as caffe
import sparknet.caffe.proto.caffe_pb2 as messages
from sparknet.proto import caffe_pb2


def test_names() -> None:
    for name in caffe.__all__:
        assert hasattr(caffe, name)
    assert (caffe.TRAIN, caffe.TEST, caffe.__version__) == (0, 1, "1.0.0")
    assert caffe.proto.caffe_pb2 is messages is caffe_pb2 is caffe.io.caffe_pb2


def test_layer_types() -> None:
    types = caffe.layer_type_list()
    assert types == sorted(set(types))
    assert {"Convolution", "LSTM", "SoftmaxWithLoss", "Data", "Python"} <= set(types)


def test_messages_pickle() -> None:
    blob = messages.BlobProto(data=[1.0])
    assert pickle.loads(pickle.dumps(blob)) == blob
