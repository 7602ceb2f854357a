"""What MS-CNN's DetectionLoss and DetectionAccuracy share: maps of one field at every place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.forks.cascade_rcnn.cascade_boxes import scaling
from sparknet.layers.layer import Layer, Shape, count, shape_text
from sparknet.layers.loss import ignore_label


def field_values(layer: Layer, bottoms: Sequence[Shape]) -> dict[str, Any]:
    """Values: as `group_values` has them, for a single anchor of field_w x field_h.

    The bottoms are predictions (N x (classes + 4) x H x W) and labels (N x 6 x H x W: class,
    centre, size and overlap).
    """
    options = layer.options
    if options.coord_num != 4:
        layer.fail(f"coord_num must be 4; it is {options.coord_num}")
    if min(options.field_h, options.field_w, options.downsample_rate) < 1:
        layer.fail("field_h, field_w and downsample_rate must be positive")
    if options.cls_num < 2 or (options.objectness and options.cls_num != 2):
        layer.fail(f"cls_num must be 2, or more without objectness; it is {options.cls_num}")
    if not (options.field_whr > 0 and options.field_xyr > 0):
        layer.fail("field_whr and field_xyr must be positive")
    predicted, labels = bottoms
    if not count(predicted[2:]):
        layer.fail(f"the map is empty: {shape_text(predicted)}")
    for name, shape, width in (
        ("predictions", predicted, options.cls_num + 4),
        ("labels", labels, 6),
    ):
        if len(shape) != 4 or (shape[0], *shape[2:]) != (predicted[0], *predicted[2:]):
            layer.fail(f"needs {name} of N x {width} x H x W; they are {shape_text(shape)}")
        if shape[1] != width:
            layer.fail(f"needs {width} channels of {name}; there are {shape[1]}")
    return {
        "sizes": ((options.field_w, options.field_h),),
        "stride": options.downsample_rate,
        "classes": options.cls_num,
        "objectness": options.objectness,
        "bg_threshold": options.bg_threshold,
        "field_whr": options.field_whr,
        "field_xyr": options.field_xyr,
        "ignore_label": ignore_label(layer.parameter.loss_param),
        **scaling(layer),
    }
