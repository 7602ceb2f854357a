"""Items by index or by condition: BatchReindex, BatchGather, Gather, Filter."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, count, exactly, layer, shape_text


@layer("BatchReindex", stock=True)
class BatchReindex(Layer):
    """Bottom 1 names the items of bottom 0 to copy (Caffe: batch_reindex_layer.cpp)."""

    other_bottoms = "indices"
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


@layer("BatchGather")
class BatchGather(Layer):
    """top[i, j, …] = bottom[i, places[i, j], …], where i are the axes before ``axis``, the same in
    both bottoms, and j are the others of the places.

    Places below 0 count from the end.  They have no gradient."""

    field = "batch_gather_param"
    bottoms = exactly(2)
    bottoms_without_gradient = (1,)

    def takes(self, bottom: int) -> str:
        return "indices" if bottom else "numbers"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom, places = bottoms
        axis = self.axis(self.options.axis, bottom)
        if places[:axis] != bottom[:axis]:
            self.fail(
                f"the places {shape_text(places)} have other axes before axis {axis} than "
                f"{shape_text(bottom)}"
            )
        return Plan((places + bottom[axis + 1 :],), values={"axis": axis})

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis == self.axis(self.options.axis, bottom)


@layer("Gather")
class Gather(Layer):
    """Place i of the top's axis is place index[i] of the bottom's; places may repeat.

    Negative places count from the end, however long the axis is."""

    field = "gather_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom, index = bottoms[0], tuple(self.options.index)
        axis = self.axis(self.options.axis, bottom)
        if not index:
            self.fail("index is empty: name at least one place")
        for place in index:
            if not -bottom[axis] <= place < bottom[axis]:
                self.fail(f"index {place} is out of range for axis {axis} of size {bottom[axis]}")
        top = (*bottom[:axis], len(index), *bottom[axis + 1 :])
        places = tuple(place % bottom[axis] for place in index)
        return Plan((top,), values={"axis": axis, "index": places})

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis == self.axis(self.options.axis, bottom)


@layer("Filter", stock=True)
class Filter(Layer):
    """The last bottom selects items of the others (Caffe: filter_layer.cpp).

    How many are kept is known only in the forward pass; until then the tops have
    the shapes of the bottoms."""

    other_bottoms = "indices"
    has_dynamic_tops = True
    bottoms = at_least(2)
    tops = at_least(1)
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        *data, selector = bottoms
        if len(self.parameter.top) != len(data):
            self.fail(
                f"{len(data)} bottoms besides the selector need as many tops; "
                f"there are {len(self.parameter.top)}"
            )
        if not selector or any(size != 1 for size in selector[1:]):
            self.fail(
                f"the selector holds one value for each item; its shape is {shape_text(selector)}"
            )
        for shape in data:
            if not shape or shape[0] != selector[0]:
                self.fail(
                    f"the selector has {selector[0]} items; "
                    f"a bottom of shape {shape_text(shape)} has a different number"
                )
        return Plan(tops=tuple(data), values={"num": selector[0]})
