"""BatchReindex: items picked by their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text


class BatchReindex(Layer):
    """Bottom 1 names the items of bottom 0 to copy (Caffe: batch_reindex_layer.cpp).

    Values: num (items in bottom 0; an index at or above it is refused), inner.
    """

    type = "BatchReindex"
    stock = True
    labelled = True
    bottoms = exactly(2)
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        data, indices = bottoms
        if len(indices) != 1:
            self.fail(f"the indices need exactly 1 axis; their shape is {shape_text(indices)}")
        if not data:
            self.fail("the data needs at least 1 axis; it is a scalar")
        return Plan(
            tops=((indices[0], *data[1:]),),
            values={"num": data[0], "inner": count(data[1:])},
        )
