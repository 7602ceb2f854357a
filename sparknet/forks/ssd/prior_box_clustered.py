"""PriorBoxClustered: default boxes of given sizes over a feature map (Intel's SSDs)."""

from __future__ import annotations

from sparknet.forks.ssd.default_boxes import DefaultBox, DefaultBoxes


class PriorBoxClustered(DefaultBoxes):
    """Boxes of each `width` and `height`, in pixels, around every place of bottom 0, in units of
    the image, bottom 1.

    Of the SSDs of Open Model Zoo; OpenVINO's operation of the same name defines it.
    Values: those of PriorBox.
    """

    type = "PriorBoxClustered"

    def boxes(self, step_h: float) -> list[DefaultBox]:
        widths, heights = self.options.width, self.options.height
        if len(widths) != len(heights) or not widths:
            self.fail(f"needs a height for each width; there are {len(widths)} and {len(heights)}")
        if not all(0 < size < float("inf") for size in (*widths, *heights)):
            self.fail("width and height must be positive")
        return [DefaultBox(*size) for size in zip(widths, heights, strict=True)]
