"""Images of another size: Resize, Interp, Upsample, GridSample."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite

from sparknet.layers.layer import (
    MAX_COUNT,
    Layer,
    Plan,
    Shape,
    between,
    exactly,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.layers.pooling import check_image


@layer("Resize")
class Resize(Layer):
    """By the rules of ONNX's Resize: nearest, linear or cubic (Keys, 1981) in both directions.

    Give height and width, or scale_h and scale_w; with both, the scales say where the new pixels
    lie.  A second bottom has the height and width of the top."""

    field = "resize_image_param"
    bottoms = between(1, 2)
    plain_options = ("mode", "coordinates", "nearest_mode", "cubic_coeff_a", "exclude_outside")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom, *others = (check_image(self, one) for one in bottoms)
        like = others[0] if others else (None,) * 4
        if others and any(map(self.options.HasField, ("height", "width"))):
            self.fail("the second bottom gives the size: give no height or width")
        sizes, scales = [], []
        for axis, name, ratio in ((2, "height", "scale_h"), (3, "width", "scale_w")):
            size, scale = self._axis(bottom[axis], like[axis], name, ratio)
            sizes.append(size)
            scales.append(scale)
        return Plan(((*bottom[:2], *sizes),), values={"scales": tuple(scales)})

    def _axis(self, size: int, like: int | None, name: str, ratio: str) -> tuple[int, float]:
        options = self.options
        new_size, scale = like or getattr(options, name), getattr(options, ratio)
        is_given = like is not None or options.HasField(name)
        if not is_given and not options.HasField(ratio):
            self.fail(f"give {name} or {ratio}")
        if options.HasField(ratio) and not (isfinite(scale) and scale > 0):
            self.fail(f"{ratio} must be positive; it is {scale:g}")
        if not is_given:
            new_size = min(floor(size * scale), MAX_COUNT + 1)
        if not 0 < new_size <= MAX_COUNT or size < 1:
            self.fail(f"an image of {name} {size} cannot become one of {name} {new_size}")
        return new_size, float(scale) if options.HasField(ratio) else int(new_size) / int(size)


_SIZES = ("height", "width", "zoom_factor", "shrink_factor")


@layer("Interp")
class Interp(Layer):
    """interp_layer.cpp of DeepLab and PSPNet.  A second bottom gives the size."""

    field = "interp_param"
    bottoms = between(1, 2)
    plain_options = ("pad_beg", "pad_end")

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
        size = self._size_of_options(bottoms) or self._scaled(inner)
        if min(size) < 1:
            self.fail(f"height and width must be positive; they are {shape_text(size)}")
        return Plan(((num, channels, *size),))

    def _size_of_options(self, bottoms: Sequence[Shape]) -> tuple[int, int] | None:
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
        """Scale a size; corner pixels stay corners: n pixels zoomed by z give (n - 1) z + 1."""
        options = self.options
        if not any(map(options.HasField, ("zoom_factor", "shrink_factor"))):
            self.fail("give height and width, a zoom_factor or a shrink_factor")
        zoom, shrink = options.zoom_factor, options.shrink_factor
        if zoom < 1 or shrink < 1:
            self.fail(f"factors must be positive; zoom is {zoom}, shrink is {shrink}")
        high, wide = ((size - 1) // shrink * zoom + 1 for size in inner)
        return (high, wide)


@layer("Upsample")
class Upsample(Layer):
    """upsample_layer.cpp: SegNet's with a mask as second bottom, YOLO's without.

    YOLO's repeats each pixel ``scale`` times; its default of 1 means SegNet's 2 here."""

    field = "upsample_param"
    bottoms = between(1, 2)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = check_image(self, bottoms[0])
        if len(bottoms) == 1:
            return self._repeat(bottom)
        if bottoms[1] != bottom:
            self.fail(
                f"the mask {shape_text(bottoms[1])} must have the input's shape "
                f"{shape_text(bottom)}"
            )
        size = self._size(bottom)
        return Plan(((*bottom[:2], *size),), values={"method": "unpool"})

    def _repeat(self, bottom: Shape) -> Plan:
        scale = self.options.scale
        if scale < 1:
            self.fail(f"scale must be positive; it is {scale}")
        top = (*bottom[:2], bottom[2] * scale, bottom[3] * scale)
        return Plan((top,), values={"method": "repeat", "scale": scale})

    def _size(self, bottom: Shape) -> tuple[int, int]:
        options = self.options
        if options.HasField("upsample_h") and options.HasField("upsample_w"):
            size = (options.upsample_h, options.upsample_w)
            if min(size) < 2:
                self.fail(f"upsample_h and upsample_w must be above 1; they are {size}")
            return size
        scales = self._scales()
        compensate = (options.pad_out_h, options.pad_out_w)
        if any(pad and scale != 2 for pad, scale in zip(compensate, scales, strict=True)):
            self.fail(f"pad_out_h and pad_out_w go with a scale of 2; it is {shape_text(scales)}")
        return (
            bottom[2] * scales[0] - int(compensate[0]),
            bottom[3] * scales[1] - int(compensate[1]),
        )

    def _scales(self) -> tuple[int, int]:
        options = self.options
        apart = options.HasField("scale_h"), options.HasField("scale_w")
        if any(apart) and (options.HasField("scale") or not all(apart)):
            self.fail("give upsample_h and upsample_w, or scale, or scale_h and scale_w")
        scales = (
            (options.scale_h, options.scale_w) if all(apart) else (options.scale, options.scale)
        )
        if min(scales) < 2:
            self.fail(f"scale must be above 1; it is {shape_text(scales)}")
        return scales


@layer("GridSample")
class GridSample(Layer):
    """top[n, c, i, j] = image n, channel c, at the place (x, y) = grid[n, i, j], as PyTorch's
    grid_sample and ONNX's GridSample have it.

    -1 and 1 are the outer edges of the first and the last pixel, or with ``align_corners`` their
    centres.  Beyond the image are zeros, the nearest pixel (BORDER), or the image mirrored
    (REFLECTION)."""

    field = "grid_sample_param"
    bottoms = exactly(2)
    plain_options = ("mode", "padding_mode", "align_corners")

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
