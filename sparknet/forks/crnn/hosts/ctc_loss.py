"""CtcLoss: chances of all ways to say a sequence (crnn.caffe: ctc_loss_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.classes import class_numbers
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of

Array = np.ndarray[Any, Any]


class CtcLossHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        scores = bottoms[0].data.astype(np.float64)
        labels = class_numbers(self.node, bottoms[1].data, scores.shape[2])
        labels = rows_of(labels.reshape(bottoms[1].shape))
        self.slope, total = np.zeros_like(scores), 0.0
        times = values["time_step"]
        for number, row in enumerate(labels):
            wanted = row[row != values["blank"]]
            cost, slope = ctc(scores[:times, number], wanted, values["blank"])
            total += cost
            self.slope[:times, number] = slope
        tops[0].data[...] = total / max(len(labels), 1)

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        if propagate_down[0]:
            bottoms[0].diff[...] = self.slope * float(tops[0].diff)


def ctc(scores: Array, wanted: Array, blank: int) -> tuple[float, Array]:
    """The negative logarithm of a sequence's chance, and its slope by scores (time x classes)."""
    logs = scores - scores.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    states = np.full(2 * len(wanted) + 1, blank)
    states[1::2] = wanted
    skips = np.zeros(len(states), bool)
    skips[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    before = _reached(logs[:, states], skips)
    # From the end the same states lie the other way round; a skip belongs to its target.
    back = np.zeros(len(states), bool)
    back[2:] = skips[2:][::-1]
    after = _reached(logs[::-1][:, states[::-1]], back)[::-1, ::-1]
    both = before + after - logs[:, states]
    total = np.logaddexp.reduce(before[-1, -2:])
    if not np.isfinite(total):
        return 0.0, np.zeros_like(scores)
    visited = np.zeros_like(scores)
    for place, state in enumerate(states):
        visited[:, state] += np.exp(both[:, place] - total)
    return -float(total), np.exp(logs) - visited


def _reached(logs: Array, skips: Array) -> Array:
    """Of each time and state the logarithm of the chance of all ways there."""
    found = np.full(logs.shape, -np.inf)
    found[0, :2] = logs[0, :2]
    for time in range(1, len(logs)):
        ways = found[time - 1].copy()
        ways[1:] = np.logaddexp(ways[1:], found[time - 1, :-1])
        jumps = np.where(skips[2:], found[time - 1, :-2], -np.inf)
        ways[2:] = np.logaddexp(ways[2:], jumps)
        found[time] = ways + logs[time]
    return found
