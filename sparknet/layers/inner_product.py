"""InnerProduct: a fully connected layer."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count
from sparknet.layers.learnable import weights


class InnerProduct(Layer):
    """Caffe: inner_product_layer.cpp.  Axes from ``axis`` on are one vector.

    ``normalize``, of happynear's fork, gives every row of the weights length 1 in each forward
    pass, in the blob itself; the gradient is that of the weights as they are then.
    """

    type = "InnerProduct"
    stock = True
    field = "inner_product_param"
    copied = ("transpose", "bias_term", "normalize")

    def vectors(self, bottoms: Sequence[Shape]) -> tuple[Shape, ...]:
        return (bottoms[0][self.axis(self.options.axis, bottoms[0]) :],)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        outputs = options.num_output
        if outputs < 1:
            self.fail(f"num_output must be positive; it is {outputs}")
        if options.normalize and options.transpose:
            self.fail("normalize is for rows of outputs: it does not go with transpose")
        axis = self.axis(options.axis, bottoms[0])
        inputs = count(bottoms[0][axis:])
        weight = (inputs, outputs) if options.transpose else (outputs, inputs)
        values = {"axis": axis, "num_output": outputs}
        params = weights(self, weight, (outputs,))
        return Plan(((*bottoms[0][:axis], outputs),), params, values)

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        return count(plan.tops[0][: plan.values["axis"]]) * count(plan.params[0].shape)

    def multiplies_int8(self, plan: Plan) -> bool:
        return not plan.values["normalize"]

    def multiplies_narrow(self, plan: Plan) -> bool:
        return True
