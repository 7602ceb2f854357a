"""MarginInnerProduct: SphereFace's products, which keep an angle between classes."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, between, count, exactly
from sparknet.layers.learnable import learnable
from sparknet.layers.loss import check_one_label_each


class MarginInnerProduct(Layer):
    """margin_inner_product_layer.cpp (Liu et al., SphereFace: Deep Hypersphere Embedding for Face
    Recognition); bottoms: vectors and class numbers.

    Products |x| cos(t) with rows of length 1, which each forward pass makes so in the blob itself;
    that of the label's row is (lambda |x| cos(t) + |x| psi(t)) / (1 + lambda), where psi is
    cos(m t) made monotonous, m from SINGLE to QUADRUPLE.  lambda is base (1 + gamma n)^-power in
    pass n, at least lambda_min; a second top shows it.  As there, the gradient of |x| psi(t) by x
    is scaled so that its coefficients of the row and of x have a norm of 1, and rows learn as by
    plain products.
    Values: axis, num_output, times, base, gamma, power, lambda_min, iteration.
    """

    type = "MarginInnerProduct"
    field = "margin_inner_product_param"
    bottoms = exactly(2)
    tops = between(1, 2)
    labelled = True
    classes = 1
    copied = ("num_output", "base", "gamma", "power", "lambda_min", "iteration")
    unforced = (1,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.num_output < 1:
            self.fail(f"num_output must be positive; it is {options.num_output}")
        if len(bottoms[0]) < 2 or self.axis(options.axis, bottoms[0]) != 1:
            self.fail(f"takes N vectors, with axis 1; axis is {options.axis}")
        check_one_label_each(self, bottoms[1])
        if count(bottoms[1]) != bottoms[0][0]:
            self.fail(f"needs {bottoms[0][0]} class numbers; there are {count(bottoms[1])}")
        weight = (options.num_output, count(bottoms[0][1:]))
        values = {"times": options.type + 1}
        tops: tuple[Shape, ...] = ((bottoms[0][0], options.num_output), (1,))
        params = (learnable(self, weight, options.weight_filler),)
        return Plan(tops[: len(self.parameter.top)], params, values)
