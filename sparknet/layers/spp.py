"""SPP: spatial pyramid pooling, levels of 1, 4, 16 … bins, one vector an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Layer, Plan, Shape, shape_text
from sparknet.layers.pooling import check_image, plan_pooling


class SPP(Layer):
    """Caffe: spp_layer.cpp.  A pyramid of one level gives 4 axes, a taller one gives 2."""

    type = "SPP"
    stock = True
    field = "spp_param"

    @property
    def draws(self) -> bool:
        return self.choice("pool") == "stochastic"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = check_image(self, bottoms[0])
        size = (bottom[2], bottom[3])
        height = self.options.pyramid_height
        if height < 1:
            self.fail(f"pyramid_height must be positive; it is {height}")
        if 0 in size:
            self.fail(f"the image must not be empty; the input is {shape_text(bottom)}")
        method = self.choice("pool")
        levels: list[dict[str, Any]] = []
        # A level with more bins than pixels is refused, which bounds this loop.
        for level in range(height):
            levels.append(self._level(size, method, 2**level))
        values = {"method": method, "pyramid_height": height, "levels": tuple(levels)}
        first = levels[0]["output"]
        if height == 1:
            return Plan(((*bottom[:2], *first),), values=values)
        bins = sum(level["output"][0] * level["output"][1] for level in levels)
        return Plan(((bottom[0], bottom[1] * bins),), values=values)

    def _level(self, size: tuple[int, int], method: str, bins: int) -> dict[str, Any]:
        kernel = (-(-size[0] // bins), -(-size[1] // bins))
        pad = (
            (kernel[0] * bins - size[0] + 1) // 2,
            (kernel[1] * bins - size[1] + 1) // 2,
        )
        outputs, values = plan_pooling(self, size, method, kernel, kernel, pad, "ceil")
        values["output"] = outputs
        return values
