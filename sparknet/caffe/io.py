"""Arrays, messages and images: pycaffe's `caffe.io` (Caffe: python/caffe/io.py)."""

from __future__ import annotations

import numpy as np

from sparknet.caffe.arrays import (
    array_to_blobproto,
    array_to_datum,
    arraylist_to_blobprotovector_str,
    blobproto_to_array,
    blobprotovector_str_to_arraylist,
    datum_to_array,
)
from sparknet.caffe.images import load_image, oversample, resize_image
from sparknet.caffe.optional_modules import resize, skimage, zoom
from sparknet.caffe.transformer import Transformer
from sparknet.proto import caffe_pb2

arraylist_to_blobprotovecor_str = arraylist_to_blobprotovector_str
"""The name as it was spelled before Caffe 1.0."""

__all__ = [
    "Transformer",
    "array_to_blobproto",
    "array_to_datum",
    "arraylist_to_blobprotovecor_str",
    "arraylist_to_blobprotovector_str",
    "blobproto_to_array",
    "blobprotovector_str_to_arraylist",
    "caffe_pb2",
    "datum_to_array",
    "load_image",
    "np",
    "oversample",
    "resize",
    "resize_image",
    "skimage",
    "zoom",
]
