"""TrueBoxes: the boxes of each record as the rows that SSD's layers read."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, shape_text

WIDTHS = (5, 6)
"""The values of a box: label, four corners, and perhaps whether it is difficult."""


class TrueBoxes(Layer):
    """Of sparknet: makes true boxes that lie by records into what MultiBoxLoss and
    DetectionEvaluate read, so that a column of a table can hold them.

    The bottom is records x boxes x 5 (label, xmin, ymin, xmax, ymax as shares of the image) or x 6
    (and 1 for a difficult box); a row whose label is negative is no box.  The top is a row for each
    box: record, label, its number, corners, difficult; -1 for the record where there is no box.
    """

    type = "TrueBoxes"
    gradient = False
    labelled = True
    blank = -1.0
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        (boxes,) = bottoms
        if len(boxes) != 3 or boxes[2] not in WIDTHS:
            self.fail(f"the boxes must be records x boxes x 5 or 6; they are {shape_text(boxes)}")
        return Plan(((1, 1, boxes[0] * boxes[1], 8),))
