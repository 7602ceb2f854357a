"""`caffe.proto`: the messages, under pycaffe's name."""

from __future__ import annotations

from sparknet.caffe.proto import caffe_pb2 as caffe_pb2

__all__ = ["caffe_pb2"]
