"""Draws layers of the sizes that published nets have."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from tests.fuzz.kernels.case import Case

USUAL = (1, 2, 3, 4, 8, 16, 19, 20, 21, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)
PRODUCTS, VALUES, WEIGHTS = 2e7, 1e6, 1.2e6
"""What a case may have, of a forward pass: a tenth of a second of the oracle's."""

Draw = random.Random
Pair = tuple[int, int]


def some(rng: Draw, least: int, most: int) -> int:
    """Small numbers as often as large ones."""
    return min(most, int(least * (most / least + 1) ** rng.random()))


def channels(rng: Draw) -> int:
    return rng.choice(USUAL) if rng.random() < 0.7 else some(rng, 1, 1024)


def twice(rng: Draw, one: Callable[[], int]) -> Pair:
    """Mostly the same along both axes."""
    first = one()
    return (first, first) if rng.random() < 0.7 else (first, one())


def image(rng: Draw, least: Pair = (1, 1), most: int = 80) -> Pair:
    high, wide = twice(rng, lambda: some(rng, 1, most))
    return max(high, least[0]), max(wide, least[1])


def words(**pairs: Pair) -> str:
    return " ".join(f"{name}_h: {h} {name}_w: {w}" for name, (h, w) in pairs.items())


def text(name: str, kind: str, bottom: str, top: str, options: str = "") -> str:
    bottoms = " ".join(f'bottom: "{one}"' for one in bottom.split())
    return f'layer {{ name: "{name}" type: "{kind}" {bottoms} top: "{top}" {options} }} '


class TooLarge(Exception):
    """More work than a case may have: another is drawn."""


def check_work(products: float, values: float, weights: float, more: float = 1) -> None:
    if products > PRODUCTS * more or values > VALUES * more or weights > WEIGHTS * more:
        raise TooLarge


def window(rng: Draw, largest: int) -> tuple[Pair, Pair, Pair, Pair]:
    """The kernel, stride, pad and dilation of a convolution."""
    usual = (1, 1, 2, 3, 3, 3, 4, 5, 7, 8, 11, 16)
    kernel = twice(rng, lambda: min(largest, rng.choice(usual)))
    stride = twice(rng, lambda: rng.choice((1, 1, 1, 2, 2, 3, 4, 8)))
    dilation = (1, 1) if rng.random() < 0.8 else twice(rng, lambda: rng.randint(1, 6))
    high, wide = (rng.choice((0, k // 2, (k - 1) // 2, rng.randrange(k))) for k in kernel)
    pad = (high * dilation[0], wide * dilation[1])
    return kernel, stride, pad, dilation


def groups(rng: Draw, inputs: int, outputs: int) -> tuple[int, int]:
    """Groups and outputs: mostly one group, else one of each channel or of several."""
    drawn = rng.random()
    if drawn < 0.75:
        return 1, outputs
    if drawn < 0.85:
        return inputs, inputs
    group = rng.choice([n for n in (2, 3, 4, 8, 16, 32, inputs) if inputs % n == 0] or [1])
    return group, max(1, outputs // group) * group


def reach(kernel: Pair, dilation: Pair) -> Pair:
    high, wide = (d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    return high, wide


def convolution_of(
    rng: Draw, name: str, bottom: str, top: str, shape: tuple[int, ...]
) -> tuple[str, tuple[int, ...]]:
    """The text of a Convolution, and the shape of its top; now and then of ten times the work, from
    which on other kernels are chosen."""
    more = 10 if rng.random() < 0.04 else 1
    kernel, stride, pad, dilation = window(rng, 11)
    far = reach(kernel, dilation)
    room = [n + 2 * p - r for n, p, r in zip(shape[2:], pad, far, strict=True)]
    if min(room) < 0:
        raise TooLarge
    group, outputs = groups(rng, shape[1], channels(rng))
    made = (shape[0], outputs, *(n // s + 1 for n, s in zip(room, stride, strict=True)))
    weights = outputs * shape[1] // group * math.prod(kernel)
    products = weights * shape[0] * made[2] * made[3]
    check_work(products, math.prod(made) + math.prod(shape), weights, more)
    sizes = words(kernel=kernel, stride=stride, pad=pad)
    holes = f"dilation: {dilation[0]} dilation: {dilation[1]}"
    bias = "" if rng.random() < 0.7 else "bias_term: false"
    options = f"num_output: {outputs} group: {group} {sizes} {holes} {bias}"
    return text(name, "Convolution", bottom, top, f"convolution_param {{ {options} }}"), made


def images(rng: Draw) -> tuple[int, ...]:
    return (some(rng, 1, 32), channels(rng), *image(rng))


def convolution(rng: Draw) -> Case:
    x = images(rng)
    layer, _ = convolution_of(rng, "l", "x", "y", x)
    return Case("convolution", layer, {"x": x})


def deconvolution(rng: Draw) -> Case:
    # Most of what is drawn at random is too large, or no upsampling at all.
    if rng.random() < 0.5:
        factor = rng.choice((2, 2, 2, 4, 4, 8, 16, 32))
        kernel, stride, dilation = (factor * rng.choice((1, 2, 2, 4)),) * 2, (factor,) * 2, (1, 1)
        pad = twice(rng, lambda: rng.choice((0, factor // 2, rng.randrange(kernel[0]))))
    else:
        kernel, stride, pad, dilation = window(rng, 16)
    size = image(rng, most=24)
    x = (some(rng, 1, 16), channels(rng), *size)
    far = reach(kernel, dilation)
    made = [s * (n - 1) + r - 2 * p for n, s, r, p in zip(size, stride, far, pad, strict=True)]
    if min(made) < 1:
        raise TooLarge
    group, outputs = groups(rng, x[1], channels(rng))
    weights = x[1] * outputs // group * math.prod(kernel)
    check_work(weights * x[0] * math.prod(size), x[0] * outputs * math.prod(made), weights)
    holes = f"dilation: {dilation[0]} dilation: {dilation[1]}"
    sizes = words(kernel=kernel, stride=stride, pad=pad)
    bias = "" if rng.random() < 0.8 else "bias_term: false"
    options = f"num_output: {outputs} group: {group} {sizes} {holes} {bias}"
    layer = text("l", "Deconvolution", "x", "y", f"convolution_param {{ {options} }}")
    return Case("deconvolution", layer, {"x": x})


def pooling(rng: Draw) -> Case:
    x = images(rng)
    method = rng.choice(("MAX", "AVE"))
    if rng.random() < 0.15:
        options = "global_pooling: true"
        taps = x[2] * x[3]
        made = x[:2]
    else:
        kernel = twice(rng, lambda: rng.choice((1, 2, 2, 3, 3, 4, 5, 7, 8, 13, 16)))
        stride = twice(rng, lambda: rng.choice((1, 2, 2, 3, 4, 8)))
        high, wide = (rng.choice((0, k // 2, rng.randrange(k))) for k in kernel)
        room = [n + 2 * p - k for n, p, k in zip(x[2:], (high, wide), kernel, strict=True)]
        # A window behind the last value holds nothing: Caffe divides by 0.
        last = [-(r // -s) * s for r, s in zip(room, stride, strict=True)]
        if min(room) < 0 or (high + wide == 0 and (last[0] >= x[2] or last[1] >= x[3])):
            raise TooLarge
        options = words(kernel=kernel, stride=stride, pad=(high, wide))
        taps = math.prod(kernel)
        made = (*x[:2], *(n // s + 2 for n, s in zip(room, stride, strict=True)))
    check_work(math.prod(made) * taps * 4, math.prod(x), 0)
    layer = text("l", "Pooling", "x", "y", f"pooling_param {{ pool: {method} {options} }}")
    return in_front(rng, Case("pooling", layer, {"x": x}))


def inner_product(rng: Draw) -> Case:
    x: tuple[int, ...] = (some(rng, 1, 256), channels(rng))
    if rng.random() < 0.5:
        x = (some(rng, 1, 32), channels(rng), *image(rng, most=14))
    outputs = rng.choice((10, 1000, 4096)) if rng.random() < 0.3 else channels(rng)
    weights = math.prod(x[1:]) * outputs
    check_work(weights * x[0], math.prod(x), weights)
    options = f"num_output: {outputs} transpose: {str(rng.random() < 0.2).lower()}"
    options += "" if rng.random() < 0.7 else " bias_term: false"
    layer = text("l", "InnerProduct", "x", "y", f"inner_product_param {{ {options} }}")
    made = Case("inner product", layer, {"x": x})
    return in_front(rng, made) if len(x) == 4 else made


def lrn(rng: Draw) -> Case:
    x = images(rng)
    within = rng.random() < 0.3
    size = rng.choice((1, 3, 5, 5, 7, 9))
    if within:
        x = (*x[:2], *image(rng, most=16))
    alpha, beta = rng.choice((1e-4, 0.1, 1.0)), rng.choice((0.75, 0.75, 0.5, 1.0))
    check_work(math.prod(x) * 20, math.prod(x), 0)
    options = f"local_size: {size} alpha: {alpha} beta: {beta} k: {rng.choice((1, 2))}"
    options += " norm_region: WITHIN_CHANNEL" if within else ""
    return in_front(
        rng, Case("LRN", text("l", "LRN", "x", "y", f"lrn_param {{ {options} }}"), {"x": x})
    )


def batch_norm(rng: Draw) -> Case:
    x = images(rng)
    if x[0] * x[2] * x[3] < 4:
        raise TooLarge
    check_work(0, math.prod(x), 0)
    options = f"batch_norm_param {{ eps: {rng.choice((1e-5, 1e-3))} }}"
    return in_front(rng, Case("BatchNorm", text("l", "BatchNorm", "x", "y", options), {"x": x}))


def scale(rng: Draw) -> Case:
    x = images(rng)
    check_work(0, math.prod(x), 0)
    options = f"scale_param {{ bias_term: {str(rng.random() < 0.7).lower()} }}"
    return in_front(rng, Case("Scale", text("l", "Scale", "x", "y", options), {"x": x}))


def eltwise(rng: Draw) -> Case:
    x = images(rng)
    check_work(0, math.prod(x) * 3, 0)
    names = ["x", "z", "v"][: rng.choice((2, 2, 3))]
    operation = rng.choice(("SUM", "SUM", "PROD", "MAX"))
    coeffs = " ".join(f"coeff: {rng.choice((1, -1, 0.5))}" for _ in names)
    options = (
        f"operation: {operation} {coeffs if operation == 'SUM' and rng.random() < 0.5 else ''}"
    )
    layer = text("l", "Eltwise", " ".join(names), "y", f"eltwise_param {{ {options} }}")
    return in_front(rng, Case("Eltwise", layer, dict.fromkeys(names, x)))


def softmax(rng: Draw) -> Case:
    x = images(rng) if rng.random() < 0.6 else (some(rng, 1, 256), channels(rng))
    check_work(0, math.prod(x), 0)
    made = Case("Softmax", text("l", "Softmax", "x", "y"), {"x": x})
    return in_front(rng, made) if len(x) == 4 else made


def recurrent(rng: Draw) -> Case:
    kind = rng.choice(("LSTM", "RNN"))
    steps, streams, inputs, units = (
        some(rng, 1, 24), some(rng, 1, 64), some(rng, 1, 1024), some(rng, 1, 1024)
    )  # fmt: skip
    weights = units * (inputs + units) * (4 if kind == "LSTM" else 2)
    check_work(weights * steps * streams, steps * streams * (inputs + units), weights)
    options = f"recurrent_param {{ num_output: {units} }}"
    layer = text("l", kind, "x cont", "y", options)
    return Case(kind, layer, {"x": (steps, streams, inputs), "cont": (steps, streams)})


def in_front(rng: Draw, case: Case) -> Case:
    """Half of the layers read what a convolution has made, in its layout."""
    if rng.random() < 0.5:
        return case
    front, shape = "", case.inputs["x"]
    check_work(math.prod(shape) * shape[1], 0, 0)
    layers = case.layers
    for name in case.inputs:
        options = f"convolution_param {{ num_output: {shape[1]} kernel_size: 1 }}"
        front += text(f"front_{name}", "Convolution", name, f"{name}0", options)
        layers = layers.replace(f'bottom: "{name}"', f'bottom: "{name}0"')
    return case.but(layers=front + layers)


BATCH_NORM = "batch_norm_param { eps: 0.001 }"
SCALE = "scale_param { bias_term: true }"


def chain(rng: Draw) -> Case:
    """A convolution of the test phase, with what it may compute too, and a reader."""
    x = images(rng)
    layers, made = convolution_of(rng, "l", "x", "y", x)
    inputs, blob, number = {"x": x}, "y", 0
    in_place = rng.random() < 0.5
    for kind, options in (("BatchNorm", BATCH_NORM), ("Scale", SCALE)):
        if rng.random() < 0.6:
            number += 1
            top = blob if in_place else f"y{number}"
            layers += text(f"l{number}", kind, blob, top, options)
            blob = top
    if rng.random() < 0.5:
        inputs["z"] = made
        layers += text("sum", "Eltwise", rng.choice((f"{blob} z", f"z {blob}")), "s")
        blob = "s"
    if rng.random() < 0.6:
        layers += text("relu", "ReLU", blob, blob)
    if rng.random() < 0.5:
        stride = rng.choice((1, 2))
        check_work(math.prod(made) * 32 / stride, 0, 0)
        options = f"num_output: {rng.choice((8, 16, 21, 32))} kernel_size: 1 stride: {stride}"
        layers += text("last", "Convolution", blob, "last", f"convolution_param {{ {options} }}")
    return Case("chain", layers, inputs, phase="TEST", keep_blobs=False, backward=False)


def training(rng: Draw) -> Case:
    """What training computes together: in place behind a convolution."""
    x = images(rng)
    layers, made = convolution_of(rng, "l", "x", "y", x)
    if made[0] * made[2] * made[3] < 4:
        raise TooLarge
    inputs = {"x": x}
    if rng.random() < 0.7:
        # A bias would be taken away again, and in bfloat16 the values' last digits with it.
        layers = layers.replace("} } ", "bias_term: false } } ") if "bias" not in layers else layers
        layers += text("bn", "BatchNorm", "y", "y", BATCH_NORM)
        layers += text("scale", "Scale", "y", "y", SCALE) if rng.random() < 0.7 else ""
    blob = "y"
    if rng.random() < 0.3:
        inputs["z"] = made
        layers += text("sum", "Eltwise", "y z", "s")
        blob = "s"
    layers += text("relu", "ReLU", blob, blob) if rng.random() < 0.7 else ""
    if rng.random() < 0.5:
        check_work(math.prod(made) * 16, 0, 0)
        options = "convolution_param { num_output: 16 kernel_size: 1 }"
        layers += text("last", "Convolution", blob, "last", options)
    return Case("training", layers, inputs)


KINDS: dict[str, tuple[Callable[[Draw], Case], int]] = {
    "convolution": (convolution, 6),
    "deconvolution": (deconvolution, 5),
    "pooling": (pooling, 3),
    "inner product": (inner_product, 2),
    "LRN": (lrn, 2),
    "BatchNorm": (batch_norm, 2),
    "Scale": (scale, 1),
    "Eltwise": (eltwise, 1),
    "Softmax": (softmax, 1),
    "recurrent": (recurrent, 2),
    "chain": (chain, 4),
    "training": (training, 3),
}
"""How each is drawn, and how often."""

IN_INT8 = ("convolution", "inner product", "chain", "pooling")


def draw(rng: Draw, precisions: tuple[str, ...] = ("float32",), kind: str = "") -> Case:
    """A case that is not too large, in one of these precisions."""
    precision = rng.choice(precisions)
    names = IN_INT8 if precision == "int8" else tuple(KINDS)
    if kind:
        names = (kind,)
    weights = [KINDS[name][1] for name in names]
    name = rng.choices(names, weights)[0]
    while True:
        try:
            case = KINDS[name][0](rng)
            break
        except TooLarge:
            continue
    case = case.but(precision=precision, threads=rng.choice((1, 2)), seed=rng.randrange(1000))
    if name not in ("chain", "training"):
        case = case.but(phase=rng.choice(("TRAIN", "TEST")), keep_blobs=rng.random() < 0.7)
        case = case.but(backward=case.phase == "TRAIN" or (case.keep_blobs and rng.random() < 0.3))
        if case.backward and "front" in case.layers:  # which value is the largest must be seen
            case = case.but(keep_blobs=True)
    if precision == "int8":
        case = case.but(phase="TEST", backward=False)
    return case
