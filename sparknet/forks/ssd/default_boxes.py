"""What layers that lay default boxes over a feature map have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from sparknet.layers.layer import Layer, Plan, Shape, exactly
from sparknet.layers.legacy_shape import legacy_shape

MOST_BOXES = 100_000


class DefaultBox(NamedTuple):
    """In pixels; ``right`` and ``down`` lead from the middle of its place to its own."""

    width: float
    height: float
    right: float = 0.0
    down: float = 0.0


class DefaultBoxes(Layer):
    """The same boxes around every place of bottom 0, in units of the image, bottom 1."""

    field = "prior_box_param"
    bottoms = exactly(2)
    gradient = False
    constant = True
    copied = ("offset",)

    @abstractmethod
    def boxes(self, step_h: float) -> list[DefaultBox]:
        """Those of one place; a place is ``step_h`` pixels high."""

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        _, _, layer_h, layer_w = legacy_shape(self, bottoms[0], "the feature map")
        _, _, image_h, image_w = legacy_shape(self, bottoms[1], "the image")
        if not layer_h * layer_w:
            self.fail(f"the feature map is empty: {layer_h} x {layer_w}")
        img_h, img_w = self._pair("img_size", "img_h", "img_w") or (image_h, image_w)
        if not img_h * img_w:
            self.fail(f"the image is empty: {img_h} x {img_w}")
        steps = self._pair("step", "step_h", "step_w") or (img_h / layer_h, img_w / layer_w)
        boxes = self.boxes(steps[0])
        if not 0 < len(boxes) <= MOST_BOXES:
            self.fail(f"needs 1 to {MOST_BOXES} boxes for each place; there are {len(boxes)}")
        widths, heights, right, down = zip(*boxes, strict=True)
        values = {
            "widths": widths,
            "heights": heights,
            "shifts_x": right,
            "shifts_y": down,
            "variances": self._variances(),
            "clip": self.clips(),
            "img_h": img_h,
            "img_w": img_w,
            "step_h": steps[0],
            "step_w": steps[1],
            "layer_h": layer_h,
            "layer_w": layer_w,
        }
        return Plan(tops=((1, 2, layer_h * layer_w * len(boxes) * 4),), values=values)

    def clips(self) -> bool:
        return bool(self.options.clip)

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
