"""InfogainLoss: cross entropy weighted by a matrix over pairs of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.errors import shown
from sparknet.layers.layer import Plan, Shape, between, count, shape_text
from sparknet.layers.loss import Loss, check_label_count, ignore_label, normalizing
from sparknet.layers.softmax import around
from sparknet.native.alone import cached_property
from sparknet.proto import read_blob
from sparknet.proto.untrusted import check_trusted


class InfogainLoss(Loss):
    """The matrix comes from a file or as bottom 2 (Caffe: infogain_loss_layer.cpp).

    Values: axis, outer, channels, inner, normalization (default "valid"), ignore_label
    (None: none), matrix (from the file, channels x channels; None: bottom 2).
    """

    type = "InfogainLoss"
    stock = True
    squashes = "softmax"
    labelled = True
    field = "infogain_loss_param"
    fields = ("loss_param",)
    bottoms = between(2, 3)
    tops = between(1, 2)
    classes = 1

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        data, labels = bottoms[:2]
        axis = self.axis(self.options.axis, data)
        check_label_count(self, data, labels, axis)
        probabilities = (data,) if len(self.parameter.top) > 1 else ()
        return Plan(tops=((), *probabilities), values=self._values(bottoms, axis))

    def _values(self, bottoms: Sequence[Shape], axis: int) -> dict[str, Any]:
        options = self.parameter.loss_param
        if options.HasField("normalize"):
            self.fail("loss_param.normalize is not supported here; use normalization")
        matrix = None if len(bottoms) > 2 else self._matrix
        shape = bottoms[2] if matrix is None else matrix.shape
        classes = bottoms[0][axis]
        if count(shape) != classes * classes:
            self.fail(
                f"{classes} classes need a {classes} x {classes} matrix; "
                f"its shape is {shape_text(shape)}"
            )
        return {
            **around(bottoms[0], axis),
            **normalizing(options, default="valid"),
            "ignore_label": ignore_label(options),
            "matrix": None if matrix is None else matrix.reshape(classes, classes),
        }

    @cached_property
    def _matrix(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        if not self.options.HasField("source"):
            self.fail("needs the matrix: infogain_loss_param.source, or a third bottom")
        check_trusted(self.parameter, f"to read the matrix '{shown(self.options.source)}'")
        try:
            return read_blob(self.options.source)
        except OSError as error:
            self.fail(f"the matrix cannot be read: {error}")
