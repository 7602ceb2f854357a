"""Resize: an image of another size."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite

from sparknet.layers.layer import MAX_COUNT, Layer, Plan, Shape
from sparknet.layers.pooling import check_image


class Resize(Layer):
    """By the rules of ONNX's Resize: nearest, linear or cubic (Keys, 1981) in both directions.

    Give height and width, or scale_h and scale_w; with both, the scales say where the new pixels
    lie.  Values: scales, and every option under its own name.
    """

    type = "Resize"
    field = "resize_image_param"
    copied = ("mode", "coordinates", "nearest_mode", "cubic_coeff_a", "exclude_outside")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = check_image(self, bottoms[0])
        sizes, scales = [], []
        for axis, name, ratio in ((2, "height", "scale_h"), (3, "width", "scale_w")):
            size, scale = self._axis(bottom[axis], name, ratio)
            sizes.append(size)
            scales.append(scale)
        values = {"scales": tuple(scales)}
        return Plan(((*bottom[:2], *sizes),), values=values)

    def _axis(self, size: int, name: str, ratio: str) -> tuple[int, float]:
        options = self.options
        given, scale = getattr(options, name), getattr(options, ratio)
        if not options.HasField(name) and not options.HasField(ratio):
            self.fail(f"give {name} or {ratio}")
        if options.HasField(ratio) and not (isfinite(scale) and scale > 0):
            self.fail(f"{ratio} must be positive; it is {scale:g}")
        if not options.HasField(name):
            given = min(floor(size * scale), MAX_COUNT + 1)
        if not 0 < given <= MAX_COUNT or size < 1:
            self.fail(f"an image of {name} {size} cannot become one of {name} {given}")
        return int(given), float(scale) if options.HasField(ratio) else given / size
