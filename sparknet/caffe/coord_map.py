"""Maps the coordinates of one blob to those of another (Caffe: python/caffe/coord_map.py).

A map is (axis, scale, shift): the first spatial axis, minus the channel axis, and the scale and
shift that take a coordinate of the first blob to the second.  The identity is (None, 1, 0)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.caffe.net_spec import Function, Top
from sparknet.caffe.net_spec import layers as L
from sparknet.errors import SpecError

Map = tuple[Any, Any, Any]

IDENTITY: Map = (None, 1, 0)

PASS_THROUGH_LAYERS = [
    "AbsVal",
    "BatchNorm",
    "Bias",
    "BNLL",
    "Clip",
    "Dropout",
    "Eltwise",
    "ELU",
    "Log",
    "LRN",
    "Exp",
    "MVN",
    "Power",
    "ReLU",
    "PReLU",
    "Scale",
    "Sigmoid",
    "Split",
    "Swish",
    "TanH",
    "Threshold",
]

_BY_AXIS = {"pad_h", "pad_w", "kernel_h", "kernel_w", "stride_h", "stride_w"}


class UndefinedMapException(SpecError):
    """A layer of this type has no map."""


class AxisMismatchException(SpecError):
    """Two maps count their axes differently."""


class NoCommonBlobError(SpecError, RuntimeError):
    """Two blobs are not connected by layers that have maps."""


class CropError(SpecError, AssertionError):
    """A crop that is not possible between its blobs."""


def conv_params(fn: Function) -> tuple[Any, Any, Any, Any]:
    """Axis, stride, extent of the kernel and padding of a layer with windows."""
    options = fn.params.get("pooling_param" if fn.type_name == "Pooling" else "convolution_param")
    options = {**fn.params, **(options or {})}
    if fields := sorted(_BY_AXIS & set(options)):
        raise CropError(
            f"a {fn.type_name} layer with '{fields[0]}': cropping reads kernel_size only"
        )
    if "kernel_size" not in options:
        raise CropError(f"a {fn.type_name} layer without kernel_size cannot be mapped")
    extent = (_vector(options["kernel_size"]) - 1) * _vector(options.get("dilation", 1)) + 1
    stride = _vector(options.get("stride", 1))
    if (stride <= 0).any():
        raise CropError(f"a {fn.type_name} layer with stride {options['stride']} cannot be mapped")
    return options.get("axis", 1), stride, extent, _vector(options.get("pad", 0))


def crop_params(fn: Function) -> tuple[int, Any]:
    """Axis and offset of a Crop layer."""
    options = fn.params.get("crop_param", fn.params)
    return options.get("axis", 2), _vector(options.get("offset", 0))


def _vector(value: Any) -> Any:
    return np.array(value, ndmin=1)


def coord_map(fn: Function) -> Map:
    """Return the map from a layer's bottom to its top."""
    if fn.type_name in ("Convolution", "Pooling", "Im2col"):
        axis, stride, extent, pad = conv_params(fn)
        return axis, 1 / stride, (pad - (extent - 1) / 2) / stride
    if fn.type_name == "Deconvolution":
        axis, stride, extent, pad = conv_params(fn)
        return axis, stride, (extent - 1) / 2 - pad
    if fn.type_name in PASS_THROUGH_LAYERS:
        return IDENTITY
    if fn.type_name == "Crop":
        axis, offset = crop_params(fn)
        return axis - 1, 1, -offset
    raise UndefinedMapException(f"a {fn.type_name} layer has no coordinate map")


def compose(base_map: Map, next_map: Map) -> Map:
    """`next_map`, then `base_map`."""
    axis1, scale1, shift1 = base_map
    axis2, scale2, shift2 = next_map
    if axis1 is not None and axis2 is not None and axis1 != axis2:
        raise AxisMismatchException(f"one layer's map is of axis {axis1}, another's of {axis2}")
    axis = axis2 if axis1 is None else axis1
    return axis, scale1 * scale2, scale1 * shift2 + shift1


def inverse(coord_map: Map) -> Map:
    """Return the map the other way."""
    axis, scale, shift = coord_map
    return axis, 1 / scale, -shift / scale


def coord_map_from_to(top_from: Top, top_to: Top) -> Map:
    """Return the map from one blob's coordinates to another's, by way of an ancestor of both."""
    from_maps = {top_from: IDENTITY}
    frontier = [top_from]
    while frontier:
        frontier += _step(frontier.pop(), from_maps)
    to_maps = {top_to: IDENTITY}
    frontier = [top_to]
    while frontier:
        top = frontier.pop()
        if top in from_maps:
            return compose(to_maps[top], inverse(from_maps[top]))
        frontier += _step(top, to_maps)
    raise NoCommonBlobError(
        f"no map between the tops of a {top_from.fn.type_name} and a {top_to.fn.type_name} layer: "
        "spatial layers do not connect them"
    )


def _step(top: Top, maps: dict[Top, Map]) -> list[Top]:
    """Maps of the bottoms that `top` is made from; only the first bottom of a Crop has one."""
    bottoms = top.fn.inputs[:1] if top.fn.type_name == "Crop" else top.fn.inputs
    try:
        composed = {bottom: compose(maps[top], coord_map(top.fn)) for bottom in bottoms}
    except UndefinedMapException:
        return []
    new = [bottom for bottom in composed if bottom not in maps]
    maps.update(composed)
    return new


def crop(top_from: Top, top_to: Top) -> Top:
    """Return a Crop layer that cuts `top_from` to the window of `top_to`."""
    axis, scale, shift = coord_map_from_to(top_from, top_to)
    scale, offset = _vector(scale), -_vector(shift)
    if not np.allclose(scale, 1, rtol=0, atol=1e-9):
        raise CropError(f"cannot crop between blobs of unlike scale ({scale.tolist()})")
    if (offset < -1e-9).any():
        raise CropError(f"cannot crop a negative width (offset {offset.tolist()})")
    whole = np.round(offset)
    if not np.allclose(whole, offset, rtol=0, atol=1e-9):
        raise CropError(f"cannot crop a fraction of a pixel (offset {offset.tolist()})")
    first = 2 if axis is None else axis + 1
    top: Top = L.Crop(
        top_from, top_to, crop_param={"axis": first, "offset": whole.astype(int).tolist()}
    )
    return top
