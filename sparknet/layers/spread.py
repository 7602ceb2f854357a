"""Bottoms that are spread over each other by numpy's rules."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Shape


def spread_shape(shapes: Sequence[Shape]) -> Shape | None:
    """The shape of what they make; None: they do not fit each other.  A size may be 0."""
    axes = max(map(len, shapes))
    lined_up = [(1,) * (axes - len(shape)) + shape for shape in shapes]
    whole = tuple(
        next((size for size in sizes if size != 1), 1) for sizes in zip(*lined_up, strict=True)
    )
    fits = all(
        size in (1, most) for shape in lined_up for size, most in zip(shape, whole, strict=True)
    )
    return whole if fits else None
