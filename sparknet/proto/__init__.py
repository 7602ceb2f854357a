"""Caffe's messages, and its text and binary files."""

from __future__ import annotations

from sparknet.proto import caffe_pb2

__all__ = ["caffe_pb2"]
