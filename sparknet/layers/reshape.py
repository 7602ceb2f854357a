"""Reshape: the same values under another shape."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, shape_text


class Reshape(Layer):
    """Caffe: reshape_layer.cpp.  A 0 copies the bottom's size, one -1 takes what is left."""

    type = "Reshape"
    stock = True
    is_view = True
    fixes_sizes = True
    field = "reshape_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        start, end = self._range(bottom)
        wanted = tuple(self.options.shape.dim)
        if wanted.count(-1) > 1:
            self.fail(f"at most one size may be -1; the shape is {list(wanted)}")
        if min(wanted, default=0) < -1:
            self.fail(f"sizes must be positive, 0 or -1; the shape is {list(wanted)}")
        sizes = [
            self._copied(bottom, start + index) if size == 0 else size
            for index, size in enumerate(wanted)
        ]
        top = [*bottom[:start], *sizes, *bottom[end:]]
        if -1 in sizes:
            top[start + sizes.index(-1)] = self._left(bottom, top)
        if count(top) != count(bottom):
            self.fail(
                f"{shape_text(bottom)} has {count(bottom)} values, {shape_text(top)} has "
                f"{count(top)}"
            )
        return Plan((tuple(top),))

    def _range(self, bottom: Shape) -> tuple[int, int]:
        """The axes that the new sizes replace; ``axis: -1`` means after the last."""
        axis, axes = self.options.axis, self.options.num_axes
        start = axis if axis >= 0 else len(bottom) + axis + 1
        if not 0 <= start <= len(bottom):
            self.fail(f"axis {axis} is out of range for the shape {shape_text(bottom)}")
        if axes < -1:
            self.fail(f"num_axes must be at least 0, or -1 for all that follow; it is {axes}")
        end = len(bottom) if axes == -1 else start + axes
        if end > len(bottom):
            self.fail(f"{axes} axes from axis {start} on reach past the shape {shape_text(bottom)}")
        return start, end

    def _copied(self, bottom: Shape, axis: int) -> int:
        if axis >= len(bottom):
            self.fail(f"a size of 0 copies axis {axis}, which {shape_text(bottom)} does not have")
        return bottom[axis]

    def _left(self, bottom: Shape, top: Sequence[int]) -> int:
        known = -count(top)
        if known == 0 or count(bottom) % known:
            self.fail(
                f"-1 cannot be worked out: the {count(bottom)} values of {shape_text(bottom)} "
                f"do not divide by {known}"
            )
        return count(bottom) // known
