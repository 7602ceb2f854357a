"""Convolution and Deconvolution over any number of axes, with groups and dilation; Im2col."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sparknet.layers.fillers import weights
from sparknet.layers.layer import (
    MAX_COUNT,
    Arity,
    Layer,
    Plan,
    Shape,
    at_least,
    count,
    layer,
    shape_text,
)


@dataclass(frozen=True)
class Window:
    """One entry per spatial axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]

    def values(self) -> dict[str, tuple[int, ...]]:
        return {
            "kernel": self.kernel,
            "stride": self.stride,
            "pad": self.pad,
            "dilation": self.dilation,
        }

    def extent(self) -> tuple[int, ...]:
        """Return how far a dilated kernel reaches."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def shrink(self, sizes: Sequence[int]) -> Shape:
        """Convolution's output sizes; the division truncates (Caffe: conv_layer.cpp)."""
        return tuple(
            truncated(size + 2 * pad - extent, stride) + 1
            for size, pad, extent, stride in self._along(sizes)
        )

    def grow(self, sizes: Sequence[int]) -> Shape:
        """Deconvolution's output sizes (Caffe: deconv_layer.cpp)."""
        return tuple(
            stride * (size - 1) + extent - 2 * pad
            for size, pad, extent, stride in self._along(sizes)
        )

    def _along(self, sizes: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
        return zip(sizes, self.pad, self.extent(), self.stride, strict=True)


def truncated(numerator: int, denominator: int) -> int:
    """C's integer division, for a positive denominator."""
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient


def read_window(layer: Layer, axes: int) -> Window:
    """Return the window of a ``convolution_param`` (Caffe: base_conv_layer.cpp, LayerSetUp)."""
    window = Window(
        _sizes(layer, "kernel_size", "kernel", axes, None),
        _sizes(layer, "stride", "stride", axes, 1),
        _sizes(layer, "pad", "pad", axes, 0),
        _dilation(layer, axes),
    )
    for name, sizes in window.values().items():
        least = 0 if name == "pad" else 1
        for size in sizes:
            if not least <= size <= MAX_COUNT:
                layer.fail(f"{name} must be at least {least} and below 2^31; it is {size}")
    return window


def _dilation(layer: Layer, axes: int) -> tuple[int, ...]:
    """``dilation``, or what forks call it: DeepLab ``hole``, TSN ``dilation_h`` and ``_w``."""
    options = layer.options
    names = ("dilation", "hole", "hole_h", "hole_w", "dilation_h", "dilation_w")
    names_set = [name for name in names if _has_size(options, name)]
    if len({name.removesuffix("_h").removesuffix("_w") for name in names_set}) > 1:
        layer.fail(f"{' and '.join(names_set)} mean the same: give one of them")
    if "hole" in names_set or "hole_h" in names_set or "hole_w" in names_set:
        return _sizes(layer, "hole", "hole", axes, 1)
    return _sizes(layer, "dilation", "dilation", axes, 1)


def _has_size(options: Any, name: str) -> bool:
    repeated = name in ("dilation", "hole")
    return bool(getattr(options, name)) if repeated else bool(options.HasField(name))


def _sizes(layer: Layer, field: str, pair: str, axes: int, default: int | None) -> tuple[int, ...]:
    options = layer.options
    high, wide = f"{pair}_h", f"{pair}_w"
    if not (options.HasField(high) or options.HasField(wide)):
        return _size_per_axis(layer, field, axes, default)
    if axes != 2:
        layer.fail(f"{high} and {wide} are for 2 spatial axes; the input has {axes}")
    if getattr(options, field):
        layer.fail(f"{field} is given, and so are {high} and {wide}: give one of them")
    return (getattr(options, high), getattr(options, wide))


def _size_per_axis(layer: Layer, field: str, axes: int, default: int | None) -> tuple[int, ...]:
    """Read a field that is set once for all axes or once for each."""
    sizes = tuple(getattr(layer.options, field))
    if not sizes and default is not None:
        return (default,) * axes
    if len(sizes) == axes:
        return sizes
    if len(sizes) == 1:
        return sizes * axes
    return layer.fail(
        f"{field} must be given once, or once for each of the {axes} spatial axes; "
        f"it is given {len(sizes)} times"
    )


def check_outputs(layer: Layer, bottom: Shape, window: Window, sizes: Shape) -> None:
    """Refuse a window that does not fit."""
    if min(sizes, default=0) < 0:
        layer.fail(
            f"the kernel {shape_text(window.kernel)} with pad {shape_text(window.pad)} and "
            f"dilation {shape_text(window.dilation)} does not fit the input "
            f"{shape_text(bottom)}: the output would be {shape_text(sizes)}"
        )


@layer("Convolution", stock=True)
class Convolution(Layer):
    """Convolution over any number of spatial axes, with groups and dilation.

    Caffe: base_conv_layer.cpp, conv_layer.cpp."""

    field = "convolution_param"
    bottoms = at_least(1)
    tops = Arity(1, None, like_bottoms=True)
    by_channel: ClassVar[bool] = False
    """Every channel is a group."""

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        groups = bottoms[0][self.axis(self.options.axis, bottoms[0])] if self.by_channel else None
        return plan_convolution(self, bottoms, groups=groups)

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        return window_products(plan, plan.tops)

    def multiplies_int8(self, plan: Plan) -> bool:
        return plan.values["axis"] == 1 and len(plan.tops[0]) in (3, 4)

    def multiplies_narrow(self, plan: Plan) -> bool:
        return not plan.values["depthwise"]


def window_products(plan: Plan, values: Sequence[Shape]) -> int:
    """Count the products of a pass: each of ``values`` meets a whole window of its group."""
    return sum(map(count, values)) * count(plan.params[0].shape[1:])


def plan_convolution(
    layer: Layer, bottoms: Sequence[Shape], reverse: bool = False, groups: int | None = None
) -> Plan:
    """Return the plan of Convolution, or with ``reverse`` of Deconvolution."""
    options = layer.options
    bottom = bottoms[0]
    axis = layer.axis(options.axis, bottom)
    outer, channels, sizes = bottom[:axis], bottom[axis], bottom[axis + 1 :]
    window = read_window(layer, len(sizes))
    outputs = options.num_output
    group = options.group if groups is None else groups
    _check_channels(layer, channels, outputs, group)
    for index, other in enumerate(bottoms):
        if other != bottom:
            layer.fail(
                f"all bottoms must have one shape; bottom 0 is {shape_text(bottom)}, "
                f"bottom {index} is {shape_text(other)}"
            )
    top_sizes = window.grow(sizes) if reverse else window.shrink(sizes)
    check_outputs(layer, bottom, window, top_sizes)
    if 0 in bottom and 0 not in (*outer, *top_sizes):
        layer.fail(f"has nothing to read, as its bottom is {shape_text(bottom)}, but an output")
    rows, columns = (channels, outputs) if reverse else (outputs, channels)
    params = weights(layer, (rows, columns // group, *window.kernel), (outputs,))
    values = {
        "axis": axis,
        "num_output": outputs,
        "group": group,
        "depthwise": 1 < group == channels == outputs,
        "bias_term": options.bias_term,
        **window.values(),
    }
    return Plan(((*outer, outputs, *top_sizes),) * len(bottoms), params, values)


def _check_channels(layer: Layer, channels: int, outputs: int, group: int) -> None:
    if outputs < 1:
        layer.fail(f"num_output must be positive; it is {outputs}")
    if group < 1:
        layer.fail(f"group must be positive; it is {group}")
    if channels % group:
        layer.fail(f"the {channels} input channels do not divide into {group} groups")
    if outputs % group:
        layer.fail(f"num_output {outputs} does not divide into {group} groups")


@layer("Deconvolution", stock=True)
class Deconvolution(Layer):
    """The transpose of Convolution (Caffe: base_conv_layer.cpp, deconv_layer.cpp).

    Weights are (in, out / group, kernel)."""

    field = "convolution_param"
    bottoms = at_least(1)
    tops = Arity(1, None, like_bottoms=True)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return plan_convolution(self, bottoms, reverse=True)

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        return window_products(plan, bottoms)

    def multiplies_narrow(self, plan: Plan) -> bool:
        return not plan.values["depthwise"]


@layer("DepthwiseConvolution")
class DepthwiseConvolution(Convolution):
    """depthwise_conv_layer.cpp of yonghenglh6: on the CPU it is Convolution, ``group`` included."""


@layer("ConvolutionDepthwise")
class ConvolutionDepthwise(Convolution):
    """conv_dw_layer.cpp of farmingyard: Convolution, in which every channel is a group of its own
    whatever ``group`` says."""

    by_channel = True


@layer("Im2col", stock=True)
class Im2col(Layer):
    """The patches under a sliding window, laid out as channels (Caffe: im2col_layer.cpp)."""

    field = "convolution_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        axis = self.axis(self.options.axis, bottom)
        sizes = bottom[axis + 1 :]
        if not sizes:
            self.fail(f"needs a spatial axis after axis {axis} of the shape {shape_text(bottom)}")
        window = read_window(self, len(sizes))
        top_sizes = window.shrink(sizes)
        check_outputs(self, bottom, window, top_sizes)
        channels = bottom[axis] * count(window.kernel)
        values = {"axis": axis, **window.values()}
        return Plan(((*bottom[:axis], channels, *top_sizes),), values=values)
