"""Draws what is computed together: layers behind a convolution or a product."""

import math

from tests.fuzz.kernels.case import Case
from tests.fuzz.kernels.sizes import (
    Draw,
    TooLarge,
    channels,
    check_work,
    convolution_of,
    image,
    images,
    some,
    text,
)

INFERENCE = {"phase": "TEST", "keep_blobs": False, "backward": False}
BATCH_NORM = "batch_norm_param { eps: 0.001 }"
SCALE = "scale_param { bias_term: true }"


FUNCTIONS = (
    'type: "ReLU"',
    'type: "ReLU6"',
    'type: "Clip" clip_param { min: -0.5 max: 1.25 }',
    'type: "Swish"',
    'type: "Swish" swish_param { beta: 1.7 }',
    'type: "Sigmoid"',
    'type: "TanH"',
    'type: "HardSwish"',
    'type: "GELU"',
    'type: "GELU" gelu_param { approximate: TANH }',
)
"""What a pass of the test phase may compute at its end."""


def function(rng: Draw, name: str, bottom: str, top: str) -> str:
    described = rng.choice(FUNCTIONS)
    return f'layer {{ name: "{name}" {described} bottom: "{bottom}" top: "{top}" }} '


def end(rng: Draw, blob: str, shape: tuple[int, ...], inputs: dict[str, tuple[int, ...]]) -> str:
    """Perhaps a sum with another blob, and perhaps a function; the result is `end`, if any."""
    layers = ""
    if rng.random() < 0.5:
        inputs["z"] = shape
        top = rng.choice(("s", "end"))
        layers += text("sum", "Eltwise", rng.choice((f"{blob} z", f"z {blob}")), top)
        blob = top
    if rng.random() < 0.6:
        layers += function(rng, "function", blob, "end")
    return layers


def last_top(layers: str) -> str:
    return layers.rsplit('top: "', 1)[1].split('"')[0]


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
    layers += end(rng, blob, made, inputs)
    blob = last_top(layers)
    if rng.random() < 0.5:
        stride = rng.choice((1, 2))
        check_work(math.prod(made) * 32 / stride, 0, 0)
        options = f"num_output: {rng.choice((8, 16, 21, 32))} kernel_size: 1 stride: {stride}"
        layers += text("last", "Convolution", blob, "last", f"convolution_param {{ {options} }}")
    return Case("chain", layers, inputs).but(**INFERENCE)


def product_chain(rng: Draw) -> Case:
    """A product of the test phase, with what it may compute too."""
    x: tuple[int, ...] = (some(rng, 1, 512), channels(rng))
    outputs = channels(rng)
    check_work(math.prod(x) * outputs, math.prod(x), x[1] * outputs)
    inputs = {"x": x}
    options = f"inner_product_param {{ num_output: {outputs} }}"
    layers = text("l", "InnerProduct", "x", "y", options)
    layers += end(rng, "y", (x[0], outputs), inputs)
    return Case("product chain", layers, inputs).but(**INFERENCE)


def gated(rng: Draw) -> Case:
    """Squeeze-and-excitation: a window for each channel, the mean of each channel, two products
    of few outputs, a factor for each channel of each record, and points."""
    width, side, stride = channels(rng), rng.choice((3, 5, 7)), rng.choice((1, 1, 2))
    x = (some(rng, 1, 8), width, *image(rng, (2, 2), 48))
    check_work(math.prod(x) * (side * side + 64), math.prod(x) * 3, width * width)

    def convolved(top: str, bottom: str, outputs: int, options: str = "kernel_size: 1") -> str:
        described = f"convolution_param {{ num_output: {outputs} {options} }}"
        return text(top, "Convolution", bottom, top, described)

    window = f"group: {width} kernel_size: {side} stride: {stride} pad: {side // 2}"
    layers, from_ = "", "x"
    if rng.random() < 0.5:
        x, from_ = (x[0], rng.choice((3, 8, 16, 24, 40)), *x[2:]), "wide"
        layers = convolved("wide", "x", width) + function(rng, "f0", "wide", "wide")
    layers += convolved("y", from_, width, window)
    layers += function(rng, "f", "y", "f")
    layers += text("m", "Pooling", "f", "m", "pooling_param { pool: AVE global_pooling: true }")
    layers += convolved("few", "m", max(1, width // 4)) + function(rng, "f1", "few", "few")
    layers += convolved("many", "few", width) + function(rng, "f2", "many", "many")
    layers += text("flat", "Flatten", "many", "gate")
    layers += text("s", "Scale", "f gate", "s", "scale_param { axis: 0 num_axes: 2 }")
    layers += convolved("last", "s", rng.choice((8, 16, 21, 24)))
    return Case("gated", layers, {"x": x}).but(**INFERENCE)


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
