"""Activations: layers that map each value to one value (Caffe: neuron_layer.hpp)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from sparknet.layers.fillers import constant, learnable
from sparknet.layers.layer import TRAIN, Layer, Plan, Shape, count, layer, shape_text


class Neuron(Layer):
    """One bottom, one top of the same shape; in place unless the type forbids it."""

    works_in_place = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return Plan(tops=(bottoms[0],), values=self.constants())

    def constants(self) -> dict[str, Any]:
        """Return the resolved options; they do not depend on shapes."""
        return {}


@layer("AbsVal", stock=True)
class AbsVal(Neuron):
    """y = |x|; Caffe refuses it in place (absval_layer.cpp)."""

    works_in_place = False


@layer("BNLL", stock=True)
class BNLL(Neuron):
    """y = log(1 + exp(x)) (Caffe: bnll_layer.cpp)."""


@layer("Clip", stock=True)
class Clip(Neuron):
    """y = max(min, min(x, max)) (Caffe: clip_layer.cpp)."""

    field = "clip_param"
    plain_options = ("min", "max")


@layer("ELU", stock=True)
class ELU(Neuron):
    """y = x above zero, alpha * (exp(x) - 1) below (Caffe: elu_layer.cpp)."""

    field = "elu_param"
    plain_options = ("alpha",)


def log_of_base(layer: Layer, base: float) -> float:
    """ln(base), where -1 stands for e (Caffe: exp_layer.cpp, log_layer.cpp)."""
    if base == -1:
        return 1.0
    if not 0 < base < math.inf:
        layer.fail(f"base {base:g} must be positive and finite, or -1 for e")
    return math.log(base)


@layer("Exp", stock=True)
class Exp(Neuron):
    """y = base ^ (shift + scale * x) (Caffe: exp_layer.cpp)."""

    field = "exp_param"

    def constants(self) -> dict[str, Any]:
        options = self.options
        log_base = log_of_base(self, options.base)
        try:
            outer_scale = math.exp(log_base * options.shift)
        except OverflowError:
            self.fail(f"base {options.base:g} to the power shift {options.shift:g} is too large")
        return {"inner_scale": log_base * options.scale, "outer_scale": outer_scale}


@layer("GELU")
class GELU(Neuron):
    """y = x * Phi(x), exactly or by tanh (Hendrycks and Gimpel, 2016)."""

    field = "gelu_param"
    plain_options = ("approximate",)


@layer("HardSwish")
class HardSwish(Neuron):
    """y = x * min(1, max(0, x / 6 + 1 / 2)) (Howard et al., 2019), as MobileNetV3 has it."""


@layer("Log", stock=True)
class Log(Neuron):
    """y = log_base(shift + scale * x) (Caffe: log_layer.cpp)."""

    field = "log_param"
    plain_options = ("scale", "shift")

    def constants(self) -> dict[str, Any]:
        options = self.options
        log_base = log_of_base(self, options.base)
        if log_base == 0:
            self.fail("base 1 has no logarithm")
        return {"base_scale": 1 / log_base, "diff_scale": options.scale / log_base}


@layer("Math")
class Math(Neuron):
    """Sine or cosine; or the next whole number: below (FLOOR), above (CEIL), the nearest, halves to
    the even one (ROUND), or towards zero (TRUNC), whose gradients are zero."""

    field = "math_param"
    plain_options = ("function",)

    def constants(self) -> dict[str, Any]:
        if not self.options.HasField("function"):
            self.fail("function must be given: FLOOR, CEIL, ROUND, TRUNC, SIN or COS")
        return {}


@layer("Mish")
class Mish(Neuron):
    """y = x * tanh(log(1 + exp x)) (Misra, 2019), as YOLOv4's nets have it."""


@layer("Power", stock=True)
class Power(Neuron):
    """y = (shift + scale * x) ^ power (Caffe: power_layer.cpp)."""

    field = "power_param"
    plain_options = ("power", "scale", "shift")

    def constants(self) -> dict[str, Any]:
        options = self.options
        return {"diff_scale": options.power * options.scale}


@layer("ReLU", stock=True)
class ReLU(Neuron):
    """y = x above zero, negative_slope * x below (Caffe: relu_layer.cpp)."""

    field = "relu_param"
    accepts_int8 = True
    plain_options = ("negative_slope",)


@layer("PReLU", stock=True)
class PReLU(Layer):
    """y = x above zero, slope * x below, one slope per channel or one for all.

    Caffe: prelu_layer.cpp.  Blob 0: the slopes, (channels,) or scalar."""

    field = "prelu_param"
    works_in_place = True
    plain_options = ("channel_shared",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        shape = bottoms[0]
        if len(shape) < 2:
            self.fail(f"the bottom needs at least 2 axes; its shape is {shape_text(shape)}")
        options = self.options
        slopes: Shape = () if options.channel_shared else (shape[1],)
        filler = options.filler if options.HasField("filler") else constant(0.25)
        values = {"outer": shape[0], "channels": shape[1], "inner": count(shape[2:])}
        return Plan(tops=(shape,), params=(learnable(self, slopes, filler),), values=values)


@layer("ReLU6")
class ReLU6(Neuron):
    """y = min(max(x, 0), 6); of the MobileNet forks."""


@layer("Sigmoid", stock=True)
class Sigmoid(Neuron):
    """y = 1 / (1 + exp(-x)) (Caffe: sigmoid_layer.cpp)."""

    score_function = "sigmoid"
    field = "sigmoid_param"


@layer("Swish", stock=True)
class Swish(Neuron):
    """y = x * sigmoid(beta * x) (Caffe: swish_layer.cpp)."""

    field = "swish_param"
    plain_options = ("beta",)


@layer("TanH", stock=True)
class TanH(Neuron):
    """y = tanh(x) (Caffe: tanh_layer.cpp)."""

    field = "tanh_param"


@layer("Threshold", stock=True)
class Threshold(Neuron):
    """y = x > threshold; no gradient (Caffe: threshold_layer.cpp)."""

    field = "threshold_param"
    has_gradient = False
    plain_options = ("threshold",)


@layer("Dropout", stock=True)
class Dropout(Neuron):
    """Drops a share of the values in TRAIN and scales the rest; copies in TEST.

    Caffe: dropout_layer.cpp.  ``scale_train: false`` (R-FCN) leaves the rest as it is and scales
    by 1 - ratio in TEST; ``sample_weights_test`` (SegNet) drops in TEST as in TRAIN."""

    field = "dropout_param"

    @property
    def draws(self) -> bool:
        return self.phase == TRAIN and bool(self.options.dropout_ratio)

    def constants(self) -> dict[str, Any]:
        ratio = self.options.dropout_ratio
        if not 0 <= ratio < 1:
            self.fail(f"dropout_ratio {ratio:g} must be at least 0 and less than 1")
        drops = self.phase == TRAIN or self.options.sample_weights_test
        factor = 1 / (1 - ratio) if drops else 1.0
        if not self.options.scale_train:
            factor = 1.0 if drops else 1 - ratio
        return {"ratio": ratio, "scale": factor, "train": drops}


@layer("SpatialDropout")
class SpatialDropout(Dropout):
    """Dropout of channels, not of values: each channel of an image stays or goes as a whole.

    spatial_dropout_layer.cpp of ENet's fork; the options are Dropout's."""

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        if len(bottoms[0]) < 2:
            self.fail(f"takes at least 2 axes; the input is {shape_text(bottoms[0])}")
        return super().infer(bottoms)


def around(shape: Shape, axis: int) -> dict[str, int]:
    """Return a shape seen from one axis: values before it, on it and after it."""
    return {
        "axis": axis,
        "outer": count(shape[:axis]),
        "channels": shape[axis],
        "inner": count(shape[axis + 1 :]),
    }


@layer("Softmax", stock=True)
class Softmax(Layer):
    """Values along one axis turned into probabilities (Caffe: softmax_layer.cpp)."""

    score_function: ClassVar[str | None] = "softmax"
    field = "softmax_param"
    works_in_place = True

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return self.axis(self.options.axis, bottom) == axis

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis = self.axis(self.options.axis, bottoms[0])
        return Plan(tops=(bottoms[0],), values=around(bottoms[0], axis))


@layer("LogSoftmax")
class LogSoftmax(Softmax):
    """y = x - max(x) - log(sum(exp(x - max(x)))) along the axis, of which Caffe's Softmax and Log
    make -inf where x is more than 87 below the largest value."""

    score_function = None
