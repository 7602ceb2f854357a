"""Scale: multiply by a learned or given blob, broadcast over the other axes."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.bias import broadcast
from sparknet.layers.fillers import constant
from sparknet.layers.layer import Layer, Param, Plan, Shape, between
from sparknet.layers.learnable import learnable


class Scale(Layer):
    """Caffe: scale_layer.cpp.  With one bottom the factors are learned.

    ``bias_term`` adds a learned bias of the factors' shape, the last parameter.
    """

    type = "Scale"
    stock = True
    field = "scale_param"
    tolerates_int8 = True
    bottoms = between(1, 2)
    in_place = True
    copied = ("bias_term",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        axis, shape = broadcast(self, bottoms, "scale")
        filler = options.filler if options.HasField("filler") else constant(1)
        params: tuple[Param, ...] = ()
        if len(bottoms) == 1:
            params = (learnable(self, shape, filler),)
        if options.bias_term:
            params += (learnable(self, shape, options.bias_filler),)
        values = {"axis": axis, "num_axes": len(shape)}
        return Plan((bottoms[0],), params, values)
