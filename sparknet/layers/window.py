"""The N-dimensional window of the convolution family: kernel, stride, pad, dilation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparknet.layers.layer import MAX_COUNT, Layer, Shape, shape_text


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
        """How far a dilated kernel reaches."""
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
    """The window of a ``convolution_param`` (Caffe: base_conv_layer.cpp, LayerSetUp)."""
    window = Window(
        _read(layer, "kernel_size", "kernel", axes, None),
        _read(layer, "stride", "stride", axes, 1),
        _read(layer, "pad", "pad", axes, 0),
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
    given = [name for name in names if _is_given(options, name)]
    if len({name.removesuffix("_h").removesuffix("_w") for name in given}) > 1:
        layer.fail(f"{' and '.join(given)} mean the same: give one of them")
    if "hole" in given or "hole_h" in given or "hole_w" in given:
        return _read(layer, "hole", "hole", axes, 1)
    return _read(layer, "dilation", "dilation", axes, 1)


def _is_given(options: Any, name: str) -> bool:
    repeated = name in ("dilation", "hole")
    return bool(getattr(options, name)) if repeated else bool(options.HasField(name))


def _read(layer: Layer, field: str, pair: str, axes: int, default: int | None) -> tuple[int, ...]:
    options = layer.options
    high, wide = f"{pair}_h", f"{pair}_w"
    if not (options.HasField(high) or options.HasField(wide)):
        return _repeated(layer, field, axes, default)
    if axes != 2:
        layer.fail(f"{high} and {wide} are for 2 spatial axes; the input has {axes}")
    if getattr(options, field):
        layer.fail(f"{field} is given, and so are {high} and {wide}: give one of them")
    return (getattr(options, high), getattr(options, wide))


def _repeated(layer: Layer, field: str, axes: int, default: int | None) -> tuple[int, ...]:
    """A field given once for all axes or once for each."""
    given = tuple(getattr(layer.options, field))
    if not given and default is not None:
        return (default,) * axes
    if len(given) == axes:
        return given
    if len(given) == 1:
        return given * axes
    return layer.fail(
        f"{field} must be given once, or once for each of the {axes} spatial axes; "
        f"it is given {len(given)} times"
    )


def check_outputs(layer: Layer, bottom: Shape, window: Window, sizes: Shape) -> None:
    """Refuse a window that does not fit."""
    if min(sizes, default=0) < 0:
        layer.fail(
            f"the kernel {shape_text(window.kernel)} with pad {shape_text(window.pad)} and "
            f"dilation {shape_text(window.dilation)} does not fit the input "
            f"{shape_text(bottom)}: the output would be {shape_text(sizes)}"
        )
