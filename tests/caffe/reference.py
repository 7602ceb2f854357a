"""A net in plain numpy, slow and obvious: loops over places, double precision, one tape.

Every layer is a function from its options, inputs and parameters to its
outputs and a function that pulls gradients back.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

Arrays = list[Any]
Pull = Callable[[Arrays], tuple[Arrays, Arrays]]
"""Gradients of the tops → gradients of the bottoms, and of the parameters."""
Made = tuple[Arrays, Pull]


class Kink(Exception):
    """Values so close to a corner of a function that rounding could choose the other side."""


def clear_of(distance, least=1e-3):
    if np.size(distance) and np.min(np.abs(distance)) < least:
        raise Kink


# -- layers ----------------------------------------------------------------------------------


def elementwise(y, slope):
    return [y], lambda dys: ([dys[0] * slope], [])


def relu(layer, xs, params, train):
    clear_of(xs[0])
    slope = np.where(xs[0] > 0, 1, layer.relu_param.negative_slope)
    return elementwise(xs[0] * slope, slope)


def sigmoid(layer, xs, params, train):
    y = 1 / (1 + np.exp(-xs[0]))
    return elementwise(y, y * (1 - y))


def tanh(layer, xs, params, train):
    y = np.tanh(xs[0])
    return elementwise(y, 1 - y * y)


def inner_product(layer, xs, params, train):
    o, (x,), w = layer.inner_product_param, xs, params[0]
    rows = x.reshape(len(x), -1)
    y = rows @ (w if o.transpose else w.T) + (params[1] if o.bias_term else 0)

    def pull(dys):
        (dy,) = dys
        dx = (dy @ (w.T if o.transpose else w)).reshape(x.shape)
        dw = rows.T @ dy if o.transpose else dy.T @ rows
        return [dx], [dw, dy.sum(0)][: 1 + o.bias_term]

    return [y], pull


def eltwise(layer, xs, params, train):
    o = layer.eltwise_param
    if o.operation == o.SUM:
        factors = list(o.coeff) or [1.0] * len(xs)
        y = sum(factor * x for factor, x in zip(factors, xs, strict=True))
        return [y], lambda dys: ([factor * dys[0] for factor in factors], [])
    if o.operation == o.PROD:
        others = [np.prod([x for j, x in enumerate(xs) if j != i], axis=0) for i in range(len(xs))]
        return [np.prod(xs, axis=0)], lambda dys: ([dys[0] * other for other in others], [])
    ranked = np.sort(xs, axis=0)
    clear_of(ranked[-1] - ranked[-2])
    y = ranked[-1]
    return [y], lambda dys: ([dys[0] * (x == y) for x in xs], [])


def concat(layer, xs, params, train):
    axis = layer.concat_param.axis
    ends = np.cumsum([x.shape[axis] for x in xs])[:-1]
    return [np.concatenate(xs, axis)], lambda dys: (np.split(dys[0], ends, axis), [])


def slice_(layer, xs, params, train):
    o = layer.slice_param
    parts = list(o.slice_point) or len(layer.top)
    tops = np.split(xs[0], parts, o.axis)
    return list(tops), lambda dys: ([np.concatenate(dys, o.axis)], [])


def scale(layer, xs, params, train):
    (x,), bias = xs, layer.scale_param.bias_term
    across = (1, -1) + (1,) * (x.ndim - 2)
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    gamma = params[0].reshape(across)
    y = x * gamma + (params[1].reshape(across) if bias else 0)

    def pull(dys):
        dparams = [(dys[0] * x).sum(others), dys[0].sum(others)]
        return [dys[0] * gamma], dparams[: 1 + bias]

    return [y], pull


def batch_norm(layer, xs, params, train):
    """Changes its parameters where it works with the batch's own statistics."""
    o, (x,) = layer.batch_norm_param, xs
    across = (1, -1) + (1,) * (x.ndim - 2)
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    stored = o.use_global_stats if o.HasField("use_global_stats") else not train
    count = x.size // x.shape[1]
    if stored:
        mean, variance = params[0] / params[2], params[1] / params[2]
    else:
        mean, variance = x.mean(others), x.var(others)
        keep = o.moving_average_fraction
        unbiased = variance * (count / (count - 1) if count > 1 else 1)
        for blob, value in zip(params, (mean, unbiased, 1), strict=True):
            blob[...] = blob * keep + value
    deviation = np.sqrt(variance + o.eps).reshape(across)
    y = (x - mean.reshape(across)) / deviation

    def pull(dys):
        (dy,) = dys
        if not stored:
            centered = dy - dy.mean(others).reshape(across)
            dy = centered - y * (dys[0] * y).mean(others).reshape(across)
        return [dy / deviation], [np.zeros_like(blob) for blob in params]

    return [y], pull


def lrn(layer, xs, params, train):
    """y = x / base ** beta, base = k + alpha * mean of squares over a neighbourhood."""
    o, (x,) = layer.lrn_param, xs
    size, half = o.local_size, o.local_size // 2
    base = np.zeros_like(x)
    members = []
    if o.norm_region == o.ACROSS_CHANNELS:
        k = o.k
        for c in range(x.shape[1]):
            near = slice(max(c - half, 0), min(c + half + 1, x.shape[1]))
            members.append(((slice(None), c), (slice(None), near), size))
    else:
        # The average is AVE pooling's, and k is taken for 1.
        k = 1
        height, width = x.shape[2:]
        for r, c in product(range(height), range(width)):
            r1, c1 = min(r + half + 1, height + half), min(c + half + 1, width + half)
            share = (r1 - (r - half)) * (c1 - (c - half))
            area = (..., slice(max(r - half, 0), r1), slice(max(c - half, 0), c1))
            members.append(((..., r, c), area, share))
    axes = 1 if o.norm_region == o.ACROSS_CHANNELS else (2, 3)
    for place, window, share in members:
        base[place] = k + o.alpha / share * (x[window] ** 2).sum(axes)
    power = base**-o.beta

    def pull(dys):
        dx = dys[0] * power
        inner = dys[0] * x * -o.beta * power / base
        for place, window, share in members:
            dx[window] += np.expand_dims(inner[place], axes) * o.alpha / share * 2 * x[window]
        return [dx], []

    return [x * power], pull


def probabilities(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def softmax(layer, xs, params, train):
    y = probabilities(xs[0])

    def pull(dys):
        return [y * (dys[0] - (dys[0] * y).sum(1, keepdims=True))], []

    return [y], pull


def softmax_loss(layer, xs, params, train):
    """Averaged over the labels that are not ignored; no average over none."""
    (x, labels), y = xs, probabilities(xs[0])
    o = layer.loss_param
    kept = labels != o.ignore_label if o.HasField("ignore_label") else labels == labels
    hot = np.moveaxis(np.eye(x.shape[1])[np.where(kept, labels, 0).astype(int)], -1, 1)
    chosen, count = hot * kept[:, None], max(1, kept.sum())
    loss = -(np.log(y) * chosen).sum() / count
    slope = (y * kept[:, None] - chosen) / count
    return [loss], lambda dys: ([dys[0] * slope, np.zeros_like(labels)], [])


def euclidean_loss(layer, xs, params, train):
    gap = (xs[0] - xs[1]) / len(xs[0])
    loss = (gap * (xs[0] - xs[1])).sum() / 2
    return [loss], lambda dys: ([dys[0] * gap, -dys[0] * gap], [])


LAYERS = {
    "BatchNorm": batch_norm,
    "Concat": concat,
    "Eltwise": eltwise,
    "EuclideanLoss": euclidean_loss,
    "InnerProduct": inner_product,
    "LRN": lrn,
    "ReLU": relu,
    "Scale": scale,
    "Sigmoid": sigmoid,
    "Slice": slice_,
    "Softmax": softmax,
    "SoftmaxWithLoss": softmax_loss,
    "TanH": tanh,
}


# -- nets ------------------------------------------------------------------------------------


class Reference:
    """A net's passes.  Parameters of one name are one array; blobs keep every version."""

    def __init__(self, net, train, inputs, more):
        self.kinds = {**LAYERS, **more}
        self.layers = [layer for layer in net.layer if layer.type != "Input"]
        self.train = train
        self.values = [np.array(value, np.float64) for value in inputs.values()]
        self.at = {name: number for number, name in enumerate(inputs)}
        self.inputs = dict(self.at)
        self.tape = []

    def forward(self, params):
        for layer in self.layers:
            bottoms = [self.at[name] for name in layer.bottom]
            own = list(params.get(layer.name, ()))
            xs = [self.values[number] for number in bottoms]
            ys, pull = self.kinds[layer.type](layer, xs, own, self.train)
            tops = list(range(len(self.values), len(self.values) + len(ys)))
            self.values += ys
            self.at.update(zip(layer.top, tops, strict=True))
            self.tape.append((layer, bottoms, tops, own, pull))

    def blob(self, name):
        return self.values[self.at[name]]

    def backward(self, top_diffs):
        """Gradients of the inputs by name, and of the parameters by the identity of their array."""
        diffs = [np.zeros_like(value) for value in self.values]
        for name, diff in top_diffs.items():
            diffs[self.at[name]] = np.asarray(diff, np.float64)
        of_params = {}
        for _, bottoms, tops, own, pull in reversed(self.tape):
            dxs, dparams = pull([diffs[number] for number in tops])
            for number, dx in zip(bottoms, dxs, strict=True):
                diffs[number] = diffs[number] + dx
            for array, diff in zip(own, dparams, strict=True):
                of_params[id(array)] = of_params.get(id(array), 0) + diff
        return {name: diffs[number] for name, number in self.inputs.items()}, of_params
