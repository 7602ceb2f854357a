"""RecordWeights: the weight of each record in a loss."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text


class RecordWeights(Layer):
    """Passes bottom 0 on; bottom 1 has a weight for each record, by which gradients are multiplied.

    The shape of the weights says where the records lie: n for axis 0, 1 x n for axis 1.  The sum
    of a loss that reads the top is weighted as well; what it is divided by stays as it is.

    Values: before, records, after (the sizes before, on and behind the records' axis).
    """

    type = "RecordWeights"
    bottoms = exactly(2)
    is_view = True
    unforced = (1,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        data, weights = bottoms
        axis = len(weights) - 1
        if not weights or count(weights[:axis]) != 1 or data[axis : axis + 1] != weights[axis:]:
            self.fail(
                f"data of shape {shape_text(data)} needs a weight for each record, in the shape n, "
                f"or 1 x n where records lie on axis 1; theirs is {shape_text(weights)}"
            )
        values = {
            "before": count(data[:axis]),
            "records": data[axis],
            "after": count(data[axis + 1 :]),
        }
        return Plan(tops=(data,), values=values)
