"""MatMul: products of the matrices of two blobs."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text


class MatMul(Layer):
    """The last two axes are matrices; the axes before them are equal, or 1 in one of the blobs.

    Values: transpose_a, transpose_b (the matrices are stored transposed).
    """

    type = "MatMul"
    field = "matmul_param"
    bottoms = exactly(2)
    copied = ("transpose_a", "transpose_b")
    narrow_in_int8 = True

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
