"""The updates as formulas in double precision: slow and obvious."""

from typing import Any

import numpy as np

Array = Any


def prepared(
    gradient: Array, weights: Array, share: float, clip: float, decay: Array, l1: bool
) -> Array:
    """Clipped as a whole, divided by iter_size, with the weight decay."""
    norm = np.sqrt((gradient**2).sum())
    if 0 <= clip < norm:
        gradient = gradient * (clip / norm)
    return gradient * share + decay * (np.sign(weights) if l1 else weights)


def sgd(g: Array, h: list[Array], rate: Array, momentum: float) -> Array:
    h[0] = momentum * h[0] + rate * g
    return h[0]


def nesterov(g: Array, h: list[Array], rate: Array, momentum: float) -> Array:
    before, h[0] = h[0], momentum * h[0] + rate * g
    return (1 + momentum) * h[0] - momentum * before


def adagrad(g: Array, h: list[Array], rate: Array, delta: float) -> Array:
    h[0] = h[0] + g**2
    return rate * g / (np.sqrt(h[0]) + delta)


def rmsprop(g: Array, h: list[Array], rate: Array, decay: float, delta: float) -> Array:
    h[0] = decay * h[0] + (1 - decay) * g**2
    return rate * g / (np.sqrt(h[0]) + delta)


def adadelta(g: Array, h: list[Array], rate: Array, momentum: float, delta: float) -> Array:
    h[0] = momentum * h[0] + (1 - momentum) * g**2
    change = g * np.sqrt((h[1] + delta) / (h[0] + delta))
    h[1] = momentum * h[1] + (1 - momentum) * change**2
    return rate * change


def adam(
    g: Array, h: list[Array], rate: Array, first: float, second: float, delta: float, time: float
) -> Array:
    h[0] = first * h[0] + (1 - first) * g
    h[1] = second * h[1] + (1 - second) * g**2
    correction = np.sqrt(1 - second**time) / (1 - first**time)
    return rate * correction * h[0] / (np.sqrt(h[1]) + delta)
