"""The sizes that layers of published nets have."""

import math
import random
from collections.abc import Callable

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
    if drawn < 0.7:
        return 1, outputs
    if drawn < 0.75:
        width = rng.choice([n for n in (4, 8, 16) if inputs % n == 0] or [1])
        return inputs // width, inputs
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
