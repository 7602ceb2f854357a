"""How long a net's passes and its updates take, layer by layer; pycaffe's stop watch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

import numpy as np

from sparknet.caffe.net import Net
from sparknet.graph import Graph

WARM_UP = 2
"""Passes that are not measured: memory is touched, threads start."""


@dataclass(frozen=True)
class Iteration:
    """One pass through everything, in nanoseconds; starts count from the first iteration's."""

    forward: list[float]
    """One number a layer."""
    backward: list[float]
    starts: tuple[int, int, int]
    """When the forward pass, the backward pass and the update began."""
    spans: tuple[int, int, int]
    """How long they took, including everything between the layers; 0: there was none."""


@dataclass(frozen=True)
class Timing:
    """The measured iterations of a net."""

    graph: Graph
    iterations: list[Iteration]
    methods: list[dict[str, str]]
    """For each layer which loops compute its values and its gradients."""

    def forward_ms(self, layer: int) -> float:
        return median(one.forward[layer] for one in self.iterations) / 1e6

    def backward_ms(self, layer: int) -> float:
        return median(one.backward[layer] for one in self.iterations) / 1e6

    def span_ms(self, which: int) -> float:
        """Return the median of the forward passes (0), backward passes (1) or updates (2)."""
        return median(one.spans[which] for one in self.iterations) / 1e6

    @property
    def step_ms(self) -> float:
        return median(sum(one.spans) for one in self.iterations) / 1e6


def measure(net: Net, iterations: int, backward: bool, update: Callable[[], Any] | None) -> Timing:
    """Time passes of a net on its inputs; ``update`` runs after each backward pass."""
    last = len(net.layers) - 1
    done: list[Iteration] = []
    origin = 0
    try:
        for number in range(WARM_UP + iterations):
            net.time_layers(True)
            marks = [perf_counter_ns()]
            net._forward(0, last)
            marks.append(perf_counter_ns())
            if backward:
                net._backward(last, 0)
            marks.append(perf_counter_ns() if backward else marks[-1])
            if update is not None:
                update()
                net.clear_param_diffs()
            marks.append(perf_counter_ns() if update is not None else marks[-1])
            if number == WARM_UP:
                origin = marks[0]
            if number >= WARM_UP:
                done.append(_iteration(net, marks, origin))
    finally:
        net.time_layers(False)
    methods = [net._runtime.engine.methods(layer) for layer in range(last + 1)]
    return Timing(net.graph, done, methods)


def _iteration(net: Net, marks: list[int], origin: int) -> Iteration:
    first, second, third, end = (mark - origin for mark in marks)
    spans = (second - first, third - second, end - third)
    return Iteration(*net.layer_times(), (first, second, third), spans)


def fill_inputs(net: Net, seed: int = 1) -> None:
    """Noise into inputs that are numbers, 0 into labels and indices, 1 into sequence marks."""
    rng = np.random.default_rng(seed)
    for name in net.inputs:
        values = net.blobs[name].data
        meaning = _meaning(net.graph, name)
        if meaning == "numbers":
            values[...] = rng.standard_normal(values.shape, np.float32)
        else:
            values[...] = 1 if meaning == "marks" else 0


def _meaning(graph: Graph, blob: str) -> str:
    """Return what a blob holds, according to the first layer that computes with it."""
    for node in graph.nodes:
        if blob in node.bottoms:
            if node.layer.is_view and node.tops and blob not in node.tops:
                return _meaning(graph, node.tops[0])
            return node.layer.takes(node.bottoms.index(blob))
    return "numbers"


class Timer:
    def __init__(self) -> None:
        self._begin: float | None = None
        self._seconds = 0.0

    def start(self) -> None:
        """Start, unless it runs already."""
        if self._begin is None:
            self._begin = time.perf_counter()

    def stop(self) -> None:
        if self._begin is not None:
            self._seconds, self._begin = time.perf_counter() - self._begin, None

    @property
    def ms(self) -> float:
        """Milliseconds of the last run; a running timer stops."""
        self.stop()
        return 1000 * self._seconds
