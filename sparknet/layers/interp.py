"""Interp: bilinear resizing with aligned corners, after cropping by negative padding."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, between, shape_text
from sparknet.layers.legacy_shape import legacy_shape

_SIZES = ("height", "width", "zoom_factor", "shrink_factor")


class Interp(Layer):
    """interp_layer.cpp of DeepLab and PSPNet.  A second bottom gives the size."""

    type = "Interp"
    field = "interp_param"
    bottoms = between(1, 2)
    copied = ("pad_beg", "pad_end")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for name in ("pad_beg", "pad_end"):
            if getattr(options, name) > 0:
                self.fail(
                    f"{name} can only crop: it must not be positive; it is {getattr(options, name)}"
                )
        num, channels, high, wide = legacy_shape(self, bottoms[0], "the input")
        crop = options.pad_beg + options.pad_end
        inner = (high + crop, wide + crop)
        if min(inner) < 1:
            self.fail(f"nothing of {shape_text(bottoms[0])} is left: {shape_text(inner)}")
        size = self._given_size(bottoms) or self._scaled(inner)
        if min(size) < 1:
            self.fail(f"height and width must be positive; they are {shape_text(size)}")
        return Plan(((num, channels, *size),))

    def _given_size(self, bottoms: Sequence[Shape]) -> tuple[int, int] | None:
        options = self.options
        if len(bottoms) == 2:
            if any(map(options.HasField, _SIZES)):
                self.fail("the second bottom gives the size: give no size, zoom or shrink factor")
            return legacy_shape(self, bottoms[1], "the size bottom")[2:]
        factors = options.HasField("zoom_factor") != options.HasField("shrink_factor")
        if not factors and options.HasField("height") and options.HasField("width"):
            return (options.height, options.width)
        return None

    def _scaled(self, inner: tuple[int, int]) -> tuple[int, int]:
        """The corner pixels stay corners: n pixels zoomed by z give (n - 1) z + 1."""
        options = self.options
        if not any(map(options.HasField, ("zoom_factor", "shrink_factor"))):
            self.fail("give height and width, a zoom_factor or a shrink_factor")
        zoom, shrink = options.zoom_factor, options.shrink_factor
        if zoom < 1 or shrink < 1:
            self.fail(f"factors must be positive; zoom is {zoom}, shrink is {shrink}")
        high, wide = ((size - 1) // shrink * zoom + 1 for size in inner)
        return (high, wide)
