"""MeanIoU: the confusion matrix of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host

Array = np.ndarray[Any, Any]


class MeanIoUHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        layer = self.node.layer
        axis = layer.axis(layer.options.axis, tuple(bottoms[0].shape))
        classes = bottoms[0].shape[axis]
        found, told = bottoms[0].data.argmax(axis).reshape(-1), bottoms[1].data.reshape(-1)
        if layer.options.HasField("ignore_label"):
            kept = told != layer.options.ignore_label
            found, told = found[kept], told[kept]
        wrong = told[~((told >= 0) & (told < classes))]
        if wrong.size:
            layer.fail(f"the label {wrong[0]:g} is out of range: there are {classes}")
        pairs = told.astype(np.int64) * classes + found
        tops[0].data[...] = np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
