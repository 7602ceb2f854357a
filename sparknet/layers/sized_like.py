"""SizedLike: values under sizes that are read from other blobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Layer, Plan, Shape, at_least, count, shape_text


class SizedLike(Layer):
    """The first bottom with the sizes that ``size`` lists; of the other bottoms only sizes count.

    Axes are lined up from the last one.  A size of 1 is spread, as numpy does; of a longer axis the
    first values are taken.  With ``reshape`` the values stay as they are, in their order.
    """

    type = "SizedLike"
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
            known = count([one for one in top if one != -1])
            if -1 in top and known:
                top[top.index(-1)] = count(bottom) // known
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
