"""PriorBox: default boxes over a feature map (SSD)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Layer, Plan, Shape, exactly
from sparknet.layers.legacy_shape import legacy_shape

MOST_RATIOS = 1000


class PriorBox(Layer):
    """Boxes around every place of bottom 0, in units of the image, bottom 1.

    Of SSD (prior_box_layer.cpp).  Values: min_sizes, max_sizes, aspect_ratios (1 first, flipped
    ones included), variances (one or four), clip, offset, img_h, img_w, step_h, step_w (resolved),
    layer_h, layer_w, priors (for each place).
    """

    type = "PriorBox"
    field = "prior_box_param"
    bottoms = exactly(2)
    gradient = False
    constant = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        _, _, layer_h, layer_w = legacy_shape(self, bottoms[0], "the feature map")
        _, _, image_h, image_w = legacy_shape(self, bottoms[1], "the image")
        sizes = self._sizes()
        ratios = self._ratios()
        priors = len(ratios) * len(sizes["min_sizes"]) + len(sizes["max_sizes"])
        if not layer_h * layer_w:
            self.fail(f"the feature map is empty: {layer_h} x {layer_w}")
        img_h, img_w = self._pair("img_size", "img_h", "img_w") or (image_h, image_w)
        if not img_h * img_w:
            self.fail(f"the image is empty: {img_h} x {img_w}")
        steps = self._pair("step", "step_h", "step_w") or (img_h / layer_h, img_w / layer_w)
        values = {
            **sizes,
            "aspect_ratios": ratios,
            "variances": self._variances(),
            "clip": self.options.clip,
            "offset": self.options.offset,
            "img_h": img_h,
            "img_w": img_w,
            "step_h": steps[0],
            "step_w": steps[1],
            "layer_h": layer_h,
            "layer_w": layer_w,
            "priors": priors,
        }
        return Plan(tops=((1, 2, layer_h * layer_w * priors * 4),), values=values)

    def _sizes(self) -> dict[str, tuple[float, ...]]:
        least, most = tuple(self.options.min_size), tuple(self.options.max_size)
        if not least or not all(size > 0 for size in least):
            self.fail(f"needs min_size, all positive; it is {list(least)}")
        if most and len(most) != len(least):
            self.fail(f"needs as many max_size as min_size; there are {len(most)} and {len(least)}")
        for small, large in zip(least, most, strict=False):
            if not large > small:
                self.fail(f"max_size {large:g} must be greater than min_size {small:g}")
        return {"min_sizes": least, "max_sizes": most}

    def _ratios(self) -> tuple[float, ...]:
        if len(self.options.aspect_ratio) > MOST_RATIOS:
            self.fail(f"takes at most {MOST_RATIOS} aspect_ratio")
        ratios = [1.0]
        for ratio in self.options.aspect_ratio:
            if not ratio > 0:
                self.fail(f"aspect_ratio {ratio:g} must be positive")
            if all(abs(ratio - known) >= 1e-6 for known in ratios):
                ratios.append(ratio)
                if self.options.flip:
                    ratios.append(1 / ratio)
        return tuple(ratios)

    def _variances(self) -> tuple[float, ...]:
        variances = tuple(self.options.variance) or (0.1,)
        if len(variances) not in (1, 4) or not all(value > 0 for value in variances):
            self.fail(f"needs one variance or four, all positive; they are {list(variances)}")
        return variances

    def _pair(self, both: str, one: str, two: str) -> tuple[Any, Any] | None:
        """An option given once for both directions, or once for each."""
        options = self.options
        if options.HasField(one) or options.HasField(two):
            if options.HasField(both):
                self.fail(f"takes either {both} or {one} and {two}; not both")
            pair = getattr(options, one), getattr(options, two)
        elif options.HasField(both):
            pair = (getattr(options, both),) * 2
        else:
            return None
        if not min(pair) > 0:
            self.fail(f"{one} and {two} must be positive; they are {pair[0]:g} and {pair[1]:g}")
        return pair
