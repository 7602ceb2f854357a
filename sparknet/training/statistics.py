"""Statistics: BatchNorm's running sums within a flat buffer, treated apart from learned weights.

The sums are averaged linearly, as means over all data seen; momentum, thresholds and lossy codecs
apply to weights that gradients change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from sparknet.native import NDArray
from sparknet.training.comm import Comm
from sparknet.training.learner import Learner
from sparknet.weights import Span


def take(buffer: NDArray, spans: Sequence[Span]) -> NDArray:
    """A copy of the statistics, one after the other."""
    packed = NDArray.empty((sum(end - begin for begin, end in spans),))
    for place, (begin, end) in _places(spans):
        packed[place : place + end - begin].copy_from(buffer[begin:end])
    return packed


def put(buffer: NDArray, spans: Sequence[Span], packed: NDArray) -> None:
    """Write back what `take` returned."""
    for place, (begin, end) in _places(spans):
        buffer[begin:end].copy_from(packed[place : place + end - begin])


def clear(buffer: NDArray, spans: Sequence[Span]) -> None:
    for begin, end in spans:
        buffer[begin:end].fill(0.0)


def average(learner: Learner, comm: Comm) -> None:
    """Average the workers' statistics."""
    if learner.statistics:
        packed = take(learner.weights, learner.statistics)
        comm.mean(packed)
        put(learner.weights, learner.statistics, packed)


def learned(size: int, spans: Sequence[Span]) -> Iterator[Span]:
    """The spans of a buffer that gradients change."""
    begin = 0
    for first, last in spans:
        if begin < first:
            yield begin, first
        begin = last
    if begin < size:
        yield begin, size


def distance(learner: Learner, center: NDArray) -> float:
    """The sum of absolute differences between the weights and a center: ‖x_i - x‖₁."""
    spans = learned(center.size, learner.statistics)
    far: Iterator[float] = (learner.weights[b:e].distance1(center[b:e]) for b, e in spans)
    return sum(far)


def drift(learner: Learner, center: NDArray) -> float:
    """The distance of the weights from a center, relative to its norm: ‖x_i - x‖₂ / ‖x‖₂."""
    far = size = 0.0
    for begin, end in learned(center.size, learner.statistics):
        far += learner.weights[begin:end].distance2(center[begin:end]) ** 2
        size += center[begin:end].norm2() ** 2
    return sqrt(far / size) if size else sqrt(far)


def _places(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    place = 0
    for begin, end in spans:
        yield place, (begin, end)
        place += end - begin
