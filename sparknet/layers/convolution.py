"""Convolution over any number of spatial axes, with groups and dilation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sparknet.layers.layer import Layer, Plan, Shape, at_least, count, shape_text
from sparknet.layers.learnable import weights
from sparknet.layers.window import check_outputs, read_window


class Convolution(Layer):
    """Caffe: base_conv_layer.cpp, conv_layer.cpp."""

    type = "Convolution"
    stock = True
    field = "convolution_param"
    bottoms = at_least(1)
    tops = at_least(1)
    equal_counts = True
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
    """The products of a pass: each of ``values`` is multiplied by a whole window of its group."""
    return sum(map(count, values)) * count(plan.params[0].shape[1:])


def plan_convolution(
    layer: Layer, bottoms: Sequence[Shape], reverse: bool = False, groups: int | None = None
) -> Plan:
    """The plan of Convolution, or with ``reverse`` of Deconvolution.

    ``groups`` replaces the option ``group``.
    """
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
