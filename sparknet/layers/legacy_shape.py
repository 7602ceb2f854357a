"""Shapes read as (num, channels, height, width), as Caffe's older layers do."""

from __future__ import annotations

from sparknet.layers.layer import Layer, Shape, shape_text


def legacy_shape(layer: Layer, shape: Shape, what: str) -> tuple[int, int, int, int]:
    """A shape of at most four axes, filled up with ones (Caffe: blob.hpp, LegacyShape)."""
    if len(shape) > 4:
        layer.fail(f"{what} may have at most 4 axes; its shape is {shape_text(shape)}")
    num, channels, height, width = (*shape, 1, 1, 1, 1)[:4]
    return num, channels, height, width
