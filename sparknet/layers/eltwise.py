"""Eltwise: the product, weighted sum or maximum of equal shapes."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, shape_text


class Eltwise(Layer):
    """Caffe: eltwise_layer.cpp."""

    type = "Eltwise"
    stock = True
    field = "eltwise_param"
    tolerates_int8 = True
    bottoms = at_least(2)
    in_place = True
    copied = ("stable_prod_grad",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        operation = self.choice("operation")
        given = tuple(self.options.coeff)
        if given and len(given) != len(bottoms):
            self.fail(f"takes one coeff a bottom; it has {len(given)} for {len(bottoms)} bottoms")
        if given and operation == "prod":
            self.fail("coeff is for SUM; the operation is PROD")
        for index, shape in enumerate(bottoms):
            if shape != bottoms[0]:
                self.fail(
                    f"all bottoms must have one shape; bottom 0 is {shape_text(bottoms[0])}, "
                    f"bottom {index} is {shape_text(shape)}"
                )
        values = {"operation": operation, "coeff": given or (1.0,) * len(bottoms)}
        return Plan((bottoms[0],), values=values)
