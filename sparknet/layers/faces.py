"""Nets that tell faces apart: layers of SphereFace and happynear's fork."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.layers.fillers import learnable
from sparknet.layers.host import Blobs, Host, HostNode, class_numbers, rows_of
from sparknet.layers.layer import (
    TRAIN,
    Layer,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    shape_text,
)
from sparknet.layers.losses import check_one_label_each
from sparknet.layers.pooling import check_image


@layer("Flip")
class Flip(Layer):
    """flip_layer.cpp of happynear's fork."""

    field = "flip_param"
    plain_options = ("flip_width", "flip_height")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = check_image(self, bottoms[0])
        return Plan((bottom,))


Array = np.ndarray[Any, Any]
TINY = 1e-12


class MarginInnerProductHost(Host):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.passes = int(node.plan.values["iteration"])
        self.share = 0.0

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        self.passes += 1
        with np.errstate(all="ignore"):
            growth = np.float64(1 + values["gamma"] * self.passes)
            share = values["base"] * growth ** -values["power"]
        self.share = float(max(np.nan_to_num(share), values["lambda_min"]))
        weights = self.params[0].data
        weights /= np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), TINY)
        labels = class_numbers(self.node, bottoms[1].data, len(weights))
        vectors = rows_of(bottoms[0].data)
        products = vectors @ weights.T
        rows = np.arange(len(labels))
        if values["times"] > 1:
            length = np.linalg.norm(vectors, axis=1)
            cos = products[rows, labels] / np.maximum(length, TINY)
            psi, _ = folded(cos, values["times"])
            mixed = (self.share * products[rows, labels] + length * psi) / (1 + self.share)
            products[rows, labels] = mixed
        tops[0].data[...] = products
        if len(tops) > 1:
            tops[1].data[...] = self.share

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        gradient, weights = tops[0].diff, self.params[0].data
        labels = bottoms[1].data.ravel().astype(np.int64)
        vectors = rows_of(bottoms[0].data)
        self.params[0].diff[...] += gradient.T @ vectors
        if not propagate_down[0]:
            return
        slope, times = gradient @ weights, self.node.plan.values["times"]
        if times > 1:
            rows = weights[labels]
            own = gradient[np.arange(len(labels)), labels][:, None] / (1 + self.share)
            length = np.maximum(np.linalg.norm(vectors, axis=1), TINY)
            cos = (vectors * rows).sum(1) / length
            psi, steep = folded(cos, times)
            by_row, by_vector = steep, (psi - cos * steep) / length
            size = np.maximum(np.hypot(by_row, by_vector), TINY)
            bent = (by_row / size)[:, None] * rows + (by_vector / size)[:, None] * vectors
            slope += own * (bent - rows)
        bottoms[0].diff[...] = slope.reshape(bottoms[0].shape)


def folded(cos: Array, times: int) -> tuple[Array, Array]:
    """(-1)^k cos(times t) - 2 k, where k counts the turns of t, and its slope by cos(t)."""
    sign = np.sign(cos)
    if times == 2:
        return 2 * sign * cos**2 - 1, 4 * sign * cos
    if times == 3:
        fold = np.sign(np.abs(cos) - 0.5)
        shift = sign * (1 + fold) - 2
        return fold * (4 * cos**3 - 3 * cos) + shift, fold * (12 * cos**2 - 3)
    fold = sign * np.sign(2 * cos**2 - 1)
    shift = 2 * sign + fold - 3
    return fold * (8 * cos**4 - 8 * cos**2 + 1) + shift, fold * (32 * cos**3 - 16 * cos)


@layer("MarginInnerProduct")
class MarginInnerProduct(Layer):
    """margin_inner_product_layer.cpp (Liu et al., SphereFace: Deep Hypersphere Embedding for Face
    Recognition); bottoms: vectors and class numbers.

    Products |x| cos(t) with rows of length 1, which each forward pass makes so in the blob itself;
    that of the label's row is (lambda |x| cos(t) + |x| psi(t)) / (1 + lambda), where psi is
    cos(m t) made monotonous, m from SINGLE to QUADRUPLE.  lambda is base (1 + gamma n)^-power in
    pass n, at least lambda_min; a second top shows it.  As there, the gradient of |x| psi(t) by x
    is scaled so that its coefficients of the row and of x have a norm of 1, and rows learn as by
    plain products."""

    host = MarginInnerProductHost
    field = "margin_inner_product_param"
    bottoms = exactly(2)
    tops = between(1, 2)
    other_bottoms = "classes"
    plain_options = ("num_output", "base", "gamma", "power", "lambda_min", "iteration")
    bottoms_without_gradient = (1,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.num_output < 1:
            self.fail(f"num_output must be positive; it is {options.num_output}")
        if len(bottoms[0]) < 2 or self.axis(options.axis, bottoms[0]) != 1:
            self.fail(f"takes N vectors, with axis 1; axis is {options.axis}")
        check_one_label_each(self, bottoms[1])
        if count(bottoms[1]) != bottoms[0][0]:
            self.fail(f"needs {bottoms[0][0]} class numbers; there are {count(bottoms[1])}")
        weight = (options.num_output, count(bottoms[0][1:]))
        values = {"times": options.type + 1}
        tops: tuple[Shape, ...] = ((bottoms[0][0], options.num_output), (1,))
        params = (learnable(self, weight, options.weight_filler),)
        return Plan(tops[: len(self.parameter.top)], params, values)


class LabelSpecificAddHost(Host):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.passes = int(node.plan.values["iteration"])

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        out = tops[0].data
        out[...] = bottoms[0].data
        bias = self._bias()
        if len(tops) > 1:
            tops[1].data[...] = bias
        if not values["train"]:
            return
        rows = rows_of(out)
        labels = class_numbers(self.node, bottoms[1].data, rows.shape[1])
        places = np.arange(len(rows))
        own = rows[places, labels]
        rows[places, labels] = np.where(own > -bias, own + bias, own)
        out[...] = rows.reshape(out.shape)

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        if propagate_down[0]:
            bottoms[0].diff[...] = tops[0].diff

    def _bias(self) -> float:
        values = self.node.plan.values
        if values["base"] is None or not values["train"]:
            return float(np.float32(values["bias"]))
        with np.errstate(all="ignore"):
            grown = (1 + values["gamma"] * self.passes) ** values["power"] - 1
        self.passes += 1
        return float(np.float32(min(max(values["base"] + grown, values["least"]), values["most"])))


@layer("LabelSpecificAdd")
class LabelSpecificAdd(Layer):
    """label_specific_add.cpp of happynear's fork (Wang et al., Additive Margin Softmax for Face
    Verification); bottoms: scores (N x C) and class numbers.

    In TRAIN the label's score grows by bias where it is above -bias; in TEST nothing changes.
    With bias_base the bias of pass n is bias_base + (1 + bias_gamma n)^bias_power - 1, from
    bias_min to bias_max.  A second top shows it."""

    host = LabelSpecificAddHost
    field = "label_specific_add_param"
    bottoms = exactly(2)
    tops = between(1, 2)
    works_in_place = True
    other_bottoms = "classes"
    plain_options = ("bias", "iteration")
    bottoms_without_gradient = (1,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if len(bottoms[0]) < 2 or count(bottoms[1]) != bottoms[0][0]:
            self.fail(
                "takes N x C scores and N class numbers; they are "
                f"{shape_text(bottoms[0])} and {shape_text(bottoms[1])}"
            )
        values = {
            "base": options.bias_base if options.HasField("bias_base") else None,
            "gamma": options.bias_gamma,
            "power": options.bias_power,
            "least": options.bias_min,
            "most": options.bias_max,
            "train": self.phase == TRAIN,
        }
        tops: tuple[Shape, ...] = (bottoms[0], (1,))
        return Plan(tops[: len(self.parameter.top)], values=values)


class ChannelScaleHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        x = bottoms[0].data
        scales = self.node.plan.values["forward"]
        tops[0].data[...] = x * _spread(bottoms) if scales else x

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        values, gradient = self.node.plan.values, tops[0].diff
        if propagate_down[0]:
            bottoms[0].diff[...] = gradient * _spread(bottoms) if values["feature"] else gradient
        if propagate_down[1]:
            slope = (bottoms[0].data * gradient).sum(1) if values["scale"] else np.zeros(())
            bottoms[1].diff[...] = np.broadcast_to(slope, _places(bottoms)).reshape(
                bottoms[1].shape
            )


def _places(bottoms: Blobs) -> tuple[int, ...]:
    shape = tuple(bottoms[0].shape)
    return (shape[0], *shape[2:])


def _spread(bottoms: Blobs) -> Any:
    """Return the scales with an axis for the channels."""
    return np.expand_dims(bottoms[1].data.reshape(_places(bottoms)), 1)


@layer("ChannelScale")
class ChannelScale(Layer):
    """channel_scale_layer.cpp of happynear's fork; bottoms: x (N x C …) and a scale for each place
    (as many values as x without its channels).

    do_forward, do_backward_feature and do_backward_scale switch the product off in one direction.
    global_scale is not supported."""

    host = ChannelScaleHost
    field = "channel_scale_param"
    bottoms = exactly(2)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.global_scale:
            self.fail("global_scale is not supported: leave it out")
        x, scale = bottoms
        places = (*x[:1], *x[2:])
        if len(x) < 2 or not scale or scale[0] != x[0] or count(scale) != count(places):
            self.fail(
                f"x {shape_text(x)} needs {shape_text(places)} scales; they are {shape_text(scale)}"
            )
        values = {
            "forward": options.do_forward,
            "feature": options.do_backward_feature,
            "scale": options.do_backward_scale,
        }
        return Plan((x,), values=values)
