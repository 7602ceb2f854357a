"""GridSample: an image looked up at places that another blob holds."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text
from sparknet.layers.pooling import check_image


class GridSample(Layer):
    """top[n, c, i, j] = image n, channel c, at the place (x, y) = grid[n, i, j], as PyTorch's
    grid_sample and ONNX's GridSample have it.

    -1 and 1 are the outer edges of the first and the last pixel, or with ``align_corners`` their
    centres.  Beyond the image are zeros, the nearest pixel (BORDER), or the image mirrored
    (REFLECTION).
    """

    type = "GridSample"
    field = "grid_sample_param"
    bottoms = exactly(2)
    copied = ("mode", "padding_mode", "align_corners")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        image, grid = check_image(self, bottoms[0]), bottoms[1]
        if len(grid) != 4 or grid[0] != image[0] or grid[3] != 2:
            self.fail(
                f"the grid is {shape_text(grid)}: it needs {image[0]} x height x width x 2 for "
                f"images of {shape_text(image)}"
            )
        if not image[2] * image[3] and grid[1] * grid[2]:
            self.fail(f"an image of {image[2]} x {image[3]} has no pixel to look up")
        return Plan(((*image[:2], *grid[1:3]),))
