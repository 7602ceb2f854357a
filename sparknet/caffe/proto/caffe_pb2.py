"""`caffe.proto.caffe_pb2`: this name leads to the very module `sparknet.proto.caffe_pb2`."""

from __future__ import annotations

import sys

from sparknet.proto import caffe_pb2
from sparknet.proto.caffe_pb2 import *  # noqa: F403

sys.modules[__name__] = caffe_pb2
