"""PriorBox: default boxes over a feature map (SSD, TextBoxes, FaceBoxes)."""

from __future__ import annotations

from collections.abc import Iterator

from sparknet.forks.ssd.default_boxes import DefaultBox, DefaultBoxes

MOST_RATIOS = 1000
DENSE = {32: (4, 8), 64: (2, 16)}
"""FaceBoxes: how many boxes of a size lie side by side, and how far apart."""


class PriorBox(DefaultBoxes):
    """Boxes around every place of bottom 0, in units of the image, bottom 1.

    Of SSD (prior_box_layer.cpp): a square of each min_size, one between it and max_size, and one
    for each aspect_ratio.  ``dialect="textboxes"`` lays all of them again half a place lower and
    clips unless `clip` is false; ``dialect="faceboxes"`` lays 16 of size 32 and 4 of size 64
    beside each other, all squares of min_size one pixel smaller.
    Values: widths, heights, shifts_x, shifts_y (of the boxes of a place, in pixels), variances
    (one or four), clip, offset, img_h, img_w, step_h, step_w (resolved), layer_h, layer_w.
    """

    type = "PriorBox"

    @property
    def _arrangement(self) -> str:
        return self.choice("arrangement")

    def clips(self) -> bool:
        if self._arrangement == "two_rows" and not self.options.HasField("clip"):
            return True
        return super().clips()

    def boxes(self, step_h: float) -> list[DefaultBox]:
        self._check_sizes()
        found = list(self._sized())
        if self._arrangement == "two_rows":
            lower = [box._replace(down=step_h / 2) for box in found]
            found = [box for pair in zip(found, lower, strict=True) for box in pair]
        return found

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
            if all(abs(ratio - known) >= 1e-6 for known in ratios):
                ratios.append(ratio)
                if self.options.flip:
                    ratios.append(1 / ratio)
        return tuple(ratios[1:])
