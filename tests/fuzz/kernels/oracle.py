"""Layers in float64, a numpy call for each tap of a window: fast enough for a thousand channels."""

import math
from typing import NamedTuple

import numpy as np

from tests.caffe import reference


class Taps(NamedTuple):
    """A window of two axes that is put at rows x columns places of a padded image."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    dilation: tuple[int, int]

    @classmethod
    def of(cls, options, size=(0, 0)):
        def both(name: str, default: int) -> tuple[int, int]:
            pair = "kernel" if name == "kernel_size" else name
            high, wide = (getattr(options, f"{pair}_{axis}", 0) for axis in "hw")
            if high or wide:
                return high, wide
            given = getattr(options, name, [])
            given = list(given) if hasattr(given, "__len__") else [given] if given else []
            return (given[0], given[-1]) if given else (default, default)

        if getattr(options, "global_pooling", False):
            return cls(size, (1, 1), (0, 0), (1, 1))
        found = [both(name, 1) for name in ("kernel_size", "stride")]
        return cls(*found, both("pad", 0), both("dilation", 1))

    @property
    def reach(self) -> tuple[int, int]:
        high, wide = (d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return high, wide

    def places(self, size: tuple[int, int]) -> tuple[int, int]:
        """Convolution's: how often the window fits."""
        rows, columns = (
            (n + 2 * p - r) // s + 1
            for n, p, r, s in zip(size, self.pad, self.reach, self.stride, strict=True)
        )
        return rows, columns

    def span(self, places: tuple[int, int]) -> tuple[int, int]:
        """The size of the padded image that the windows cover."""
        high, wide = (
            (n - 1) * s + r for n, s, r in zip(places, self.stride, self.reach, strict=True)
        )
        return high, wide

    def each(self, places):
        """A tap, and what it sees of the padded image from all places."""
        for i, j in np.ndindex(*self.kernel):
            seen = [
                slice(at * d, at * d + (n - 1) * s + 1, s)
                for at, d, n, s in zip((i, j), self.dilation, places, self.stride, strict=True)
            ]
            yield i, j, (..., *seen)


def padded(x, taps, places, value=0.0):
    """The image with its padding: at least what the windows cover."""
    span = taps.span(places)
    high, wide = (max(n, m + 2 * p) for n, m, p in zip(span, x.shape[2:], taps.pad, strict=True))
    made = np.full((*x.shape[:2], high, wide), value)
    made[inner(taps, x.shape)] = x
    return made


def inner(taps, shape):
    rows, columns = (slice(p, p + n) for p, n in zip(taps.pad, shape[2:], strict=True))
    return ..., rows, columns


def times(weights, values):
    """(groups, rows, columns) by (records, groups, columns, places)."""
    return weights[..., 0, None] * values if weights.shape[2] == 1 else weights @ values


def pairs(rows, columns):
    """The sum over records and places: (groups, rows, columns)."""
    if rows.shape[2] == columns.shape[2] == 1:
        return np.einsum("ngip,ngjp->gij", rows, columns)
    return (rows @ columns.swapaxes(2, 3)).sum(0)


class Windows:
    """The three products of a convolution: a deconvolution has the same with others' names."""

    def __init__(self, o, image, few, weights):
        self.taps, self.places, self.image = Taps.of(o), (few[2], few[3]), image
        self.records, group = image[0], o.group
        self.few = (self.records, group, few[1] // group, self.places[0] * self.places[1])
        self.many = (self.records, group, image[1] // group)
        self.weights = weights.reshape(group, self.few[2], self.many[2], *self.taps.kernel)

    def gather(self, image):
        wide = padded(image, self.taps, self.places)
        made = np.zeros(self.few)
        for i, j, seen in self.taps.each(self.places):
            made += times(self.weights[..., i, j], wide[seen].reshape(*self.many, -1))
        return made.reshape(self.records, -1, *self.places)

    def scatter(self, values):
        wide = padded(np.zeros(self.image), self.taps, self.places)
        values = values.reshape(self.few)
        for i, j, seen in self.taps.each(self.places):
            part = times(self.weights[..., i, j].swapaxes(1, 2), values)
            wide[seen] += part.reshape(self.records, -1, *self.places)
        return wide[inner(self.taps, self.image)]

    def learn(self, image, values):
        wide = padded(image, self.taps, self.places)
        made = np.zeros_like(self.weights)
        for i, j, seen in self.taps.each(self.places):
            part = wide[seen].reshape(*self.many, -1)
            made[..., i, j] = pairs(values.reshape(self.few), part)
        return made


def convolution(layer, xs, params, train):
    o, (x,), w = layer.convolution_param, xs, params[0]
    shape = (len(x), o.num_output, *Taps.of(o).places(x.shape[2:]))
    windows = Windows(o, x.shape, shape, w)
    y = windows.gather(x)
    if o.bias_term:
        y += params[1][:, None, None]

    def pull(dys):
        found = [windows.learn(x, dys[0]).reshape(w.shape), dys[0].sum((0, 2, 3))]
        return [windows.scatter(dys[0])], found[: 1 + o.bias_term]

    return [y], pull


def deconvolution(layer, xs, params, train):
    o, (x,), w = layer.convolution_param, xs, params[0]
    taps = Taps.of(o)
    size = (n - 2 * p for n, p in zip(taps.span(x.shape[2:]), taps.pad, strict=True))
    windows = Windows(o, (len(x), o.num_output, *size), x.shape, w)
    y = windows.scatter(x)
    if o.bias_term:
        y = y + params[1][:, None, None]

    def pull(dys):
        found = [windows.learn(dys[0], x).reshape(w.shape), dys[0].sum((0, 2, 3))]
        return [windows.gather(dys[0])], found[: 1 + o.bias_term]

    return [y], pull


def pooled(taps: Taps, size: tuple[int, int]) -> tuple[int, int]:
    """Caffe's: rounded up, and no window begins behind the padded image's last value."""

    def along(axis: int) -> int:
        n, k, s, p = size[axis], taps.kernel[axis], taps.stride[axis], taps.pad[axis]
        count = -((n + 2 * p - k) // -s) + 1
        return count - 1 if any(taps.pad) and (count - 1) * s >= n + p else count

    return along(0), along(1)


def shares(taps, places, size):
    """The number of values that AVE divides by: padding counts, what lies behind it does not."""

    def along(axis):
        first = np.arange(places[axis]) * taps.stride[axis] - taps.pad[axis]
        last = np.minimum(first + taps.kernel[axis], size[axis] + taps.pad[axis])
        return last - first

    return along(0)[:, None] * along(1)


def pooling(layer, xs, params, train):
    o, (x,) = layer.pooling_param, xs
    size = x.shape[2:]
    taps = Taps.of(o, size)
    places, largest = pooled(taps, size), o.pool == o.MAX
    wide = padded(x, taps, places, -np.inf if largest else 0.0)
    share = shares(taps, places, size)
    y = np.full((*x.shape[:2], *places), -np.inf if largest else 0.0)
    first = np.zeros(y.shape, np.int32)
    for i, j, seen in taps.each(places):
        if largest:
            first = np.where(wide[seen] > y, i * taps.kernel[1] + j, first)
            y = np.maximum(y, wide[seen])
        else:
            y += wide[seen] / share

    def pull(dys):
        dx = np.zeros_like(wide)
        for i, j, seen in taps.each(places):
            dx[seen] += dys[0] * (first == i * taps.kernel[1] + j if largest else 1 / share)
        return [dx[inner(taps, x.shape)]], []

    return [y], pull


def relu(x, positive, slope):
    """`positive`: the values that count as such; a rounding error apart, those above zero."""
    by = np.where(positive, 1.0, slope)
    return [np.where(x > 0, x, slope * x)], lambda dys: ([dys[0] * by], [])


def eltwise(layer, xs, params, train):
    o = layer.eltwise_param
    if o.operation != o.MAX:
        return reference.eltwise(layer, xs, params, train)
    # Of two equal values Caffe takes the second; of that and later ones the first.
    y, chosen = np.maximum(xs[0], xs[1]), (xs[1] >= xs[0]).astype(int)
    for number, x in enumerate(xs[2:], 2):
        chosen = np.where(x > y, number, chosen)
        y = np.maximum(x, y)
    return [y], lambda dys: ([dys[0] * (chosen == i) for i in range(len(xs))], [])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent(layer, xs, params, train):
    """RNN and LSTM as Caffe unrolls them; where cont is 0 a stream begins."""
    (x, cont), (w, b, wh, *out) = xs, params
    cont = cont[:, :, None]
    is_lstm, units = layer.type == "LSTM", layer.recurrent_param.num_output
    h = c = np.zeros((x.shape[1], units))
    steps = []
    ys = []
    for t in range(len(x)):
        conted, before = cont[t] * h, c
        sums = x[t] @ w.T + b + conted @ wh.T
        if is_lstm:
            i, f, o, g = np.split(sums, 4, 1)
            i, f, o, g = sigmoid(i), cont[t] * sigmoid(f), sigmoid(o), np.tanh(g)
            c = f * before + i * g
            h = o * np.tanh(c)
            steps.append((conted, before, c, (i, f, o, g)))
            ys.append(h)
        else:
            h = np.tanh(sums)
            ys.append(np.tanh(h @ out[0].T + out[1]))
            steps.append((conted, h))

    def pull(dys):
        dx, grads = np.zeros_like(x), [np.zeros_like(one) for one in params]
        dh = dc = np.zeros((x.shape[1], units))
        for t in reversed(range(len(x))):
            if is_lstm:
                conted, before, c, (i, f, o, g) = steps[t]
                dh, squashed = dh + dys[0][t], np.tanh(c)
                dc = dc + dh * o * (1 - squashed**2)
                parts = [dc * g * i * (1 - i), dc * before * f * (1 - f)]
                parts += [dh * squashed * o * (1 - o), dc * i * (1 - g**2)]
                dsums, dc = np.concatenate(parts, 1), dc * f
            else:
                conted, h = steps[t]
                do = dys[0][t] * (1 - ys[t] ** 2)
                grads[3] += do.T @ h
                grads[4] += do.sum(0)
                dsums = (dh + do @ out[0]) * (1 - h**2)
            grads[0] += dsums.T @ x[t]
            grads[1] += dsums.sum(0)
            grads[2] += dsums.T @ conted
            dx[t] = dsums @ w
            dh = cont[t] * (dsums @ wh)
        return [dx, np.zeros_like(xs[1])], grads

    return [np.stack(ys)], pull


def no_gradient(dys):
    raise NotImplementedError("drawn for the test phase alone")


def function(of):
    """A function of each value, of which only the values are compared."""
    return lambda layer, xs, params, train: ([of(layer, xs[0])], no_gradient)


def gelu(layer, x):
    if layer.gelu_param.approximate == layer.gelu_param.TANH:
        return x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    return x * (1 + np.vectorize(math.erf, otypes=[float])(x / 2**0.5)) / 2


def clip(layer, x):
    return np.clip(x, layer.clip_param.min, layer.clip_param.max)


def scale(layer, xs, params, train):
    if len(xs) == 1:
        return reference.scale(layer, xs, params, train)
    x, factors = xs
    return [x * factors.reshape(*factors.shape, *(1,) * (x.ndim - factors.ndim))], no_gradient


def moved(values):
    """Layers of an attention, which is drawn without gradients."""

    def pull(dys):
        raise NotImplementedError("attentions are drawn without gradients")

    return [values], pull


def reshape(layer, xs, params, train):
    return moved(xs[0].reshape(tuple(layer.reshape_param.shape.dim)))


def permute(layer, xs, params, train):
    return moved(xs[0].transpose(tuple(layer.permute_param.order)))


def power(layer, xs, params, train):
    o = layer.power_param
    return moved((xs[0] * o.scale + o.shift) ** o.power)


def tile(layer, xs, params, train):
    return moved(np.concatenate([xs[0]] * layer.tile_param.tiles, layer.tile_param.axis))


def matmul(layer, xs, params, train):
    o = layer.matmul_param
    a = xs[0].swapaxes(-1, -2) if o.transpose_a else xs[0]
    return moved(a @ (xs[1].swapaxes(-1, -2) if o.transpose_b else xs[1]))


def softmax(layer, xs, params, train):
    if layer.softmax_param.axis == 1:
        return reference.LAYERS["Softmax"](layer, xs, params, train)
    made = np.exp(xs[0] - xs[0].max(-1, keepdims=True))
    return moved(made / made.sum(-1, keepdims=True))


LAYERS = {
    **reference.LAYERS,
    "MatMul": matmul,
    "Permute": permute,
    "Power": power,
    "Reshape": reshape,
    "Softmax": softmax,
    "Tile": tile,
    "Clip": function(clip),
    "Flatten": function(lambda layer, x: x.reshape(len(x), -1)),
    "GELU": function(gelu),
    "HardSwish": function(lambda layer, x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "ReLU6": function(lambda layer, x: np.clip(x, 0, 6)),
    "Scale": scale,
    "Swish": function(lambda layer, x: x * sigmoid(layer.swish_param.beta * x)),
    "Convolution": convolution,
    "Deconvolution": deconvolution,
    "Eltwise": eltwise,
    "LSTM": recurrent,
    "Pooling": pooling,
    "RNN": recurrent,
}
