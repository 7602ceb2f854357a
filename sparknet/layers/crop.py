"""Crop: a part of a blob, as large as another; the offsets that line them up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sparknet.errors import LayerError, clean, warn
from sparknet.layers.layer import Layer, Plan, Shape, exactly, layer, shape_text
from sparknet.proto import ForkWarning, caffe_pb2

Map = tuple[Fraction, Fraction]
"""The scale and the shift that take a coordinate of one blob to another's."""

_SAME = (Fraction(1), Fraction(0))
_POINTWISE = frozenset(
    (
        *("AbsVal", "BNLL", "BN", "BatchNorm", "Bias", "Clip", "Concat", "Dropout", "ELU"),
        *("Eltwise", "Exp", "GELU", "HardSwish", "LRN", "Log", "LogSoftmax", "MVN", "Mish"),
        *("PReLU", "Power"),
        *("ReLU", "ReLU6", "Scale", "Sigmoid", "Slice", "Softmax", "SpatialDropout", "Split"),
        *("Swish", "TanH", "Threshold"),
    )
)
_DOWN = frozenset(("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution", "Im2col"))


_LARGEST = 2**64


class _NoMap(Exception):
    """Why two blobs have no map to each other."""


@dataclass(frozen=True)
class _Alignment:
    """Where a blob's rows and columns lie in those of a blob that it comes from."""

    origin: str
    rows: Map = _SAME
    columns: Map = _SAME
    hidden_by: str = ""
    """Why its layer hides where it lies in what comes before, if one does."""


def align_crops(net: caffe_pb2.NetParameter) -> None:
    """Write the offsets of aligned crops into a net of one state; warn of moved others."""
    if not any(_is_open(entry) for entry in net.layer):
        return
    places: dict[str, _Alignment] = {}
    for entry in net.layer:
        if _is_open(entry):
            _decide(entry, places)
        for top in entry.top:
            if top not in places:
                places[top] = _place(entry, top, places)


def _is_open(layer: caffe_pb2.LayerParameter) -> bool:
    return layer.type == "Crop" and len(layer.bottom) == 2 and not layer.crop_param.offset


def _decide(layer: caffe_pb2.LayerParameter, places: Mapping[str, _Alignment]) -> None:
    align = layer.crop_param.align
    try:
        offset = _offset(layer.bottom[0], layer.bottom[1], places)
    except _NoMap as error:
        if align:
            raise LayerError(layer.name, f"Crop: cannot be aligned: {error}") from error
        return
    if align:
        layer.crop_param.offset.extend(offset)
        layer.crop_param.ClearField("align")
    elif any(offset) and layer.crop_param.axis in (2, -2):
        offset_text = " and ".join(map(str, dict.fromkeys(offset)))
        warn(
            f"layer '{clean(layer.name)}' (Crop) has no offset and cuts at 0, as in BVLC's Caffe; "
            f"HED's and crfasrnn's aligns it, at {offset_text}: dialect=\"hed\" does so",
            ForkWarning,
        )


def _place(
    layer: caffe_pb2.LayerParameter, top: str, places: Mapping[str, _Alignment]
) -> _Alignment:
    """Find the map of a layer's top: as in HED's Caffe it comes from its first bottom alone."""
    if not layer.bottom or layer.bottom[0] not in places:
        return _Alignment(top)
    before = places[layer.bottom[0]]
    try:
        rows, columns = _own(layer)
        rows, columns = _after(rows, before.rows), _after(columns, before.columns)
    except _NoMap as error:
        return _Alignment(top, hidden_by=str(error))
    return _Alignment(before.origin, rows, columns, before.hidden_by)


def _offset(whole: str, target: str, places: Mapping[str, _Alignment]) -> tuple[int, int]:
    """Rows and columns to cut off so that a blob lies upon another."""
    one, two = (places.get(blob, _Alignment(blob)) for blob in (whole, target))
    if one.origin != two.origin:
        joined = f"no path joins '{clean(whole)}' and '{clean(target)}'"
        raise _NoMap(one.hidden_by or two.hidden_by or joined)
    return _axis_offset(one.rows, two.rows), _axis_offset(one.columns, two.columns)


def _after(later: Map, first: Map) -> Map:
    scale, shift = later[0] * first[0], later[0] * first[1] + later[1]
    parts = (scale.numerator, scale.denominator, shift.numerator, shift.denominator)
    if max(map(abs, parts)) > _LARGEST:
        raise _NoMap("the strides on its path have too large a product")
    return scale, shift


def _axis_offset(whole: Map, target: Map) -> int:
    scale = target[0] / whole[0]
    shift = target[1] - scale * whole[1]
    if scale != 1:
        raise _NoMap(f"one bottom's pixels are {float(scale):g} of the other's")
    if shift > 0 or shift.denominator != 1:
        raise _NoMap(f"the offset would be {float(-shift):g}")
    return int(-shift)


def _own(layer: caffe_pb2.LayerParameter) -> tuple[Map, Map]:
    """From a layer's first bottom to its tops."""
    rule = _RULES.get(layer.type)
    if rule is None and layer.type not in _POINTWISE:
        raise _NoMap(f"'{clean(layer.name)}' ({clean(layer.type)}) on its path has no coordinates")
    return rule(layer) if rule else (_SAME, _SAME)


def _window(options: object, axis: int) -> tuple[Fraction, Fraction]:
    """Return the stride of a window, and how far its middle lies from its bottom's first pixel."""
    kernel = _option(options, "kernel_size", ("kernel_h", "kernel_w"), axis, 0)
    stride = _option(options, "stride", ("stride_h", "stride_w"), axis, 1)
    pad = _option(options, "pad", ("pad_h", "pad_w"), axis, 0)
    dilation = _option(options, "dilation", ("dilation_h", "dilation_w"), axis, 1)
    dilation = max(dilation, _option(options, "hole", ("hole_h", "hole_w"), axis, 1))
    if kernel < 1 or stride < 1:
        raise _NoMap("a window on its path has no size")
    extent = (kernel - 1) * dilation
    return Fraction(stride), Fraction(extent, 2) - pad


def _option(options: object, name: str, pair: tuple[str, str], axis: int, default: int) -> int:
    if getattr(options, pair[axis], 0):
        return int(getattr(options, pair[axis]))
    sizes = getattr(options, name, ())
    values = [sizes] if isinstance(sizes, int) else list(sizes)
    if len(values) > 2:
        raise _NoMap("a window on its path has more than two axes")
    return int(values[min(axis, len(values) - 1)]) if values else default


def _down(layer: caffe_pb2.LayerParameter) -> tuple[Map, Map]:
    pooling = layer.type == "Pooling"
    if pooling and layer.pooling_param.global_pooling:
        raise _NoMap(f"'{clean(layer.name)}' on its path pools everything")
    options = layer.pooling_param if pooling else layer.convolution_param
    windows = (_window(options, 0), _window(options, 1))
    rows, columns = ((1 / stride, -shift / stride) for stride, shift in windows)
    return rows, columns


def _up(layer: caffe_pb2.LayerParameter) -> tuple[Map, Map]:
    return _window(layer.convolution_param, 0), _window(layer.convolution_param, 1)


def _crop(layer: caffe_pb2.LayerParameter) -> tuple[Map, Map]:
    offsets = list(layer.crop_param.offset) or [0]
    if layer.crop_param.axis not in (2, -2) or len(offsets) > 2:
        raise _NoMap(f"'{clean(layer.name)}' on its path crops other axes")
    return (Fraction(1), Fraction(-offsets[0])), (Fraction(1), Fraction(-offsets[-1]))


_RULES: Mapping[str, Callable[[caffe_pb2.LayerParameter], tuple[Map, Map]]] = {
    **dict.fromkeys((*_DOWN, "Pooling"), _down),
    "Deconvolution": _up,
    "Crop": _crop,
}


@layer("Crop", stock=True)
class Crop(Layer):
    """Caffe: crop_layer.cpp; without offset it cuts at 0.

    ``align`` is HED's, crfasrnn's and DeconvNet's (``dialect="hed"``): the offset lays the first
    bottom upon the second, as the layers that both come from have moved them."""

    field = "crop_param"
    bottoms = exactly(2)

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return axis >= self.axis(self.options.axis, bottom)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        whole, reference = bottoms
        axis = self.axis(self.options.axis, whole)
        cropped = len(whole) - axis
        numbers = tuple(self.options.offset)
        if len(numbers) > 1 and len(numbers) != cropped:
            self.fail(
                f"offset must be given once, or once for each of the {cropped} axes from "
                f"axis {axis} on; it is given {len(numbers)} times"
            )
        if len(reference) < len(whole):
            self.fail(
                f"the size bottom {shape_text(reference)} has fewer axes than {shape_text(whole)}"
            )
        offsets = numbers if len(numbers) > 1 else (numbers or (0,)) * cropped
        for index, offset in enumerate(offsets, axis):
            if whole[index] - offset < reference[index]:
                self.fail(
                    f"the crop of axis {index} is out of bounds: offset {offset} and size "
                    f"{reference[index]} in {whole[index]}"
                )
        top = (*whole[:axis], *reference[axis : len(whole)])
        return Plan((top,), values={"axis": axis, "offset": (0,) * axis + offsets})
