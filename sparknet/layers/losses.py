"""Losses over scores and labels, or over two blobs of one shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from sparknet.errors import clean
from sparknet.layers.activations import around
from sparknet.layers.layer import (
    Layer,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.native.alone import cached_property
from sparknet.proto import caffe_pb2, read_blob
from sparknet.proto.untrusted import check_trusted


class Loss(Layer):
    """Caffe: loss_layer.cpp.  No gradient reaches the labels, bottom 1."""

    bottoms = exactly(2)
    is_loss = True
    compares_labels = True
    bottoms_without_gradient: ClassVar[tuple[int, ...]] = (1,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        return Plan(tops=((),), values=self.examine(bottoms))

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        """Check the bottoms; return the resolved values."""
        return {}

    def check_batch(self, bottoms: Sequence[Shape]) -> None:
        """Data and labels have the same first axis."""
        data, labels = bottoms[:2]
        if not data or not labels:
            self.fail("data and labels need at least 1 axis; one of them is a scalar")
        if data[0] != labels[0]:
            self.fail(
                "data and labels must have the same first axis; "
                f"their shapes are {shape_text(data)} and {shape_text(labels)}"
            )


def check_label_count(layer: Layer, data: Shape, labels: Shape, axis: int) -> None:
    """Check for one label at each place of the data, the class axis left out."""
    expected = count(data[:axis]) * count(data[axis + 1 :])
    if count(labels) != expected:
        layer.fail(
            f"data of shape {shape_text(data)} with classes on axis {axis} needs {expected} "
            f"labels; there are {count(labels)}, of shape {shape_text(labels)}"
        )


def check_one_label_each(layer: Layer, labels: Shape) -> None:
    """Check for one value for each item: every axis but the first is 1."""
    if legacy_shape(layer, labels, "labels")[1:] != (1, 1, 1):
        layer.fail(f"labels must hold one value for each item; their shape is {shape_text(labels)}")


def check_same_count(layer: Layer, bottoms: Sequence[Shape], start: int = 0) -> None:
    """Check that the first two bottoms have as many values from axis ``start`` on."""
    one, two = bottoms[:2]
    if count(one[start:]) != count(two[start:]):
        layer.fail(
            "the first two bottoms must have the same number of values; "
            f"their shapes are {shape_text(one)} and {shape_text(two)}"
        )


def normalizing(options: caffe_pb2.LossParameter, default: str) -> dict[str, Any]:
    """Values: normalization and, where it is "pre_fixed", the pre_fixed_normalizer to divide by."""
    mode = normalization(options, default)
    fixed = {"pre_fixed_normalizer": options.pre_fixed_normalizer} if mode == "pre_fixed" else {}
    return {"normalization": mode, **fixed}


def normalization(options: caffe_pb2.LossParameter, default: str) -> str:
    """Return the loss's divisor; the old ``normalize`` counts where the new is absent."""
    if options.HasField("normalization"):
        name: str = caffe_pb2.LossParameter.NormalizationMode.Name(options.normalization)
        return name.lower()
    if options.HasField("normalize"):
        return "valid" if options.normalize else "batch_size"
    return default


def ignore_label(options: caffe_pb2.LossParameter) -> int | None:
    return int(options.ignore_label) if options.HasField("ignore_label") else None


@layer("EuclideanLoss", stock=True)
class EuclideanLoss(Loss):
    """Both bottoms may receive a gradient (Caffe: euclidean_loss_layer.cpp)."""

    bottoms_without_gradient = ()

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_same_count(self, bottoms, start=1)
        return {"num": bottoms[0][0]}


@layer("L1Loss")
class L1Loss(EuclideanLoss):
    """l1_loss_layer.cpp of NVIDIA's fork (DetectNet): their sum, divided by the number of items.

    Both bottoms may receive a gradient."""


@layer("HingeLoss", stock=True)
class HingeLoss(Loss):
    """The margin loss, one against all (Caffe: hinge_loss_layer.cpp)."""

    field = "hinge_loss_param"
    other_bottoms = "classes"
    plain_options = ("norm",)

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_one_label_each(self, bottoms[1])
        return {"num": bottoms[0][0], "channels": count(bottoms[0][1:])}


@layer("MultinomialLogisticLoss", stock=True)
class MultinomialLogisticLoss(Loss):
    """Cross entropy over given probabilities (Caffe: multinomial_logistic_loss_layer.cpp)."""

    other_bottoms = "classes"

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_one_label_each(self, bottoms[1])
        return {"num": bottoms[0][0], "channels": count(bottoms[0][1:])}


@layer("InfogainLoss", stock=True)
class InfogainLoss(Loss):
    """The matrix comes from a file or as bottom 2 (Caffe: infogain_loss_layer.cpp)."""

    score_function = "softmax"
    field = "infogain_loss_param"
    fields = ("loss_param",)
    bottoms = between(2, 3)
    tops = between(1, 2)
    other_bottoms = "classes"

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
        check_trusted(self.parameter, f"to read the matrix '{clean(self.options.source)}'")
        try:
            return read_blob(self.options.source)
        except OSError as error:
            self.fail(f"the matrix cannot be read: {error}")


@layer("SigmoidCrossEntropyLoss", stock=True)
class SigmoidCrossEntropyLoss(Loss):
    """Independent yes-or-no losses on logits (Caffe: sigmoid_cross_entropy_loss_layer.cpp).

    ``class_balanced`` is HED's (``dialect="hed"``): in each item the losses of ones count by the
    share of zeros, those of zeros by the share of ones, and other targets do not count."""

    score_function = "sigmoid"
    other_bottoms = "indices"
    field = "sigmoid_param"
    fields = ("loss_param",)

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        check_same_count(self, bottoms)
        return {
            "outer": bottoms[0][0],
            "inner": count(bottoms[0][1:]),
            **normalizing(self.parameter.loss_param, default="batch_size"),
            "ignore_label": ignore_label(self.parameter.loss_param),
            "class_balanced": self.parameter.loss_param.class_balanced,
        }


@layer("SoftmaxWithLoss", stock=True)
class SoftmaxWithLoss(Loss):
    """A second top gives the probabilities (Caffe: softmax_loss_layer.cpp); a third, of forks,
    the loss of each label in the shape of the labels; an ignored one has 0.

    SegNet's ``weight_by_label_freqs`` multiplies each label's part of the loss by its class's
    number in ``class_weighting``; the divisor stays."""

    score_function = "softmax"
    field = "softmax_param"
    fields = ("loss_param",)
    tops = between(1, 3)
    other_bottoms = "classes"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        data, labels = bottoms
        axis = self.axis(self.options.axis, data)
        check_label_count(self, data, labels, axis)
        values = {
            **around(data, axis),
            **normalizing(self.parameter.loss_param, default="valid"),
            "ignore_label": ignore_label(self.parameter.loss_param),
            **self._class_weights(data[axis]),
        }
        return Plan(tops=((), data, labels)[: max(len(self.parameter.top), 1)], values=values)

    def _class_weights(self, classes: int) -> dict[str, tuple[float, ...]]:
        options = self.parameter.loss_param
        weights = tuple(float(weight) for weight in options.class_weighting)
        if not options.weight_by_label_freqs:
            return {}
        if len(weights) != classes:
            self.fail(
                f"weight_by_label_freqs needs a class_weighting for each of the {classes} classes; "
                f"there are {len(weights)}"
            )
        return {"class_weights": weights}
