"""Filter: the items that a selector marks."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, shape_text


class Filter(Layer):
    """The last bottom selects items of the others (Caffe: filter_layer.cpp).

    How many are kept is known only in the forward pass; until then the tops have
    the shapes of the bottoms.  Values: num.
    """

    type = "Filter"
    stock = True
    labelled = True
    reshapes = True
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
