"""Draws layers of the sizes that published nets have."""

import math
from collections.abc import Callable

from tests.fuzz.kernels.attention import attention
from tests.fuzz.kernels.case import Case
from tests.fuzz.kernels.chains import chain, gated, product_chain, training
from tests.fuzz.kernels.sizes import (
    Draw,
    TooLarge,
    channels,
    check_work,
    convolution_of,
    groups,
    image,
    images,
    reach,
    some,
    text,
    twice,
    window,
    words,
)


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
    "product chain": (product_chain, 2),
    "gated": (gated, 2),
    "training": (training, 3),
    "attention": (attention, 3),
}
"""How each is drawn, and how often."""

IN_INT8 = ("convolution", "inner product", "chain", "product chain", "pooling", "attention")


def draw(rng: Draw, precisions: tuple[str, ...] = ("float32",), kind: str = "") -> Case:
    """A case that is not too large, in one of these precisions."""
    precision = rng.choice([one for one in precisions if one != "int8" or kind in ("", *IN_INT8)])
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
    if name == "attention":
        case = case.but(keep_blobs=rng.random() < 0.2)
    elif name not in ("chain", "product chain", "gated", "training"):
        case = case.but(phase=rng.choice(("TRAIN", "TEST")), keep_blobs=rng.random() < 0.7)
        case = case.but(backward=case.phase == "TRAIN" or (case.keep_blobs and rng.random() < 0.3))
        if case.backward and "front" in case.layers:  # which value is the largest must be seen
            case = case.but(keep_blobs=True)
    if precision == "int8":
        case = case.but(phase="TEST", backward=False)
    return case
