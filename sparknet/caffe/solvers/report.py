"""What solvers say while they work, in Caffe's words, so that old log parsers read it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from sparknet.caffe.modes import init_log, log
from sparknet.caffe.net import Net
from sparknet.errors import clean
from sparknet.proto import caffe_pb2

_LEVEL = "GLOG_minloglevel"
_logger = logging.getLogger("sparknet.caffe")


def say(message: str) -> None:
    """Log a line, on stderr if the program has not set up logging (GLOG_minloglevel hides it)."""
    if not _logger.hasHandlers():
        if os.environ.get(_LEVEL, "0") not in ("", "0"):
            return
        init_log()
    log(message)


def say_outputs(
    kind: str, outputs: Mapping[str, np.ndarray[Any, Any]], weights: Mapping[str, float]
) -> None:
    """Log a line for each number of a net's outputs (Caffe: solver.cpp, Step and Test)."""
    numbers = _numbers(outputs.items())
    for place, (name, value) in enumerate(numbers):
        weight = weights.get(name, 0.0)
        loss = f" (* {weight:g} = {weight * value:g} loss)" if weight else ""
        say(f"    {kind} net output #{place}: {clean(name)} = {value:g}{loss}")


def _numbers(outputs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, float]]:
    for name, values in outputs:
        for value in np.ravel(values).tolist():
            yield name, value


class SmoothedLoss:
    """The mean of the last losses.  Caffe: solver.cpp, UpdateSmoothedLoss."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._losses: list[float] = []
        self._count = 0
        self.value = 0.0

    def add(self, loss: float) -> float:
        """Add an iteration's loss, and return the mean with it."""
        if len(self._losses) < self._window:
            self._losses.append(loss)
            size = len(self._losses)
            self.value = (self.value * (size - 1) + loss) / size
        else:
            place = self._count % self._window
            self.value += (loss - self._losses[place]) / self._window
            self._losses[place] = loss
        self._count += 1
        return self.value


class Display:
    """The lines that ``display`` asks for.  Caffe: solver.cpp, Step."""

    def __init__(self, solver: caffe_pb2.SolverParameter, iteration: int) -> None:
        self._every = solver.display
        self._loss = SmoothedLoss(solver.average_loss)
        self._shown, self._since = iteration, time.monotonic()

    def smoothed(self, loss: float) -> float:
        """Return the mean of the last losses, with this one."""
        return self._loss.add(loss)

    def add(self, net: Net, iteration: int, loss: float) -> None:
        """Count an iteration whose passes are done."""
        smoothed = self.smoothed(loss)
        if not self._every or iteration % self._every:
            return
        now = time.monotonic()
        lapse = now - self._since
        speed = (iteration - self._shown) / (lapse or 1)
        say(
            f"Iteration {iteration} ({speed:g} iter/s, {lapse:g}s/{self._every} iters), "
            f"loss = {smoothed:g}"
        )
        self._shown, self._since = iteration, now
        outputs = {name: net.blobs[name].data for name in net.outputs}
        say_outputs("Train", outputs, net.blob_loss_weights)
