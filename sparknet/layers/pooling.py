"""Pooling and SPP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import MAX_COUNT, Layer, Plan, Shape, between, count, layer, shape_text

Pair = tuple[int, int]


@layer("Pooling", stock=True)
class Pooling(Layer):
    """The maximum, the average or a random pick of each window of an image.

    Caffe: pooling_layer.cpp.  A second top of MAX pooling holds the winners' positions.

    Forks round the output size down in three ways: ``round_mode: FLOOR``, ``ceil_mode: false``
    and ``torch_pooling: true``."""

    field = "pooling_param"
    tops = between(1, 2)

    accepts_int8 = True

    def passes_int8(self, plan: Plan) -> bool:
        return self.choice("pool") == "max" and len(plan.tops) == 1

    @property
    def draws(self) -> bool:
        return self.choice("pool") == "stochastic"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        method = self.choice("pool")
        tops = len(self.parameter.top)
        if tops > 1 and method != "max":
            self.fail(f"a second top, the mask, is for MAX pooling; this is {method.upper()}")
        if options.global_pooling and any(map(options.HasField, _KERNEL)):
            self.fail("global_pooling takes its kernel from the input: give no kernel size")
        bottom = check_image(self, bottoms[0])
        size = (bottom[2], bottom[3])
        kernel = size if options.global_pooling else _pair(self, *_KERNEL, required=True)
        stride, pad = _pair(self, *_STRIDE), _pair(self, *_PAD)
        if options.global_pooling and (pad != (0, 0) or stride != (1, 1)):
            self.fail("global_pooling goes with pad 0 and stride 1 only")
        outputs, values = plan_pooling(self, size, method, kernel, stride, pad, _round_mode(self))
        values["global_pooling"] = options.global_pooling
        return Plan(((*bottom[:2], *outputs),) * max(tops, 1), values=values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        return window_work(plan, bottoms[0][2:])


def window_work(plan: Plan, sizes: Shape) -> int:
    """Count a window for each value of the top, as far as it lies in the padded image."""
    windows = zip(plan.values["kernel"], plan.values["pad"], sizes, strict=True)
    return count(plan.tops[0]) * count([min(k, 2 * pad + size) for k, pad, size in windows])


def _round_mode(layer: Layer) -> str:
    """Return how the output size is rounded: "ceil", unless one of three fields says "floor"."""
    options = layer.options
    floors = {
        "round_mode": layer.choice("round_mode") == "floor",
        "ceil_mode": not options.ceil_mode,
        "torch_pooling": options.torch_pooling,
    }
    rules = [floors[name] for name in floors if options.HasField(name)]
    if rules and any(rules) != all(rules):
        layer.fail("round_mode, ceil_mode and torch_pooling contradict each other: give one")
    return "floor" if any(rules) else "ceil"


_KERNEL = ("kernel_size", "kernel_h", "kernel_w")
_STRIDE = ("stride", "stride_h", "stride_w")
_PAD = ("pad", "pad_h", "pad_w")


def check_image(layer: Layer, shape: Shape) -> Shape:
    if len(shape) != 4:
        layer.fail(f"takes 4 axes (num, channels, height, width); the input is {shape_text(shape)}")
    return shape


def _pair(layer: Layer, both: str, high: str, wide: str, required: bool = False) -> Pair:
    """Read a size that is set once, or for height and width apart."""
    options = layer.options
    apart = options.HasField(high), options.HasField(wide)
    if required and not options.HasField(both) and not any(apart):
        layer.fail(f"{both}, or {high} and {wide}, must be given")
    if any(apart) and (options.HasField(both) or not all(apart)):
        layer.fail(f"give {both}, or {high} and {wide}; not a mixture of them")
    if all(apart):
        return (getattr(options, high), getattr(options, wide))
    value = getattr(options, both)
    return (value, value)


def plan_pooling(
    layer: Layer, size: Pair, method: str, kernel: Pair, stride: Pair, pad: Pair, round_mode: str
) -> tuple[Pair, dict[str, Any]]:
    """Output sizes and kernel values of one pooling; SPP makes several."""
    for what, least, pair in (("kernel", 1, kernel), ("stride", 1, stride), ("pad", 0, pad)):
        if not all(least <= value <= MAX_COUNT for value in pair):
            layer.fail(f"{what} must be at least {least} and below 2^31; it is {shape_text(pair)}")
    if any(pad):
        if method == "stochastic":
            layer.fail(f"STOCHASTIC pooling takes no padding; pad is {shape_text(pad)}")
        if pad[0] >= kernel[0] or pad[1] >= kernel[1]:
            layer.fail(
                f"pad {shape_text(pad)} must be smaller than the kernel {shape_text(kernel)}"
            )
    outputs = tuple(
        window_count(*sizes, round_mode, any(pad))
        for sizes in zip(size, kernel, stride, pad, strict=True)
    )
    if min(outputs) < 0:
        layer.fail(
            f"the kernel {shape_text(kernel)} with pad {shape_text(pad)} does not fit the "
            f"input {shape_text(size)}: the output would be {shape_text(outputs)}"
        )
    values = {
        "method": method,
        "kernel": kernel,
        "stride": stride,
        "pad": pad,
        "round_mode": round_mode,
    }
    return (outputs[0], outputs[1]), values


def window_count(size: int, kernel: int, stride: int, pad: int, mode: str, padded: bool) -> int:
    room = size + 2 * pad - kernel
    # A kernel larger than the input has one window if a stride reaches it: C++ rounds towards zero.
    outputs = (room // stride if mode == "floor" and room >= 0 else -(-room // stride)) + 1
    # With padding the last window must not start beyond the input.
    if padded and (outputs - 1) * stride >= size + pad:
        outputs -= 1
    return outputs


@layer("SPP", stock=True)
class SPP(Layer):
    """Spatial pyramid pooling, levels of 1, 4, 16 … bins, one vector an image.

    Caffe: spp_layer.cpp.  A pyramid of one level gives 4 axes, a taller one gives 2."""

    field = "spp_param"

    @property
    def draws(self) -> bool:
        return self.choice("pool") == "stochastic"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = check_image(self, bottoms[0])
        size = (bottom[2], bottom[3])
        height = self.options.pyramid_height
        if height < 1:
            self.fail(f"pyramid_height must be positive; it is {height}")
        if 0 in size:
            self.fail(f"the image must not be empty; the input is {shape_text(bottom)}")
        method = self.choice("pool")
        levels: list[dict[str, Any]] = []
        # A level with more bins than pixels is refused, which bounds this loop.
        for level in range(height):
            levels.append(self._level(size, method, 2**level))
        values = {"method": method, "pyramid_height": height, "levels": tuple(levels)}
        first = levels[0]["output"]
        if height == 1:
            return Plan(((*bottom[:2], *first),), values=values)
        bins = sum(level["output"][0] * level["output"][1] for level in levels)
        return Plan(((bottom[0], bottom[1] * bins),), values=values)

    def _level(self, size: tuple[int, int], method: str, bins: int) -> dict[str, Any]:
        kernel = (-(-size[0] // bins), -(-size[1] // bins))
        pad = (
            (kernel[0] * bins - size[0] + 1) // 2,
            (kernel[1] * bins - size[1] + 1) // 2,
        )
        outputs, values = plan_pooling(self, size, method, kernel, kernel, pad, "ceil")
        values["output"] = outputs
        return values
