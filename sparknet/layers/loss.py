"""The base of losses: a data bottom, a label bottom, and one number for a top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.proto import caffe_pb2


class Loss(Layer):
    """Caffe: loss_layer.cpp.  No gradient reaches the labels, bottom 1."""

    bottoms = exactly(2)
    auto_tops = True
    loss = True
    judges = True
    unforced: ClassVar[tuple[int, ...]] = (1,)

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
    """One label for each place of the data, the class axis left out."""
    expected = count(data[:axis]) * count(data[axis + 1 :])
    if count(labels) != expected:
        layer.fail(
            f"data of shape {shape_text(data)} with classes on axis {axis} needs {expected} "
            f"labels; there are {count(labels)}, of shape {shape_text(labels)}"
        )


def check_one_label_each(layer: Layer, labels: Shape, what: str = "labels") -> None:
    """One value for each item: every axis but the first is 1."""
    if legacy_shape(layer, labels, what)[1:] != (1, 1, 1):
        layer.fail(f"{what} must hold one value for each item; their shape is {shape_text(labels)}")


def check_same_count(layer: Layer, bottoms: Sequence[Shape], start: int = 0) -> None:
    """The first two bottoms have the same number of values from axis ``start`` on."""
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
    """What the loss is divided by: "full", "valid", "batch_size", "none", or R-FCN's "pre_fixed".

    The old ``normalize`` counts where the new option is absent.
    """
    if options.HasField("normalization"):
        name: str = caffe_pb2.LossParameter.NormalizationMode.Name(options.normalization)
        return name.lower()
    if options.HasField("normalize"):
        return "valid" if options.normalize else "batch_size"
    return default


def ignore_label(options: caffe_pb2.LossParameter) -> int | None:
    return int(options.ignore_label) if options.HasField("ignore_label") else None
