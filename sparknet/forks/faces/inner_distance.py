"""InnerDistance: distances of vectors from rows that learn, or from those of another blob."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import INTERPRETED, Layer, Plan, Shape, between, count, shape_text
from sparknet.layers.learnable import learnable


class InnerDistance(Layer):
    """inner_distance_layer.cpp of happynear's fork; as InnerProduct, with sums of squared
    (distance_type L2) or absolute (L1) differences in place of products, and no bias.

    A second bottom takes the place of the weights.  With update_center_only the last bottom holds
    class numbers, and a row learns from the vectors of its class alone.  ``normalize`` gives every
    row length 1 in each forward pass, in the blob itself.
    Values: axis, num_output, norm, normalize, own (the rows are weights), labels.
    """

    type = "InnerDistance"
    field = "inner_distance_param"
    bottoms = between(1, 3)

    def force_backward(self, bottom: int) -> bool:
        return bottom < (2 if not self.options.update_center_only else self._rows)

    @property
    def _rows(self) -> int:
        """Bottoms that hold vectors."""
        return len(self.parameter.bottom) - int(self.options.update_center_only)

    def takes(self, bottom: int) -> str:
        return "numbers" if bottom < self._rows else "indices"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.transpose:
            self.fail("transpose is not supported: rows are vectors")
        if options.distance_type not in ("L1", "L2"):
            self.fail(f"distance_type '{options.distance_type}' must be L1 or L2")
        if not 1 <= self._rows <= 2:
            self.fail("takes vectors, rows, and with update_center_only class numbers")
        axis = self.axis(options.axis, bottoms[0])
        length, own = count(bottoms[0][axis:]), self._rows == 1
        outputs = options.num_output if own else (*bottoms[1], 0)[0]
        if own and outputs < 1:
            self.fail(f"num_output must be positive; it is {outputs}")
        if not own and count(bottoms[1][1:]) != length:
            self.fail(f"the rows must have {length} values; they are {shape_text(bottoms[1])}")
        if options.update_center_only and count(bottoms[-1]) != count(bottoms[0][:axis]):
            self.fail(f"needs a class number for each vector, not {shape_text(bottoms[-1])}")
        values = {
            "axis": axis,
            "num_output": outputs,
            "norm": options.distance_type,
            "normalize": options.normalize and own,
            "own": own,
            "labels": options.update_center_only,
        }
        params = (learnable(self, (outputs, length), options.weight_filler),) if own else ()
        return Plan(((*bottoms[0][:axis], outputs),), params, values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        rows: int = plan.values["num_output"]
        return rows * max(count(bottoms[0]), INTERPRETED)
