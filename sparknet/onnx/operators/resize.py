"""Images of other sizes."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np

from sparknet.onnx.netlist import Computed
from sparknet.onnx.sizes import Size, is_same
from sparknet.onnx.step import Outputs, Step, reads

_COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@reads("Upsample")
def upsample(step: Step) -> Outputs:
    scales = step.attribute("scales")
    if scales is None:
        scales = np.ravel(step.constant(1, "the scales")).tolist()
    return _resized(step, [float(one) for one in scales], None)


@reads("Resize")
def resize(step: Step) -> Outputs:
    scales = step.optional(1 if step.opset < 11 else 2, "the scales")
    sizes = step.sizes(3, "the sizes") if step.has(3) else None
    if step.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        step.refuse("it keeps the ratio of height and width")
    numbers = None if scales is None or not scales.size else np.ravel(scales).tolist()
    return _resized(step, numbers, sizes or None)


def _coordinates(step: Step) -> tuple[str, str]:
    """Return how pixels are placed, and how their places are rounded."""
    if step.op == "Upsample" or step.opset < 11:
        return "asymmetric", "floor"
    coordinates = step.attribute("coordinate_transformation_mode", "half_pixel")
    return coordinates, step.attribute("nearest_mode", "round_prefer_floor")


def _resized(step: Step, scales: list[float] | None, sizes: list[int] | None) -> Computed:
    x = step.blob()
    axes = step.attribute("axes")
    if axes is not None:
        scales, sizes = _all_axes(step, x, axes, scales, sizes)
    shape = x.shape
    if len(shape) == 3:  # one spatial axis
        image = step.reshape(x, (*shape[:2], 1, shape[2]), part="image")
        scales = None if scales is None else [*scales[:2], 1.0, scales[2]]
        sizes = None if sizes is None else [*sizes[:2], 1, sizes[2]]
        output = _image(step, image, scales, sizes, "resized")
        return step.reshape(output, (*shape[:2], output.shape[3]))
    if len(shape) == 5:
        return _volume(step, x, scales, sizes)
    if len(shape) != 4:
        step.refuse(f"it resizes {len(shape) - 2} spatial axes; a layer takes 2")
    return _image(step, x, scales, sizes, None)


def _volume(
    step: Step, x: Computed, scales: list[float] | None, sizes: list[int] | None
) -> Computed:
    """Return each image of a volume, and the volume as an image of one row per plane."""
    n, c, d, h, w = x.shape
    if (scales is not None and len(scales) != 5) or (sizes is not None and len(sizes) != 5):
        step.refuse("it needs a scale or a size for each of 5 axes")
    flat = step.reshape(x, (n, c * d, h, w), part="images")
    output = _image(
        step,
        flat,
        None if scales is None else [1.0, scales[1], *scales[3:]],
        None if sizes is None else [sizes[0], sizes[1] * d, *sizes[3:]],
        "wide",
    )
    high, wide = output.shape[2:]
    planes = step.reshape(output, (n, c, d, high * wide), part="planes")
    output = _image(
        step,
        planes,
        None if scales is None else [*scales[:3], 1.0],
        None if sizes is None else [*sizes[:3], high * wide],
        "deep",
    )
    return step.reshape(output, (n, c, output.shape[2], high, wide))


def _all_axes(
    step: Step, x: Computed, axes: list[int], scales: list[float] | None, sizes: list[int] | None
) -> tuple[list[float] | None, list[int] | None]:
    places = [step.axis(int(axis), len(x.shape)) for axis in axes]
    whole, factors = list(x.shape), [1.0] * len(x.shape)
    for place, axis in enumerate(places):
        if sizes is not None:
            whole[axis] = sizes[place]
        if scales is not None:
            factors[axis] = scales[place]
    return (None if scales is None else factors), (None if sizes is None else whole)


def _image(
    step: Step, x: Computed, scales: list[float] | None, sizes: list[int] | None, part: str | None
) -> Computed:
    mode, (coordinates, rounding) = step.attribute("mode", "nearest"), _coordinates(step)
    if mode not in ("nearest", "linear", "cubic"):
        step.refuse(f"its mode is '{mode}'")
    if coordinates not in _COORDINATES or rounding not in _ROUNDINGS:
        step.refuse(f"it places pixels by '{coordinates}' and '{rounding}'")
    if (scales is not None and len(scales) != 4) or (sizes is not None and len(sizes) != 4):
        step.refuse("it needs a scale or a size for each of 4 axes")
    if sizes is None:
        if scales is None:
            step.refuse("it has neither scales nor sizes")
        sizes = [floor(size * scale) for size, scale in zip(x.shape, scales, strict=True)]
    sizes = [*map(step.reading.net.size_of, sizes)]
    if tuple(sizes[:2]) != x.shape[:2]:
        step.refuse("it resizes more than height and width")
    if tuple(sizes) == x.shape:
        return x
    shrinks = any(size < own for size, own in zip(sizes, x.shape, strict=True))
    if step.attribute("antialias") and (shrinks or mode == "nearest"):
        step.refuse("it smooths before it shrinks (antialias), which no layer does")
    times = _times(step, x, sizes)
    if times is not None:
        wide = [own * more for own, more in zip(x.shape[2:], times, strict=True)]
        if all(map(is_same, wide, sizes[2:])):
            return _repeated(step, x, times, part)
        if coordinates != "asymmetric" or max(times) > 2:
            step.refuse("it resizes to sizes that are multiples for some images alone")
        output = _repeated(step, x, times, "repeated")  # of an odd size one less
        return step.sized(output, sizes, part=part)
    options, bottoms = _sizes(x, sizes, scales), [x]
    if any(isinstance(options.get(side), Size) for side in ("height", "width")):
        options, bottoms = {}, [x, _as_large(step, sizes)]
    if mode == "cubic":
        options["cubic_coeff_a"] = float(step.attribute("cubic_coeff_a", -0.75))
    if step.attribute("exclude_outside"):
        options["exclude_outside"] = True
    return step.layer(
        "Resize",
        bottoms,
        part=part,
        mode=mode.upper(),
        coordinates=coordinates.upper(),
        nearest_mode=rounding.upper(),
        **options,
    )


def _times(step: Step, x: Computed, sizes: list[int]) -> tuple[int, int] | None:
    """Return how often each pixel is repeated, if that is all."""
    whole = all(int(size) % own == 0 for size, own in zip(sizes[2:], x.shape[2:], strict=True))
    coordinates, rounding = _coordinates(step)
    repeats = (coordinates, rounding) == ("asymmetric", "floor") or (
        coordinates in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round")
    )
    if step.attribute("mode", "nearest") != "nearest" or not whole or not repeats:
        return None
    return int(sizes[2]) // int(x.shape[2]), int(sizes[3]) // int(x.shape[3])


def _sizes(x: Computed, sizes: list[int], scales: list[float] | None) -> dict[str, Any]:
    """Return the options of a layer; an open height or width is a multiple of the old one."""
    options: dict[str, Any] = {}
    for axis, side, scale in ((2, "height", "scale_h"), (3, "width", "scale_w")):
        size, own = sizes[axis], x.shape[axis]
        times = size // own if isinstance(size, Size) else size
        if not isinstance(size, Size) or isinstance(times, Size) or size != own * times:
            options[side] = size
        if scales is not None:
            options[scale] = scales[axis]
        elif side not in options:
            options[scale] = float(times)
    if scales is not None and any(
        isinstance(options.get(one), Size) for one in ("height", "width")
    ):
        options = {"scale_h": scales[2], "scale_w": scales[3]}
    return options


def _as_large(step: Step, sizes: list[int]) -> Computed:
    """Return a blob of images that are as high and wide, whatever the model leaves open."""
    blobs = [one for one in step.reading.net.blobs.values() if len(one.shape) == 4]
    alike = [one for one in blobs if all(map(is_same, one.shape[2:], sizes[2:]))]
    if not alike:
        step.refuse("it computes with a size that the model leaves open: give its shape")
    return step.plain(alike[0])


def _repeated(step: Step, x: Computed, times: tuple[int, int], part: str | None) -> Computed:
    """Repeated pixels: a deconvolution with ones, which stock Caffe has."""
    channels = x.shape[1]
    high, wide = times
    sizes: dict[str, Any] = {"kernel_h": high, "kernel_w": wide, "stride_h": high, "stride_w": wide}
    if high == wide:
        sizes = {"kernel_size": [high], "stride": [high]}
    return step.layer(
        "Deconvolution",
        [x],
        [np.ones((channels, 1, high, wide), np.float32)],
        part=part,
        num_output=channels,
        group=channels,
        bias_term=False,
        **sizes,
    )


_LOOKED_UP = {
    "linear": "BILINEAR",
    "bilinear": "BILINEAR",
    "nearest": "NEAREST",
    "cubic": "BICUBIC",
    "bicubic": "BICUBIC",
}
"""Modes of GridSample, as opset 16 and opset 20 call them."""


@reads("GridSample")
def grid_sample(step: Step) -> Outputs:
    mode = step.attribute("mode", "linear")
    padding = step.attribute("padding_mode", "zeros")
    if mode not in _LOOKED_UP or padding not in ("zeros", "border", "reflection"):
        step.refuse(f"it looks up by '{mode}' and '{padding}'")
    image, grid = step.blob(0), step.blob(1)
    if len(image.shape) != 4:
        step.refuse(f"it looks up along {len(image.shape) - 2} axes; a layer takes 2")
    return step.layer(
        "GridSample",
        [image, grid],
        mode=_LOOKED_UP[mode],
        padding_mode=padding.upper(),
        align_corners=bool(step.attribute("align_corners", 0)),
    )
