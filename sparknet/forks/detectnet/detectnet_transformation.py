"""DetectNetTransformation: pictures changed by chance, and their boxes as maps of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text

FACTS = 16
"""Numbers of a box in the labels: x, y, width, height, angle, class, …"""
MAPS = 8
"""Maps before those of the classes: whether there is an object, corners, 1 / size, norm."""
MOST_CLASSES = 10_000


class DetectNetTransformation(Layer):
    """detectnet_transform_layer.cpp of NVIDIA's Caffe; bottoms: pictures (N x 3 x H x W) and labels
    (N x 1 x R x 16: a row with the number of boxes and 16, then the boxes).

    Top 0 has the pictures, image_size_x wide and image_size_y high; in the training phase their hue
    and saturation change, and they are mirrored, scaled, rotated and cut by the chances that
    detectnet_augmentation_param gives, otherwise scaled.  Top 1 has at each place of the grid, of
    `stride` pixels, the box that covers it: 1, its corners from the place, 1 / width, 1 / height,
    the norm, and a coverage for each class that object_class maps to (class 1 alone, unless it is
    given).  transform_param may have mean_value.  Values: the two messages' fields, each under its
    own name (object_class as pairs of numbers), mean, train.
    """

    type = "DetectNetTransformation"
    field = "detectnet_groundtruth_param"
    fields = ("detectnet_augmentation_param", "transform_param")
    bottoms = exactly(2)
    tops = exactly(2)
    gradient = False
    copied = ("gridbox_type",)

    @property
    def draws(self) -> bool:
        return True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        pictures, labels = bottoms
        options, augmentation = self.options, self.parameter.detectnet_augmentation_param
        if len(pictures) != 4 or pictures[1] != 3 or min(pictures) < 1:
            self.fail(f"needs pictures of N x 3 x H x W; their shape is {shape_text(pictures)}")
        if (
            len(labels) != 4
            or (labels[0], labels[3]) != (pictures[0], FACTS)
            or labels[1] != 1
            or not labels[2]
        ):
            self.fail(
                f"needs labels of {pictures[0]} x 1 x R x {FACTS}; "
                f"their shape is {shape_text(labels)}"
            )
        wide, high, stride = options.image_size_x, options.image_size_y, options.stride
        if not 1 <= stride <= min(wide, high):
            self.fail(f"a stride of {stride} does not fit pictures of {wide} x {high}")
        pairs = tuple((one.src, one.dst) for one in options.object_class) or ((1, 0),)
        classes = max(dst for _, dst in pairs) + 1
        if classes > MOST_CLASSES:
            self.fail(f"takes at most {MOST_CLASSES} classes, not {classes}")
        self._check(augmentation)
        values = {
            **{one.name: getattr(augmentation, one.name) for one in _numbers(augmentation)},
            **{one.name: getattr(options, one.name) for one in _numbers(options)},
            "object_class": pairs,
            "classes": classes,
            "mean": tuple(self.parameter.transform_param.mean_value),
            "train": self.phase == 0,
        }
        tops = (
            (pictures[0], 3, high, wide),
            (pictures[0], MAPS + classes, high // stride, wide // stride),
        )
        return Plan(tops, values=values)

    def _check(self, augmentation: Any) -> None:
        transform = self.parameter.transform_param
        if transform.HasField("mean_file") or len(transform.mean_value) not in (0, 1, 3):
            self.fail("takes one mean_value or three in transform_param, and no mean_file")
        least, most = (getattr(augmentation, f"scale_{end}") for end in ("min", "max"))
        if not 0 < least <= most <= 100:
            self.fail(f"scale_min and scale_max must be in order, and at most 100: {least}, {most}")


def _numbers(options: Any) -> list[Any]:
    return [
        one
        for one in options.DESCRIPTOR.fields
        if one.message_type is None and one.enum_type is None
    ]
