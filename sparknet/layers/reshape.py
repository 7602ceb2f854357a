"""Values in another order or under other sizes: Reshape, Flatten, Permute, Tile …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import (
    Layer,
    Plan,
    Shape,
    at_least,
    count,
    layer,
    legacy_shape,
    shape_text,
)


@layer("Reshape", stock=True)
class Reshape(Layer):
    """The same values under another shape (Caffe: reshape_layer.cpp).

    A 0 copies the bottom's size, one -1 takes what is left."""

    is_view = True
    field = "reshape_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        start, end = self._range(bottom)
        dims = tuple(self.options.shape.dim)
        if dims.count(-1) > 1:
            self.fail(f"at most one size may be -1; the shape is {list(dims)}")
        if min(dims, default=0) < -1:
            self.fail(f"sizes must be positive, 0 or -1; the shape is {list(dims)}")
        sizes = [
            self._copied(bottom, start + index) if size == 0 else size
            for index, size in enumerate(dims)
        ]
        top = [*bottom[:start], *sizes, *bottom[end:]]
        if -1 in sizes:
            top[start + sizes.index(-1)] = self._infer_size(bottom, top)
        if count(top) != count(bottom):
            self.fail(
                f"{shape_text(bottom)} has {count(bottom)} values, {shape_text(top)} has "
                f"{count(top)}"
            )
        return Plan((tuple(top),))

    def _range(self, bottom: Shape) -> tuple[int, int]:
        """Return the axes that the new sizes replace; ``axis: -1`` means after the last."""
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

    def _infer_size(self, bottom: Shape, top: Sequence[int]) -> int:
        rest = -count(top)
        if rest == 0 or count(bottom) % rest:
            self.fail(
                f"-1 cannot be worked out: the {count(bottom)} values of {shape_text(bottom)} "
                f"do not divide by {rest}"
            )
        return count(bottom) // rest


@layer("Flatten", stock=True)
class Flatten(Layer):
    """A run of axes becomes one (Caffe: flatten_layer.cpp)."""

    is_view = True
    field = "flatten_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        start = self.axis(self.options.axis, bottom)
        end = self.axis(self.options.end_axis, bottom, "end_axis") + 1
        if start > end:
            self.fail(f"end_axis {end - 1} lies before axis {start} of {shape_text(bottom)}")
        top = (*bottom[:start], count(bottom[start:end]), *bottom[end:])
        return Plan((top,), values={"axis": start, "end_axis": end - 1})


@layer("Permute")
class Permute(Layer):
    """permute_layer.cpp of SSD.  Axes that ``order`` leaves out follow in their old order."""

    field = "permute_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        axes = tuple(self.options.order)
        for axis in axes:
            if axis >= len(bottom):
                self.fail(f"order {axis} is out of range for the shape {shape_text(bottom)}")
        if len(set(axes)) < len(axes):
            self.fail(f"order names an axis twice: {list(axes)}")
        order = axes + tuple(axis for axis in range(len(bottom)) if axis not in axes)
        return Plan((tuple(bottom[axis] for axis in order),), values={"order": order})


@layer("Transpose")
class Transpose(Layer):
    """transpose_layer.cpp of CTPN's Caffe: axis i of the top is axis dim[i] of the bottom."""

    field = "transpose_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        (bottom,) = bottoms
        order = tuple(self.options.dim)
        if sorted(order) != list(range(len(bottom))):
            self.fail(
                f"dim must name each of the {len(bottom)} axes of the bottom once; "
                f"it is {list(order)}"
            )
        return Plan((tuple(bottom[axis] for axis in order),), values={"order": order})


@layer("Reverse")
class Reverse(Layer):
    """reverse_layer.cpp of CTPN's Caffe."""

    field = "reverse_param"

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return self.axis(self.options.axis, bottom) == axis

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        (bottom,) = bottoms
        axis = self.axis(self.options.axis, bottom)
        values = {
            "outer": count(bottom[:axis]),
            "many": bottom[axis],
            "inner": count(bottom[axis + 1 :]),
        }
        return Plan((tuple(bottom),), values=values)


@layer("ShuffleChannel")
class ShuffleChannel(Layer):
    """shuffle_channel_layer.cpp of ShuffleNet.  The output always has 4 axes."""

    field = "shuffle_channel_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        group = self.options.group
        if group < 1:
            self.fail(f"group must be positive; it is {group}")
        if len(bottoms[0]) < 2:
            self.fail(f"needs a channel axis; the input is {shape_text(bottoms[0])}")
        top = legacy_shape(self, bottoms[0], "the input")
        if top[1] % group:
            self.fail(f"the {top[1]} channels do not divide into {group} groups")
        return Plan((top,), values={"group": group})


@layer("SizedLike")
class SizedLike(Layer):
    """The first bottom with the sizes that ``size`` lists; of the other bottoms only sizes count.

    Axes are lined up from the last one.  A size of 1 is spread, as numpy does; of a longer axis the
    first values are taken.  With ``reshape`` the values stay as they are, in their order."""

    field = "sized_like_param"
    bottoms = at_least(1)

    def force_backward(self, bottom: int) -> bool:
        return bottom == 0

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom, reshape = bottoms[0], bool(self.options.reshape)
        top = [self._size(one, bottoms) for one in self.options.size]
        if top.count(-1) > (1 if reshape else 0):
            self.fail("one size may be -1, and only with reshape")
        if reshape:
            rest = count([one for one in top if one != -1])
            if -1 in top and rest:
                top[top.index(-1)] = count(bottom) // rest
            if count(top) != count(bottom) or -1 in top:
                self.fail(f"{shape_text(bottom)} does not become {shape_text(top)}")
        else:
            self._check(bottom, top)
        return Plan((tuple(top),), values={"reshape": reshape})

    def _size(self, size: Any, bottoms: Sequence[Shape]) -> int:
        if size.HasField("dim"):
            if size.dim < -1:
                self.fail(f"a size must not be negative; it is {size.dim}")
            return int(size.dim)
        if size.bottom >= len(bottoms):
            self.fail(f"a size is that of bottom {size.bottom}; there are {len(bottoms)}")
        like = bottoms[size.bottom]
        return int(like[self.axis(size.axis, like)])

    def _check(self, bottom: Shape, top: Sequence[int]) -> None:
        if len(top) < len(bottom):
            self.fail(f"{shape_text(bottom)} has more axes than {shape_text(top)}")
        for have, want in zip(bottom[::-1], top[::-1], strict=False):
            if have < want and have != 1:
                self.fail(
                    f"an axis of {want} is wanted, and the model holds values for {have}: "
                    f"{shape_text(bottom)} does not reach {shape_text(top)}"
                )


@layer("Tile", stock=True)
class Tile(Layer):
    """Copies of a blob side by side along an axis (Caffe: tile_layer.cpp)."""

    field = "tile_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        axis = self.axis(self.options.axis, bottom)
        if not self.options.HasField("tiles"):
            self.fail("the number of tiles must be given")
        tiles = self.options.tiles
        if tiles < 1:
            self.fail(f"tiles must be positive; it is {tiles}")
        top = (*bottom[:axis], bottom[axis] * tiles, *bottom[axis + 1 :])
        return Plan((top,), values={"axis": axis, "tiles": tiles})
