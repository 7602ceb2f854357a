"""PriorBox and PriorBoxClustered: default boxes over a feature map (SSD, OpenVINO)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sparknet.layers.layer import Layer, Plan, Shape, exactly, layer, legacy_shape

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
    has_gradient = False
    is_constant = True
    plain_options = ("offset",)

    @abstractmethod
    def boxes(self, step_h: float) -> list[DefaultBox]:
        """Return the boxes of one place; a place is ``step_h`` pixels high."""

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
        """Read an option that is set once for both directions, or once for each."""
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


MOST_RATIOS = 1000
DENSE = {32: (4, 8), 64: (2, 16)}
"""FaceBoxes: how many boxes of a size lie side by side, and how far apart."""


@layer("PriorBox")
class PriorBox(DefaultBoxes):
    """Boxes around every place of bottom 0, in units of the image, bottom 1.

    Of SSD (prior_box_layer.cpp): a square of each min_size, one between it and max_size, and one
    for each aspect_ratio.  ``dialect="textboxes"`` lays all of them again half a place lower and
    clips unless `clip` is false; ``dialect="faceboxes"`` lays 16 of size 32 and 4 of size 64
    beside each other, all squares of min_size one pixel smaller."""

    @property
    def _arrangement(self) -> str:
        return self.choice("arrangement")

    def clips(self) -> bool:
        if self._arrangement == "two_rows" and not self.options.HasField("clip"):
            return True
        return super().clips()

    def boxes(self, step_h: float) -> list[DefaultBox]:
        self._check_sizes()
        boxes = list(self._sized())
        if self._arrangement == "two_rows":
            lower = [box._replace(down=step_h / 2) for box in boxes]
            boxes = [box for pair in zip(boxes, lower, strict=True) for box in pair]
        return boxes

    def _sized(self) -> Iterator[DefaultBox]:
        """SSD and FaceBoxes take sizes as whole numbers."""
        whole = self._arrangement != "two_rows"
        ratios = self._ratios()
        for number, least in enumerate(self.options.min_size):
            small = int(least) if whole else least
            yield from self._squares(small)
            if self.options.max_size:
                most = self.options.max_size[number]
                middle = (small * (int(most) if whole else most)) ** 0.5
                yield DefaultBox(middle, middle)
            for ratio in ratios:
                yield DefaultBox(small * ratio**0.5, small / ratio**0.5)

    def _squares(self, size: float) -> Iterator[DefaultBox]:
        if self._arrangement != "dense":
            yield DefaultBox(size, size)
            return
        many, apart = DENSE.get(int(size), (1, 0))
        shifts = [float(apart * (place - many // 2)) for place in range(many)]
        for down in shifts:
            for right in shifts:
                yield DefaultBox(size - 1, size - 1, right, down)

    def _check_sizes(self) -> None:
        least, most = self.options.min_size, self.options.max_size
        if not least or not all(0 < size < 2**31 for size in least):
            self.fail(f"needs min_size, all positive; it is {list(least)}")
        if most and len(most) != len(least):
            self.fail(f"needs as many max_size as min_size; there are {len(most)} and {len(least)}")
        for small, large in zip(least, most, strict=False):
            if not small < large < 2**31:
                self.fail(f"max_size {large:g} must be greater than min_size {small:g}")

    def _ratios(self) -> tuple[float, ...]:
        """Without 1, with the flipped ones."""
        if len(self.options.aspect_ratio) > MOST_RATIOS:
            self.fail(f"takes at most {MOST_RATIOS} aspect_ratio")
        ratios = [1.0]
        for ratio in self.options.aspect_ratio:
            if not ratio > 0:
                self.fail(f"aspect_ratio {ratio:g} must be positive")
            if all(abs(ratio - other) >= 1e-6 for other in ratios):
                ratios.append(ratio)
                if self.options.flip:
                    ratios.append(1 / ratio)
        return tuple(ratios[1:])


@layer("PriorBoxClustered")
class PriorBoxClustered(DefaultBoxes):
    """Boxes of each `width` and `height`, in pixels, around every place of bottom 0, in units of
    the image, bottom 1.

    Of the SSDs of Open Model Zoo; OpenVINO's operation of the same name defines it."""

    def boxes(self, step_h: float) -> list[DefaultBox]:
        widths, heights = self.options.width, self.options.height
        if len(widths) != len(heights) or not widths:
            self.fail(f"needs a height for each width; there are {len(widths)} and {len(heights)}")
        if not all(0 < size < float("inf") for size in (*widths, *heights)):
            self.fail("width and height must be positive")
        return [DefaultBox(*size) for size in zip(widths, heights, strict=True)]
