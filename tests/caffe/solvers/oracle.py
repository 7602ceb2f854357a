"""The updates as formulas in double precision: slow and obvious."""

from typing import Any

import numpy as np

Array = Any


def prepared(gradient, weights, share, clip, decay, l1):
    """Clipped as a whole, divided by iter_size, with the weight decay."""
    norm = np.sqrt((gradient**2).sum())
    if 0 <= clip < norm:
        gradient = gradient * (clip / norm)
    return gradient * share + decay * (np.sign(weights) if l1 else weights)


def sgd(g, h, rate, momentum):
    h[0] = momentum * h[0] + rate * g
    return h[0]


def nesterov(g, h, rate, momentum):
    before, h[0] = h[0], momentum * h[0] + rate * g
    return (1 + momentum) * h[0] - momentum * before


def adagrad(g, h, rate, delta):
    h[0] = h[0] + g**2
    return rate * g / (np.sqrt(h[0]) + delta)


def rmsprop(g, h, rate, decay, delta):
    h[0] = decay * h[0] + (1 - decay) * g**2
    return rate * g / (np.sqrt(h[0]) + delta)


def adadelta(g, h, rate, momentum, delta):
    h[0] = momentum * h[0] + (1 - momentum) * g**2
    change = g * np.sqrt((h[1] + delta) / (h[0] + delta))
    h[1] = momentum * h[1] + (1 - momentum) * change**2
    return rate * change


def adam(g, h, rate, first, second, delta, time):
    h[0] = first * h[0] + (1 - first) * g
    h[1] = second * h[1] + (1 - second) * g**2
    correction = np.sqrt(1 - second**time) / (1 - first**time)
    return rate * correction * h[0] / (np.sqrt(h[1]) + delta)
