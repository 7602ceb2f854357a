"""BboxAccuracy: how much better boxes fit after their deltas."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.cascade_boxes import scaling
from sparknet.layers.layer import Layer, Plan, Shape, between, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class BboxAccuracy(Layer):
    """bbox_accuracy_layer.cpp of Cascade R-CNN; bottoms: deltas (N x 4 classes, or N x 8 without
    cls_aware), boxes (N x 5) and the true boxes matched (N x 6: class, corners, overlap).

    Tops: the mean overlap with the true box after the deltas, and before them; -1 without objects.
    Boxes that overlap by more than 0.975 are true boxes themselves and do not count.
    Values: cls_aware, means, stds.
    """

    type = "BboxAccuracy"
    fields = ("bbox_reg_param",)
    bottoms = exactly(3)
    tops = between(1, 2)
    gradient = False
    judges = True
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        names = ("deltas", "boxes", "true boxes")
        shapes = [legacy_shape(self, s, n) for s, n in zip(bottoms, names, strict=True)]
        aware = self.parameter.bbox_reg_param.cls_aware
        deltas, boxes, truth = shapes
        fits = deltas[1] % 4 == 0 if aware else deltas[1] == 8
        fits = fits and all(shape[2:] == (1, 1) for shape in shapes)
        if not fits or boxes[1] != 5 or truth[1] != 6 or len({shape[0] for shape in shapes}) > 1:
            self.fail(
                f"takes N x {'4 classes' if aware else 8} deltas, N x 5 boxes and N x 6 true "
                f"boxes; they are {', '.join(map(shape_text, bottoms))}"
            )
        values = {"cls_aware": aware, **scaling(self)}
        return Plan(((1, 1, 1, 1),) * len(self.parameter.top), values=values)
