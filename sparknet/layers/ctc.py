"""crnn.caffe: text in pictures (Shi et al., 2015), and its loss (Graves et al., 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from sparknet.layers.host import Blobs, Host, class_numbers, rows_of
from sparknet.layers.layer import INTERPRETED, Layer, Plan, Shape, count, exactly, layer, shape_text
from sparknet.layers.losses import Loss
from sparknet.layers.source_layer import SourceLayer

Array = np.ndarray[Any, Any]


class CtcLossHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        scores = bottoms[0].data.astype(np.float64)
        labels = class_numbers(self.node, bottoms[1].data, scores.shape[2])
        labels = rows_of(labels.reshape(bottoms[1].shape))
        self.slope, total = np.zeros_like(scores), 0.0
        times = values["time_step"]
        for number, row in enumerate(labels):
            target = row[row != values["blank"]]
            cost, slope = ctc(scores[:times, number], target, values["blank"])
            total += cost
            self.slope[:times, number] = slope
        tops[0].data[...] = total / max(len(labels), 1)

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        if propagate_down[0]:
            bottoms[0].diff[...] = self.slope * float(tops[0].diff)


def ctc(scores: Array, target: Array, blank: int) -> tuple[float, Array]:
    """Return the negative log of a sequence's chance, and its slope by scores (time x classes)."""
    logs = scores - scores.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    states = np.full(2 * len(target) + 1, blank)
    states[1::2] = target
    skips = np.zeros(len(states), bool)
    skips[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    before = _chances(logs[:, states], skips)
    # From the end the same states lie the other way round; a skip belongs to its target.
    back = np.zeros(len(states), bool)
    back[2:] = skips[2:][::-1]
    after = _chances(logs[::-1][:, states[::-1]], back)[::-1, ::-1]
    both = before + after - logs[:, states]
    total = np.logaddexp.reduce(before[-1, -2:])
    if not np.isfinite(total):
        return 0.0, np.zeros_like(scores)
    visited = np.zeros_like(scores)
    for place, state in enumerate(states):
        visited[:, state] += np.exp(both[:, place] - total)
    return -float(total), np.exp(logs) - visited


def _chances(logs: Array, skips: Array) -> Array:
    """Return the logarithm of the chance of all ways to each time and state."""
    chances = np.full(logs.shape, -np.inf)
    chances[0, :2] = logs[0, :2]
    for time in range(1, len(logs)):
        ways = chances[time - 1].copy()
        ways[1:] = np.logaddexp(ways[1:], chances[time - 1, :-1])
        jumps = np.where(skips[2:], chances[time - 1, :-2], -np.inf)
        ways[2:] = np.logaddexp(ways[2:], jumps)
        chances[time] = ways + logs[time]
    return chances


@layer("CtcLoss")
class CtcLoss(Loss):
    """ctc_loss_layer.cpp of crnn.caffe (Graves et al., Connectionist Temporal Classification);
    bottoms: scores (time x N x alphabet_size) and labels (N x L), blank_label where there is none.

    The mean of the negative logarithms of the labels' chances, by a softmax over the scores; as
    there, the gradient is that of their sum.  A sequence too long for its time has none."""

    host = CtcLossHost
    field = "ctc_loss_param"
    score_function = "softmax"
    is_time_major = True
    other_bottoms = "indices"
    plain_options = ("time_step",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        scores, labels = bottoms
        if len(scores) != 3 or len(labels) < 2 or labels[0] != scores[1]:
            self.fail(
                "takes time x N x alphabet_size scores and N x L labels; they are "
                f"{shape_text(scores)} and {shape_text(labels)}"
            )
        if options.alphabet_size != scores[2] or not 0 <= options.blank_label < scores[2]:
            self.fail(
                f"alphabet_size {options.alphabet_size} must be the last axis of the scores, "
                f"{shape_text(scores)}, and blank_label {options.blank_label} below it"
            )
        if not 0 < options.time_step <= scores[0]:
            self.fail(f"time_step {options.time_step} must be from 1 to {scores[0]}")
        return Plan(((),), values={"blank": options.blank_label})

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        steps: int = plan.values["time_step"]
        return steps * count(bottoms[1][:1]) * max(count(bottoms[1][1:]), INTERPRETED)


class ContinuationIndicatorHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        tops[0].data[...] = 1
        tops[0].data[0] = 0


@layer("ContinuationIndicator")
class ContinuationIndicator(SourceLayer):
    """continuation_indicator_layer.cpp of crnn.caffe: time_step x batch_size, of which the first
    row is 0 and all others are 1."""

    host = ContinuationIndicatorHost
    field = "continuation_indicator_param"
    tops = exactly(1)
    holds_records = False
    fills_itself = True

    def survey(self) -> Plan:
        options = self.options
        if options.time_step < 1 or options.batch_size < 1:
            self.fail(
                "time_step and batch_size must be positive; "
                f"they are {options.time_step} and {options.batch_size}"
            )
        return Plan(((options.time_step, options.batch_size),))


class LabelsequenceAccuracyHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        blank = self.node.plan.values["blank"]
        classes = bottoms[0].data.argmax(2).tolist()
        labels = rows_of(bottoms[1].data).astype(int).tolist()
        right = [
            [label for label, _ in groupby(prediction) if label != blank]
            == [label for label in label if label != blank]
            for prediction, label in zip(classes, labels, strict=True)
        ]
        tops[0].data[...] = sum(right) / max(len(right), 1)


@layer("LabelsequenceAccuracy")
class LabelsequenceAccuracy(Layer):
    """labelsequence_accuracy_layer.cpp of crnn.caffe; bottoms: scores (N x time x classes) and
    labels (N x L), blank_label where there is none.

    The best class of each time, repetitions and blanks left out, must be the labels."""

    host = LabelsequenceAccuracyHost
    field = "labelsequence_accuracy_param"
    bottoms = exactly(2)
    has_gradient = False
    compares_labels = True
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        scores, labels = bottoms
        if len(scores) != 3 or len(labels) < 2 or labels[0] != scores[0] or not scores[2]:
            self.fail(
                "takes N x time x classes scores and N x L labels; they are "
                f"{shape_text(scores)} and {shape_text(labels)}"
            )
        return Plan(((),), values={"blank": self.options.blank_label})
