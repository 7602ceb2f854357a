"""InnerProduct, Embed and MatMul."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import weights
from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, layer, shape_text


@layer("InnerProduct", stock=True)
class InnerProduct(Layer):
    """A fully connected layer (Caffe: inner_product_layer.cpp).

    Axes from ``axis`` on are one vector.

    ``normalize``, of happynear's fork, gives every row of the weights length 1 in each forward
    pass, in the blob itself; the gradient is that of the weights as they are then."""

    field = "inner_product_param"
    plain_options = ("transpose", "bias_term", "normalize")

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


@layer("Embed", stock=True)
class Embed(Layer):
    """A row of a table for every index (Caffe: embed_layer.cpp).

    No gradient reaches the indices."""

    field = "embed_param"
    plain_options = ("bias_term",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for name in ("num_output", "input_dim"):
            if getattr(options, name) < 1:
                self.fail(f"{name} must be positive; it is {getattr(options, name)}")
        outputs, rows = options.num_output, options.input_dim
        params = weights(self, (rows, outputs), (outputs,))
        values = {"num_output": outputs, "input_dim": rows}
        return Plan(((*bottoms[0], outputs),), params, values)

    def takes(self, bottom: int) -> str:
        return "indices"


@layer("MatMul")
class MatMul(Layer):
    """The last two axes are matrices; the axes before them are equal, or 1 in one of the blobs."""

    field = "matmul_param"
    bottoms = exactly(2)
    plain_options = ("transpose_a", "transpose_b")
    rounds_inputs = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        a, b = bottoms
        if len(a) != len(b) or len(a) < 2:
            self.fail(
                "the bottoms need equally many axes, at least 2; "
                f"they are {shape_text(a)} and {shape_text(b)}"
            )
        options = self.options
        rows, inner = a[-2:][::-1] if options.transpose_a else a[-2:]
        other, columns = b[-2:][::-1] if options.transpose_b else b[-2:]
        pairs = list(zip(a[:-2], b[:-2], strict=True))
        if inner != other or any(x != y and 1 not in (x, y) for x, y in pairs):
            self.fail(f"the matrices {shape_text(a)} and {shape_text(b)} do not fit each other")
        top = (*(y if x == 1 else x for x, y in pairs), rows, columns)
        return Plan((top,))

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        inner = bottoms[0][-2 if plan.values["transpose_a"] else -1]
        return count(plan.tops[0]) * inner
