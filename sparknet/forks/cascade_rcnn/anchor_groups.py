"""What DetectionGroupLoss and DetectionGroupAccuracy share: maps of groups of anchors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.forks.cascade_rcnn.cascade_boxes import scaling
from sparknet.layers.layer import Layer, Shape, count, shape_text
from sparknet.layers.loss import ignore_label


def group_values(layer: Layer, bottoms: Sequence[Shape]) -> dict[str, Any]:
    """Values: sizes (widths and heights of the anchors), stride, classes, objectness,
    bg_threshold, field_whr, field_xyr, ignore_label, means and stds.

    The bottoms are scores (N A x classes x H x W), deltas (N A x 4 x H x W) and labels
    (N A x 6 x H x W: class, centre, size and overlap), for A anchors.
    """
    options = layer.options
    many = len(options.field_h)
    if not many or many != len(options.field_w) or options.stride < 1:
        layer.fail("needs a stride, and a field_h for each field_w")
    if min(*options.field_h, *options.field_w) < 1:
        layer.fail("field_h and field_w must be positive")
    if not count(bottoms[0][2:]):
        layer.fail(f"the map is empty: {shape_text(bottoms[0])}")
    for name, shape, width in zip(
        ("scores", "deltas", "labels"), bottoms, (options.cls_num, 4, 6), strict=True
    ):
        fits = len(shape) == 4 and shape[0] % many == 0 and shape[1] == width
        if not fits or (shape[0], *shape[2:]) != (bottoms[0][0], *bottoms[0][2:]):
            layer.fail(
                f"{many} anchors need {name} of {many} N x {width} x H x W, with the N, H and W "
                f"of the scores; they are {shape_text(shape)}"
            )
    if options.cls_num < 1 or (options.objectness and options.cls_num != 2):
        layer.fail(f"cls_num must be positive, and 2 with objectness; it is {options.cls_num}")
    if options.field_whr <= 0 or options.field_xyr <= 0:
        layer.fail("field_whr and field_xyr must be positive")
    return {
        "sizes": tuple(zip(options.field_w, options.field_h, strict=True)),
        "stride": options.stride,
        "classes": options.cls_num,
        "objectness": options.objectness,
        "bg_threshold": options.bg_threshold,
        "field_whr": options.field_whr,
        "field_xyr": options.field_xyr,
        "ignore_label": ignore_label(layer.parameter.loss_param),
        **scaling(layer),
    }
