"""Eltwise, Div and Where: two or more blobs, value by value."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, exactly, layer, shape_text


def spread_shape(shapes: Sequence[Shape]) -> Shape | None:
    """Return the shape of what they make; None: they do not fit each other.  A size may be 0."""
    axes = max(map(len, shapes))
    lined_up = [(1,) * (axes - len(shape)) + shape for shape in shapes]
    whole = tuple(
        next((size for size in sizes if size != 1), 1) for sizes in zip(*lined_up, strict=True)
    )
    fits = all(
        size in (1, most) for shape in lined_up for size, most in zip(shape, whole, strict=True)
    )
    return whole if fits else None


@layer("Eltwise", stock=True)
class Eltwise(Layer):
    """The product, weighted sum or maximum of equal shapes (Caffe: eltwise_layer.cpp)."""

    field = "eltwise_param"
    accepts_int8 = True
    bottoms = at_least(2)
    works_in_place = True
    plain_options = ("stable_prod_grad",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        operation = self.choice("operation")
        coefficients = tuple(self.options.coeff)
        if coefficients and len(coefficients) != len(bottoms):
            self.fail(
                f"takes one coeff a bottom; it has {len(coefficients)} for {len(bottoms)} bottoms"
            )
        if coefficients and operation == "prod":
            self.fail("coeff is for SUM; the operation is PROD")
        for index, shape in enumerate(bottoms):
            if shape != bottoms[0]:
                self.fail(
                    f"all bottoms must have one shape; bottom 0 is {shape_text(bottoms[0])}, "
                    f"bottom {index} is {shape_text(shape)}"
                )
        values = {"operation": operation, "coeff": coefficients or (1.0,) * len(bottoms)}
        return Plan((bottoms[0],), values=values)


@layer("Div")
class Div(Layer):
    """The first bottom divided by the second, spread over each other by numpy's rules."""

    bottoms = exactly(2)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        top = spread_shape(bottoms)
        if top is None:
            texts = [shape_text(one) for one in bottoms]
            self.fail(f"the values {texts[0]} and {texts[1]} do not fit each other")
        return Plan((top,))


@layer("Where")
class Where(Layer):
    """Bottoms: a condition, which holds where it is not 0, and the two values.

    The value that is not taken does not matter, infinite or not a number.  All three are spread
    over each other by numpy's rules.  The condition has no gradient."""

    bottoms = exactly(3)
    bottoms_without_gradient = (0,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        top = spread_shape(bottoms)
        if top is None:
            texts = [shape_text(one) for one in bottoms]
            self.fail(
                f"the condition {texts[0]} and the values {texts[1]} and {texts[2]} "
                "do not fit each other"
            )
        return Plan((top,))
