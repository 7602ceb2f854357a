"""A net in plain numpy, slow and obvious: loops over places, double precision, one tape.

Every layer is a function from its options, inputs and parameters to its
outputs and a function that pulls gradients back.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

Arrays = list[Any]
Pull = Callable[[Arrays], tuple[Arrays, Arrays]]
"""Gradients of the tops → gradients of the bottoms, and of the parameters."""
Made = tuple[Arrays, Pull]


class Kink(Exception):
    """Values so close to a corner of a function that rounding could choose the other side."""


def clear_of(distance: Any, least: float = 1e-3) -> None:
    if np.size(distance) and np.min(np.abs(distance)) < least:
        raise Kink


# -- layers ----------------------------------------------------------------------------------


def windows(size: int, kernel: int, stride: int, pad: int, count: int, dilation: int = 1) -> Any:
    """For every output place: pairs of (place in the window, place in the input)."""
    for out in range(count):
        places = [(k, out * stride - pad + k * dilation) for k in range(kernel)]
        yield out, [(k, i) for k, i in places if 0 <= i < size]


def pair(values: Sequence[int], one: int, two: int, default: int) -> tuple[int, int]:
    """A size given once, once for each axis, or as _h and _w."""
    if one or two:
        return one, two
    values = list(values) or [default]
    return values[0], values[-1]


def convolution(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    o, (x,), w = layer.convolution_param, xs, params[0]
    (kh, kw), (sh, sw) = pair(o.kernel_size, o.kernel_h, o.kernel_w, 0), pair(o.stride, 0, 0, 1)
    (ph, pw), (dh, dw) = pair(o.pad, 0, 0, 0), pair(o.dilation, 0, 0, 1)
    rows = (x.shape[2] + 2 * ph - (dh * (kh - 1) + 1)) // sh + 1
    columns = (x.shape[3] + 2 * pw - (dw * (kw - 1) + 1)) // sw + 1
    y = np.zeros((len(x), o.num_output, rows, columns))
    taps = []
    for (r, vertical), (c, horizontal) in product(
        windows(x.shape[2], kh, sh, ph, rows, dh), windows(x.shape[3], kw, sw, pw, columns, dw)
    ):
        taps += [(r, c, *v, *h) for v, h in product(vertical, horizontal)]
    groups = []
    for g in range(o.group):
        outs, ins = o.num_output // o.group, x.shape[1] // o.group
        groups.append((slice(g * outs, (g + 1) * outs), slice(g * ins, (g + 1) * ins)))
    for outs, ins in groups:
        for r, c, i, row, j, column in taps:
            y[:, outs, r, c] += x[:, ins, row, column] @ w[outs, :, i, j].T
    if o.bias_term:
        y += params[1][:, None, None]

    def pull(dys: Arrays) -> tuple[Arrays, Arrays]:
        dx, dw = np.zeros_like(x), np.zeros_like(w)
        for outs, ins in groups:
            for r, c, i, row, j, column in taps:
                dy = dys[0][:, outs, r, c]
                dx[:, ins, row, column] += dy @ w[outs, :, i, j]
                dw[outs, :, i, j] += dy.T @ x[:, ins, row, column]
        return [dx], [dw, dys[0].sum((0, 2, 3))][: 1 + o.bias_term]

    return [y], pull


def pool_windows(o: Any, height: int, width: int) -> Any:
    """Output place → the window, clipped, and the number of values that AVE divides by."""
    k, s, p = o.kernel_size, o.stride, o.pad

    def out(size: int) -> int:
        count = int(-((size + 2 * p - k) // -s) + 1)
        return count - 1 if p and (count - 1) * s >= size + p else count

    for r, c in product(range(out(height)), range(out(width))):
        r0, c0 = r * s - p, c * s - p
        r1, c1 = min(r0 + k, height + p), min(c0 + k, width + p)
        window = slice(max(r0, 0), min(r1, height)), slice(max(c0, 0), min(c1, width))
        yield (r, c), window, (r1 - r0) * (c1 - c0)


def pooling(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    o, (x,) = layer.pooling_param, xs
    places = list(pool_windows(o, *x.shape[2:]))
    (rows, columns), largest = places[-1][0], o.pool == 0
    y = np.zeros((*x.shape[:2], rows + 1, columns + 1))
    for (r, c), window, share in places:
        part = x[:, :, window[0], window[1]].reshape(*x.shape[:2], -1)
        y[:, :, r, c] = part.max(2) if largest else part.sum(2) / share
        if largest and part.shape[2] > 1:
            clear_of(np.diff(np.sort(part, 2)[:, :, -2:]))

    def pull(dys: Arrays) -> tuple[Arrays, Arrays]:
        dx = np.zeros_like(x)
        for (r, c), window, share in places:
            dy = dys[0][:, :, r, c, None, None]
            part = x[:, :, window[0], window[1]]
            chosen = part == y[:, :, r, c, None, None] if largest else 1 / share
            dx[:, :, window[0], window[1]] += dy * chosen
        return [dx], []

    return [y], pull


def elementwise(y: Any, slope: Any) -> Made:
    return [y], lambda dys: ([dys[0] * slope], [])


def relu(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    clear_of(xs[0])
    slope = np.where(xs[0] > 0, 1, layer.relu_param.negative_slope)
    return elementwise(xs[0] * slope, slope)


def sigmoid(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    y = 1 / (1 + np.exp(-xs[0]))
    return elementwise(y, y * (1 - y))


def tanh(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    y = np.tanh(xs[0])
    return elementwise(y, 1 - y * y)


def inner_product(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    o, (x,), w = layer.inner_product_param, xs, params[0]
    rows = x.reshape(len(x), -1)
    y = rows @ (w if o.transpose else w.T) + (params[1] if o.bias_term else 0)

    def pull(dys: Arrays) -> tuple[Arrays, Arrays]:
        (dy,) = dys
        dx = (dy @ (w.T if o.transpose else w)).reshape(x.shape)
        dw = rows.T @ dy if o.transpose else dy.T @ rows
        return [dx], [dw, dy.sum(0)][: 1 + o.bias_term]

    return [y], pull


def eltwise(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
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


def concat(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    axis = layer.concat_param.axis
    ends = np.cumsum([x.shape[axis] for x in xs])[:-1]
    return [np.concatenate(xs, axis)], lambda dys: (np.split(dys[0], ends, axis), [])


def slice_(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    o = layer.slice_param
    parts = list(o.slice_point) or len(layer.top)
    tops = np.split(xs[0], parts, o.axis)
    return list(tops), lambda dys: ([np.concatenate(dys, o.axis)], [])


def scale(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    (x,), bias = xs, layer.scale_param.bias_term
    across = (1, -1) + (1,) * (x.ndim - 2)
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    gamma = params[0].reshape(across)
    y = x * gamma + (params[1].reshape(across) if bias else 0)

    def pull(dys: Arrays) -> tuple[Arrays, Arrays]:
        dparams = [(dys[0] * x).sum(others), dys[0].sum(others)]
        return [dys[0] * gamma], dparams[: 1 + bias]

    return [y], pull


def batch_norm(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
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

    def pull(dys: Arrays) -> tuple[Arrays, Arrays]:
        (dy,) = dys
        if not stored:
            centered = dy - dy.mean(others).reshape(across)
            dy = centered - y * (dys[0] * y).mean(others).reshape(across)
        return [dy / deviation], [np.zeros_like(blob) for blob in params]

    return [y], pull


def lrn(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    """y = x / base ** beta, base = k + alpha * mean of squares over a neighbourhood."""
    o, (x,) = layer.lrn_param, xs
    size, half = o.local_size, o.local_size // 2
    base = np.zeros_like(x)
    members: list[tuple[Any, Any, int]] = []
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

    def pull(dys: Arrays) -> tuple[Arrays, Arrays]:
        dx = dys[0] * power
        inner = dys[0] * x * -o.beta * power / base
        for place, window, share in members:
            dx[window] += np.expand_dims(inner[place], axes) * o.alpha / share * 2 * x[window]
        return [dx], []

    return [x * power], pull


def probabilities(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def softmax(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    y = probabilities(xs[0])

    def pull(dys: Arrays) -> tuple[Arrays, Arrays]:
        return [y * (dys[0] - (dys[0] * y).sum(1, keepdims=True))], []

    return [y], pull


def softmax_loss(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    """Averaged over the labels that are not ignored; no average over none."""
    (x, labels), y = xs, probabilities(xs[0])
    o = layer.loss_param
    kept = labels != o.ignore_label if o.HasField("ignore_label") else labels == labels
    hot = np.moveaxis(np.eye(x.shape[1])[np.where(kept, labels, 0).astype(int)], -1, 1)
    chosen, count = hot * kept[:, None], max(1, kept.sum())
    loss = -(np.log(y) * chosen).sum() / count
    slope = (y * kept[:, None] - chosen) / count
    return [loss], lambda dys: ([dys[0] * slope, np.zeros_like(labels)], [])


def euclidean_loss(layer: Any, xs: Arrays, params: Arrays, train: bool) -> Made:
    gap = (xs[0] - xs[1]) / len(xs[0])
    loss = (gap * (xs[0] - xs[1])).sum() / 2
    return [loss], lambda dys: ([dys[0] * gap, -dys[0] * gap], [])


LAYERS: Mapping[str, Callable[[Any, Arrays, Arrays, bool], Made]] = {
    "BatchNorm": batch_norm,
    "Concat": concat,
    "Convolution": convolution,
    "Eltwise": eltwise,
    "EuclideanLoss": euclidean_loss,
    "InnerProduct": inner_product,
    "LRN": lrn,
    "Pooling": pooling,
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

    def __init__(self, net: Any, train: bool, inputs: Mapping[str, Any]) -> None:
        self.layers = [layer for layer in net.layer if layer.type != "Input"]
        self.train = train
        self.values = [np.array(value, np.float64) for value in inputs.values()]
        self.at = {name: number for number, name in enumerate(inputs)}
        self.inputs = dict(self.at)
        self.tape: list[tuple[Any, list[int], list[int], Arrays, Pull]] = []

    def forward(self, params: Mapping[str, Arrays]) -> None:
        for layer in self.layers:
            bottoms = [self.at[name] for name in layer.bottom]
            own = list(params.get(layer.name, ()))
            xs = [self.values[number] for number in bottoms]
            ys, pull = LAYERS[layer.type](layer, xs, own, self.train)
            tops = list(range(len(self.values), len(self.values) + len(ys)))
            self.values += ys
            self.at.update(zip(layer.top, tops, strict=True))
            self.tape.append((layer, bottoms, tops, own, pull))

    def blob(self, name: str) -> Any:
        return self.values[self.at[name]]

    def backward(self, top_diffs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[int, Any]]:
        """Gradients of the inputs by name, and of the parameters by the identity of their array."""
        diffs = [np.zeros_like(value) for value in self.values]
        for name, diff in top_diffs.items():
            diffs[self.at[name]] = np.asarray(diff, np.float64)
        of_params: dict[int, Any] = {}
        for _, bottoms, tops, own, pull in reversed(self.tape):
            dxs, dparams = pull([diffs[number] for number in tops])
            for number, dx in zip(bottoms, dxs, strict=True):
                diffs[number] = diffs[number] + dx
            for array, diff in zip(own, dparams, strict=True):
                of_params[id(array)] = of_params.get(id(array), 0) + diff
        return {name: diffs[number] for name, number in self.inputs.items()}, of_params
