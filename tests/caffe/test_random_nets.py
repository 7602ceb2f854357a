"""Small nets drawn at random, valid by construction, against the slow reference."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.reference import Kink, Reference
from tests.fuzz.kernels import oracle

Shape = tuple[int, ...]

WIDTHS = (1, 2, 3, 4, 8, 16)
"""Channels: from 8 on oneDNN may choose blocked layouts."""


@dataclass
class Draft:
    """A net as it grows: its text, the blobs that may be used, which of them were used."""

    draw: Any
    inputs: dict[str, Shape] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    makers: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    shared: list[tuple[str, str, str, Shape]] = field(default_factory=list)

    def add_input(self, shape: Shape, classes: int = 0) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = shape
        if classes:
            self.labels[name] = classes
        else:
            self.shapes[name] = shape
        return name

    def layer(
        self, type_name: str, bottoms: list[str], tops: dict[str, Shape], options: str = ""
    ) -> None:
        names = [f'bottom: "{name}"' for name in bottoms] + [f'top: "{name}"' for name in tops]
        name = f"l{len(self.lines)}"
        self.lines.append(
            f'layer {{ name: "{name}" type: "{type_name}" {" ".join(names)} {options} }}'
        )
        self.used |= set(bottoms) - set(tops)
        for top, shape in tops.items():
            self.shapes[top] = shape
            self.makers[top] = type_name

    def top(self) -> str:
        return f"y{len(self.lines)}"

    def pick(self, axes: tuple[int, ...] = (2, 4)) -> str | None:
        fitting = [name for name, shape in self.shapes.items() if len(shape) in axes]
        return str(self.draw(st.sampled_from(fitting))) if fitting else None

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def real(self, *values: float) -> float:
        return float(self.draw(st.sampled_from(values)))

    def place(self, bottom: str) -> str:
        """A new blob; or the same one, where nobody else sees the difference."""
        free = bottom not in self.used and bottom in self.makers
        return bottom if free and self.draw(st.booleans()) else self.top()


def convolution(d: Draft) -> None:
    bottom = d.pick((4,))
    if bottom is None:
        return
    n, c, h, w = d.shapes[bottom]
    kernel, dilation = d.number(1, min(3, h, w)), d.number(1, 2)
    extent = dilation * (kernel - 1) + 1
    pad, stride = d.number(0, 2), d.number(1, 2)
    if extent > min(h, w) + 2 * pad:
        dilation, extent = 1, kernel
    group = d.draw(st.sampled_from([g for g in (1, 2, 3) if c % g == 0]))
    outs = group * d.draw(st.sampled_from(WIDTHS if group == 1 else (1, 2, 8)))
    options = (
        f"convolution_param {{ num_output: {outs} kernel_size: {kernel} pad: {pad} "
        f"stride: {stride} dilation: {dilation} group: {group} "
        f"bias_term: {d.draw(st.sampled_from(['true', 'false']))} }}"
    )
    rows, columns = ((size + 2 * pad - extent) // stride + 1 for size in (h, w))
    learnable(d, "Convolution", bottom, (n, outs, rows, columns), options, (c, h, w))


def inner_product(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    shape, outs = d.shapes[bottom], d.number(1, 4)
    options = (
        f"inner_product_param {{ num_output: {outs} "
        f"transpose: {d.draw(st.sampled_from(['true', 'false']))} "
        f"bias_term: {d.draw(st.sampled_from(['true', 'false']))} }}"
    )
    learnable(d, "InnerProduct", bottom, (shape[0], outs), options, shape[1:])


def learnable(
    d: Draft, type_name: str, bottom: str, top: Shape, options: str, inner: Shape
) -> None:
    """Give the parameters names; sometimes use them for a second layer, elsewhere or here."""
    tag = f"w{len(d.lines)}"
    names = f'param {{ name: "{tag}" }} '
    if "bias_term: true" in options:
        names += f'param {{ name: "{tag}b" }} '
    d.layer(type_name, [bottom], {d.top(): top}, names + options)
    twins = [
        name
        for name, shape in d.shapes.items()
        if shape[1:] == inner and len(shape) == len(inner) + 1
    ]
    if twins and d.draw(st.booleans()) and d.draw(st.booleans()):
        twin = d.draw(st.sampled_from(twins))
        d.layer(type_name, [twin], {d.top(): (d.shapes[twin][0], *top[1:])}, names + options)


def pools(d: Draft) -> None:
    bottom = d.pick((4,))
    if bottom is None:
        return
    n, c, h, w = d.shapes[bottom]
    kernel = d.number(1, min(3, h, w))
    stride, pad = d.number(1, kernel), d.number(0, kernel - 1)

    def out(size: int) -> int:
        count = -((size + 2 * pad - kernel) // -stride) + 1
        return count - 1 if pad and (count - 1) * stride >= size + pad else count

    method = d.draw(st.sampled_from(["MAX", "AVE"]))
    options = f"pooling_param {{ pool: {method} kernel_size: {kernel} stride: {stride} "
    d.layer("Pooling", [bottom], {d.top(): (n, c, out(h), out(w))}, f"{options} pad: {pad} }}")


def activation(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    kind = d.draw(st.sampled_from(["ReLU", "ReLU", "Sigmoid", "TanH"]))
    options = f"relu_param {{ negative_slope: {d.real(0, 0, 0.1)} }}" if kind == "ReLU" else ""
    d.layer(kind, [bottom], {d.place(bottom): d.shapes[bottom]}, options)


def alike(d: Draft, bottom: str, axis: int | None = None) -> list[str]:
    """Blobs of the same shape, an axis aside."""

    def rest(name: str) -> Shape:
        return tuple(size for number, size in enumerate(d.shapes[name]) if number != axis)

    same = [n for n in d.shapes if len(d.shapes[n]) == len(d.shapes[bottom])]
    fitting = [name for name in same if rest(name) == rest(bottom)]
    more = d.draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2, unique=True))
    return [bottom, *(name for name in more if name != bottom)]


def eltwise(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    bottoms = alike(d, bottom)
    if len(bottoms) < 2:
        return
    operation = d.draw(st.sampled_from(["SUM", "SUM", "PROD", "MAX"]))
    options = f"operation: {operation}"
    if operation == "SUM" and d.draw(st.booleans()):
        options += "".join(f" coeff: {d.real(1, -1, 0.5)}" for _ in bottoms)
    d.layer("Eltwise", bottoms, {d.top(): d.shapes[bottom]}, f"eltwise_param {{ {options} }}")


def concat(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    axis = d.number(0, len(d.shapes[bottom]) - 1)
    bottoms = alike(d, bottom, axis)
    shape = list(d.shapes[bottom])
    shape[axis] = sum(d.shapes[name][axis] for name in bottoms)
    if len(bottoms) > 1 and shape[axis] <= 48:
        d.layer("Concat", bottoms, {d.top(): tuple(shape)}, f"concat_param {{ axis: {axis} }}")


def slice_(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    shape = d.shapes[bottom]
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if not axes:
        return
    axis = d.draw(st.sampled_from(axes))
    point = 8 if shape[axis] > 8 and d.draw(st.booleans()) else d.number(1, shape[axis] - 1)
    parts = [(*shape[:axis], size, *shape[axis + 1 :]) for size in (point, shape[axis] - point)]
    tops = {f"{d.top()}{letter}": part for letter, part in zip("ab", parts, strict=True)}
    options = f"slice_param {{ axis: {axis} slice_point: {point} }}"
    d.layer("Slice", [bottom], tops, options)


def scale(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    options = f"scale_param {{ bias_term: {d.draw(st.sampled_from(['true', 'false']))} }}"
    d.layer("Scale", [bottom], {d.place(bottom): d.shapes[bottom]}, options)


def batch_norm(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    shape = d.shapes[bottom]
    if np.prod(shape) // shape[1] < 4:
        return
    options = "eps: 0.05 moving_average_fraction: 0.9 "
    options += d.draw(
        st.sampled_from(["", "", "use_global_stats: true", "use_global_stats: false"])
    )
    d.layer("BatchNorm", [bottom], {d.place(bottom): shape}, f"batch_norm_param {{ {options} }}")


def lrn(d: Draft) -> None:
    bottom = d.pick((4,))
    if bottom is None:
        return
    region = d.draw(st.sampled_from(["ACROSS_CHANNELS", "WITHIN_CHANNEL"]))
    size = d.draw(st.sampled_from([1, 3, 5]))
    h, w = d.shapes[bottom][2:]
    options = f"local_size: {size} alpha: {d.real(0.1, 1)} beta: {d.real(0.5, 0.75)} k: 2"
    if region == "WITHIN_CHANNEL" and size > min(h, w) + 2 * (size // 2):
        return
    d.layer(
        "LRN",
        [bottom],
        {d.top(): d.shapes[bottom]},
        f"lrn_param {{ {options} norm_region: {region} }}",
    )


def softmax(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    d.layer("Softmax", [bottom], {d.place(bottom): d.shapes[bottom]})


def loss(d: Draft) -> None:
    bottom = d.pick()
    assert bottom is not None
    shape, weight = d.shapes[bottom], f"loss_weight: {d.real(1, 0.5, 2)}"
    if d.draw(st.booleans()):
        labels = d.add_input((shape[0], *shape[2:]), classes=shape[1])
        ignore = d.draw(st.sampled_from(["", "loss_param { ignore_label: 0 }"]))
        bottoms, kind, options = [bottom, labels], "SoftmaxWithLoss", f"{weight} {ignore}"
    else:
        others = alike(d, bottom)
        bottoms, kind, options = [bottom, others[-1]], "EuclideanLoss", weight
        if len(others) == 1:
            bottoms = [bottom, d.add_input(shape)]
    top = d.top()
    d.layer(kind, bottoms, {top: ()}, options)
    del d.shapes[top]


STEPS = (convolution, convolution, inner_product, pools, activation, activation, eltwise,
         concat, slice_, scale, batch_norm, lrn, softmax, loss)  # fmt: skip


@st.composite
def drafts(draw):
    d = Draft(draw)
    for _ in range(d.number(1, 2)):
        channels = draw(st.sampled_from(WIDTHS))
        d.add_input((d.number(1, 3), channels, d.number(2, 6), d.number(2, 6)))
    for _ in range(d.number(1, 8)):
        draw(st.sampled_from(STEPS))(d)
    assume(d.lines)
    return d


def _values(d, rng):
    return {
        name: rng.integers(0, d.labels[name], shape).astype(np.float32)
        if name in d.labels
        else rng.uniform(-1, 1, shape).astype(np.float32)
        for name, shape in d.inputs.items()
    }


def _set_params(net, rng):
    """Random parameters; copies in double precision, one for all that share."""
    copies = {}
    for name, own in net.params.items():
        statistics = net.layer_dict[name].type == "BatchNorm"
        for number, blob in enumerate(own):
            if id(blob) not in copies:
                low, high = (0.5, 1.5) if statistics and number else (-0.7, 0.7)
                blob.data[...] = rng.uniform(low, high, blob.data.shape)
                copies[id(blob)] = np.array(blob.data, np.float64)
    return {name: [copies[id(blob)] for blob in own] for name, own in net.params.items()}


def _close(what, got, want, scale=1):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, what
    allowed = 1e-3 * np.abs(want) + 3e-4 * max(np.abs(want).max(initial=0), 0.1 * scale)
    worst = np.max(np.abs(got - want) - allowed, initial=-1)
    assert worst <= 0, f"{what}: {got} is not {want}"


def pooling(layer, xs, params, train):
    """As the oracle's, if no rounding changes which value is the largest of a window."""
    noise = np.random.default_rng(0).uniform(-5e-4, 5e-4, xs[0].shape)
    _, chosen_near = oracle.pooling(layer, [xs[0] + noise], params, train)
    result = (y,), chosen = oracle.pooling(layer, xs, params, train)
    ones = [np.ones(y.shape)]
    if layer.pooling_param.pool == 0 and not np.array_equal(chosen(ones)[0], chosen_near(ones)[0]):
        raise Kink
    return result


WINDOWS = {"Convolution": oracle.convolution, "Pooling": pooling}


@settings(
    max_examples=150,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(d=drafts(), phase=st.sampled_from([caffe.TRAIN, caffe.TEST]), seed=st.integers(0, 2**31))
def test_a_random_net_agrees_with_the_reference(d, phase, seed):
    text = "force_backward: true\n"
    text += "\n".join([input_layer(name, shape) for name, shape in d.inputs.items()] + d.lines)
    note(text)
    message = parse_net(text)
    net, rng = caffe.Net.from_proto(message, phase), np.random.default_rng(seed)
    inputs = _values(d, rng)
    params = _set_params(net, rng)
    reference = Reference(message, phase == caffe.TRAIN, inputs, WINDOWS)
    try:
        reference.forward(params)
    except Kink:
        assume(False)
    for name, value in inputs.items():
        net.blobs[name].data[...] = value
    net.forward()
    for name in reference.at:
        _close(name, net.blobs[name].data, reference.blob(name))
    for name, own in net.params.items():
        for number, blob in enumerate(own):
            _close(f"{name}[{number}]", blob.data, params[name][number])
    _check_gradients(net, reference, params, rng)


def _check_gradients(net, reference, params, rng):
    top_diffs = {}
    for name in net.outputs:
        weight, shape = net.blob_loss_weights[name], net.blobs[name].data.shape
        top_diffs[name] = np.full(shape, weight) if weight else rng.uniform(-1, 1, shape)
        net.blobs[name].diff[...] = top_diffs[name]
    expected, wanted_params = reference.backward(top_diffs)
    net.clear_param_diffs()
    net.backward()
    scale = max([1.0, *(np.abs(diff).max(initial=0) for diff in expected.values())])
    scale = max([scale, *(np.abs(diff).max(initial=0) for diff in wanted_params.values())])
    for name, want in expected.items():
        if name not in net.outputs and not _is_label(net, name):
            _close(f"gradient of {name}", net.blobs[name].diff, want, scale)
    for name, own in net.params.items():
        for number, blob in enumerate(own):
            want = wanted_params[id(params[name][number])]
            _close(f"gradient of {name}[{number}]", blob.diff, want, scale)


def _is_label(net, name):
    return any(
        node.type == "SoftmaxWithLoss" and node.bottoms[1] == name for node in net.graph.nodes
    )
