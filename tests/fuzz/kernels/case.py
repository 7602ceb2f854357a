"""One net of a few layers, and whether its passes give what float64 gives."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import sparknet.caffe as caffe
from sparknet import native
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.fuzz.kernels.oracle import LAYERS, relu

Arrays = dict[str, Any]

CLOSE = {"float32": 1e-4, "bf16": 2.0**-7, "int8": 0.04}
"""How far a value may lie from float64's, as a share of itself and of the largest of its array."""

PRODUCTS, TERMS = {"Convolution", "Deconvolution", "InnerProduct"}, 0.25
"""Layers of sums of products.  Terms that cancel out leave an error of their own size, not of the
sum's; so do those of averages and of sums of blobs.  The share of it that stands for the largest
value of the array."""

ROUNDINGS = 2
"""How many times as far as the oracle moves when it rounds what each layer gets to bfloat16."""


@dataclass(frozen=True)
class Case:
    """A net in text, and how it is run: as JSON the one line that repeats it."""

    kind: str
    layers: str
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    precision: str = "float32"
    phase: str = "TRAIN"
    threads: int = 1
    keep_blobs: bool = True
    backward: bool = True
    seed: int = 0

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    def but(self, **fields):
        return replace(self, **fields)

    @classmethod
    def read(cls, text: str) -> Case:
        found = json.loads(text)
        found["inputs"] = {name: tuple(shape) for name, shape in found["inputs"].items()}
        return cls(**found)


def draw_inputs(case):
    """The inputs; marks of a sequence are 0 and 1."""
    rng = np.random.default_rng(case.seed)
    found = {name: rng.standard_normal(shape, np.float32) for name, shape in case.inputs.items()}
    if "cont" in found:
        found["cont"] = (found["cont"] > -1).astype(np.float32)
    return found


def draw_params(net, seed):
    """Weights that keep the size of values, and biases as large as those."""
    rng = np.random.default_rng(seed + 1)
    kinds = {name: layer.type for name, layer in net.layer_dict.items()}
    for name, blobs in net.params.items():
        for number, blob in enumerate(blobs):
            values = rng.standard_normal(blob.data.shape, np.float32)
            if kinds[name] == "BatchNorm":
                values = [values, np.abs(values) + 0.5, np.full(values.shape, 1.7)][number]
                values = values * 1.7 if number < 2 else values
            elif values.ndim > 1:
                fan = max(1, values.size // max(values.shape[:2]))
                values *= 1 / np.sqrt(fan if kinds[name] == "Deconvolution" else values[0].size)
            blob.data[...] = values


def message(case, steps):
    text = "force_backward: true\n" if case.backward else ""
    text += "".join(input_layer(name, shape) for name, shape in case.inputs.items())
    message = parse_net(text + case.layers)
    for blob, step in steps.items():
        message.int8_param.values.add(blob=blob, step=step, is_signed=True)
    return message


def ranges(case, inputs):
    """The steps of blobs in eight bits; a maximum of values has that of the values."""
    net = caffe.Net.from_proto(message(case, {}), caffe.TEST, seed=case.seed)
    draw_params(net, case.seed)
    net.forward(**inputs)
    found = {n: float(np.abs(b.data).max()) / 127 or 1.0 for n, b in net.blobs.items()}
    for layer in net.graph.parameter.layer:
        if layer.type == "Pooling":
            found[layer.top[0]] = found[layer.bottom[0]]
    return found


def rounded(x):
    """To bfloat16, the nearest and of two the even one."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def is_maximum(layer):
    pool, sum_of = layer.pooling_param, layer.eltwise_param
    return bool(
        {"Pooling": pool.pool == pool.MAX, "Eltwise": sum_of.operation == sum_of.MAX}.get(
            layer.type
        )
    )


class Oracle:
    """A net's passes in float64, from layers and what `change` makes of all that they get."""

    def __init__(self, params, inputs, train, change):
        self.params, self.train, self.change = params, train, change
        self.values: Arrays = {name: x.astype(np.float64) for name, x in inputs.items()}
        self.diffs: Arrays = {}
        self.pulls = []

    def forward(self, layer, positive):
        # Rounded values may be equal, of which a maximum takes another.
        change = np.array if is_maximum(layer) else self.change
        xs = [change(self.values[name]) for name in layer.bottom]
        own = [change(np.array(one, np.float64)) for one in self.params.get(layer.name, ())]
        if layer.type == "ReLU":
            ys, pull = relu(xs[0], positive, layer.relu_param.negative_slope)
        else:
            ys, pull = LAYERS[layer.type](layer, xs, own, self.train)
        if layer.type == "BatchNorm":
            self.params[layer.name] = own  # with the running statistics after the pass
        self.pulls.append(pull)
        self.values |= zip(layer.top, ys, strict=True)
        return ys

    def backward(self, layer):
        """The gradients of the parameters; layers come from the last to the first."""
        dxs, dparams = self.pulls.pop()([self.change(self.diffs[top]) for top in layer.top])
        for bottom, dx in zip(layer.bottom, dxs, strict=True):
            before = 0 if bottom in layer.top else self.diffs.get(bottom, 0)
            self.diffs[bottom] = before + dx
        return dparams


class Walk:
    """Compares the passes of a net with the oracle's.  Each layer starts from what the net's own
    layer before it has found, where that can be seen: errors do not add up.

    In bfloat16 a second oracle goes along, whose layers get rounded values: where a difference is
    divided by little or handed on in time, the two lie apart, and so may the net's values."""

    def __init__(self, case, net, params, inputs):
        self.case, self.net = case, net
        self.layers = [one for one in message(case, {}).layer if one.type != "Input"]
        changes = (np.array, rounded) if case.precision == "bf16" else (np.array,)
        is_train = case.phase == "TRAIN"
        self.oracles = [Oracle(dict(params), inputs, is_train, change) for change in changes]
        self.exact = self.oracles[0]
        self.last = {top: n for n, one in enumerate(self.layers) for top in one.top}
        seen = list(self.last) if case.keep_blobs else net.outputs
        self.seen = {name: np.array(net.blobs[name].data) for name in seen}
        self.sizes = []

    def forward(self) -> str:
        for number, layer in enumerate(self.layers):
            xs = [self.exact.values[name] for name in layer.bottom]
            own = [np.array(one, np.float64) for one in self.exact.params.get(layer.name, ())]
            self.sizes.append(partial(sizes, layer, xs, own))
            positive = self.positive(number, layer)
            found = [oracle.forward(layer, positive) for oracle in self.oracles]
            for top, *ys in zip(layer.top, *found, strict=True):
                if top not in self.seen or self.last[top] != number:
                    continue
                what = f"{layer.name}: {top}"
                if message := self.compare(what, self.seen[top], ys):
                    size = self.slack(number)
                    if not size or self.compare(what, self.seen[top], ys, size):
                        return message
                for oracle in self.oracles:
                    oracle.values[top] = self.seen[top].astype(np.float64)
        return ""

    def positive(self, number, layer):
        """Where a ReLU lets values pass: as the net's own, where that can be seen."""
        top = layer.top[0]
        is_end = top in self.seen and self.last[top] == number
        return (self.seen[top] if is_end else self.exact.values[layer.bottom[0]]) > 0

    def slack(self, number: int) -> float:
        """The size of the terms behind a layer's tops, back to where values were seen."""
        layer = self.layers[number]
        found = [largest(self.sizes[number](None)[0])]
        for bottom in layer.bottom:
            made = [n for n in range(number) if bottom in self.layers[n].top]
            if made and (bottom not in self.seen or self.last[bottom] != made[-1]):
                found.append(self.slack(made[-1]))
        return max(found)

    def statistics(self) -> str:
        for layer in self.layers:
            if layer.type != "BatchNorm":
                continue
            for i, blob in enumerate(self.net.params[layer.name]):
                wants = [oracle.params[layer.name][i] for oracle in self.oracles]
                if message := self.compare(f"{layer.name}[{i}]", np.array(blob.data), wants):
                    return message
        return ""

    def backward(self, given, times):
        for oracle in self.oracles:
            oracle.diffs = {name: value.astype(np.float64) for name, value in given.items()}
        for number, layer in reversed(list(enumerate(self.layers))):
            if message := self.meet(number, layer):
                return message
            dys = [self.exact.diffs[top] for top in layer.top]
            found = [oracle.backward(layer) for oracle in self.oracles]
            if layer.type == "BatchNorm":  # statistics learn nothing
                continue
            blobs = self.net.params.get(layer.name, ())
            for i, (blob, *dparams) in enumerate(zip(blobs, *found, strict=True)):
                wants = [times * one for one in dparams]
                # A sum is as exact as the sizes of its terms allow; a bias has thousands of equal
                # ones behind an average, which oneDNN adds one after the other.
                terms = sum(np.abs(dy).sum() for dy in dys) / len(wants[0])
                size = times * float(terms) * (0.03 if wants[0].ndim > 1 else 5.0)
                got = np.array(blob.diff)
                what = f"{layer.name}[{i}]'s gradient"
                if message := self.compare(what, got, wants, size):
                    size = max(size, times * largest(self.sizes[number](dys)[1][i : i + 1]))
                    if self.compare(what, got, wants, size):
                        return message
        for name in self.case.inputs:
            if name != "cont" and (message := self.compare_diff(name)):
                return message
        return ""

    def compare_diff(self, name: str) -> str:
        got = np.array(self.net.blobs[name].diff)
        return self.compare(f"{name}'s gradient", got, [o.diffs[name] for o in self.oracles])

    def meet(self, number, layer):
        """Before the layer that makes a blob: its gradient is complete.  An output's is given."""
        for top in layer.top:
            is_given = top in self.net.outputs and self.last[top] == number
            if is_given or top in layer.bottom or not self.case.keep_blobs:
                continue
            if message := self.compare_diff(top):
                return message
            for oracle in self.oracles:
                oracle.diffs[top] = np.array(self.net.blobs[top].diff, np.float64)
        return ""

    def compare(self, what, got, wants, size=1e-3):
        """What is wrong, by the oracles' values; `size`: of values that must be about 0."""
        want = np.asarray(wants[0])
        if got.shape != want.shape:
            return f"{what} has shape {got.shape}, not {want.shape}"
        if not got.size:
            return ""
        near = CLOSE[self.case.precision] * (np.abs(want) + max(np.abs(want).max(), size))
        near += ROUNDINGS * max(np.abs(one - want).max() for one in wants)
        wrong = ~(np.abs(got - want) <= near)
        if not wrong.any():
            return ""
        at = np.unravel_index(np.argmax(np.where(wrong, np.abs(got - want) / near, 0)), got.shape)
        place = tuple(int(i) for i in at)
        return (
            f"{what}: {wrong.sum()} of {got.size} wrong; {got[at]:g} at {place}, not {want[at]:g}"
        )


def sizes(layer, xs, own, dys):
    """Of a layer of sums the sums of the sizes of their terms: its tops' and its parameters'
    gradients'."""
    if layer.type == "Eltwise":
        return xs, []
    if layer.type not in PRODUCTS | {"Pooling"}:
        return [], []
    ys, pull = LAYERS[layer.type](layer, [np.abs(x) for x in xs], [np.abs(w) for w in own], True)
    return ys, [] if dys is None else pull([np.abs(dy) for dy in dys])[1]


def largest(arrays):
    return TERMS * max((float(np.abs(one).max()) for one in arrays), default=0.0)


def check(case: Case) -> str:
    """What is wrong with a net's passes; nothing if all is right."""
    before = native.threads()
    native.set_threads(case.threads)
    try:
        return passes(case)
    finally:
        native.set_threads(before)


def passes(case: Case) -> str:
    inputs = draw_inputs(case)
    steps = ranges(case, inputs) if case.precision == "int8" else {}
    phase = getattr(caffe, case.phase)
    net = caffe.Net.from_proto(
        message(case, steps),
        phase,
        seed=case.seed,
        precision=case.precision,
        keep_blobs=case.keep_blobs,
    )
    draw_params(net, case.seed)
    params = {name: [np.array(b.data) for b in blobs] for name, blobs in net.params.items()}
    net.forward(**inputs)
    walk = Walk(case, net, params, inputs)
    if said := walk.forward() or walk.statistics():
        return said
    return backward(case, net, walk) if case.backward else again(net, walk)


def again(net, walk):
    """A second pass gives the same, but where a sequence goes on or statistics move."""
    kinds = {layer.type for layer in walk.layers}
    if kinds & {"LSTM", "RNN"} or ("BatchNorm" in kinds and walk.case.phase == "TRAIN"):
        return ""
    net.forward()
    for name in net.outputs:
        if not np.array_equal(net.blobs[name].data, walk.seen[name]):
            return f"{name}: a second pass gives other values"
    return ""


def backward(case, net, walk):
    """Now and then twice: gradients of parameters add up."""
    times = 1 + case.seed % 2
    rng = np.random.default_rng(case.seed + 2)
    inputs = {n: rng.standard_normal(net.blobs[n].data.shape, np.float32) for n in net.outputs}
    net.clear_param_diffs()
    for _ in range(times):
        for name, diff in inputs.items():
            net.blobs[name].diff[...] = diff
        net.backward()
    return walk.backward(inputs, times)
