"""Callbacks: functions that run before and after each layer of a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Callback = Callable[[int], Any]


class Callbacks:
    """The callbacks of one net.  Caffe: net.hpp, before_forward_ and its three companions."""

    def __init__(self) -> None:
        self.before_forward: list[Callback] = []
        self.after_forward: list[Callback] = []
        self.before_backward: list[Callback] = []
        self.after_backward: list[Callback] = []

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def forward(self, work: Callable[[int, int], float], layers: range) -> float:
        """Return the loss of layers that run from the first to the last, by number."""
        return _run(work, layers, self.before_forward, self.after_forward)

    def backward(self, work: Callable[[int, int], None], layers: range) -> None:
        _run(work, layers, self.before_backward, self.after_backward)


def _run(
    work: Callable[[int, int], Any], layers: range, before: list[Callback], after: list[Callback]
) -> float:
    """Return all layers at once if there are no callbacks, else one by one."""
    if not (before or after):
        return (work(layers[0], layers[-1]) or 0.0) if layers else 0.0
    total = 0.0
    for layer in layers:
        for callback in before:
            callback(layer)
        total += work(layer, layer) or 0.0
        for callback in after:
            callback(layer)
    return total
