"""Redo: what a worker keeps of a round until all have finished it.

When a worker is lost in the middle of a synchronisation, those that are left have changed their
buffers, some more than others.  They go back to what they had before it, and synchronise again
among themselves: so a synchronisation is committed by all of a generation or by none, and only what
the lost worker has trained in this round is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from sparknet.native import NDArray
from sparknet.training.learner import Learner, Steps

Json = dict[str, Any]
Arrays = Callable[[], Mapping[str, NDArray]]
Arrived = Callable[[int, float], None]


class Redo:
    """Of one worker's round: what it has trained, and its buffers and numbers before the others'.

    ``arrays`` are the buffers that a synchronisation changes; ``arrived`` hears of a round that was
    trained, and of its seconds.
    """

    def __init__(self, learner: Learner, arrays: Arrays, arrived: Arrived | None = None) -> None:
        self._learner, self._arrays, self._arrived = learner, arrays, arrived
        self._begun = 0.0
        self.done: Steps | None = None
        """What this worker has trained in this round, once that is done."""
        self.before = learner.iter
        """The iteration at the beginning of the round."""
        self.over = 0
        """The steps that made no whole iteration then."""
        self.numbers: Json = {}
        """The strategy's numbers at the beginning of the round."""
        self.learner: Json = {}
        """The learner's state after its training."""
        self.is_open = False
        """Whether a round is under way."""
        self._kept: dict[str, NDArray] = {}
        self._room: dict[str, NDArray] = {}

    def begin(self, numbers: Json) -> None:
        """A round begins, or is gone on with."""
        if self.done is None:
            self.before, self.numbers = self._learner.iter, deepcopy(numbers)
            self._kept = {}
            self._begun = time.monotonic()
        self.is_open = True

    def end(self) -> None:
        """All have finished the round."""
        self.done, self._kept, self.is_open = None, {}, False

    def trained(self, train: Callable[[], Steps]) -> Steps:
        """Train, unless this was done; then keep what the synchronisation will change."""
        if self.done is None:
            done = train()
            self.keep()
            self.done = done
            if self._arrived is not None:
                self._arrived(self.numbers["round"] + 1, time.monotonic() - self._begun)
        return self.done

    def keep(self) -> None:
        """Keep the buffers as they are now."""
        self.learner = self._learner.state()
        for name, array in self._arrays().items():
            room = self._room.get(name)
            if room is None or room.size != array.size:
                room = self._room[name] = array.copy()
            else:
                room.copy_from(array)
            self._kept[name] = room

    def renew(self, arrays: Mapping[str, NDArray]) -> None:
        """Keep some buffers as they are now, if any are kept."""
        self._kept |= {name: one.copy() for name, one in arrays.items() if self._kept}

    def restore(self) -> None:
        """Put back what was kept."""
        if not self._kept:
            return
        arrays = self._arrays()
        for name, kept in self._kept.items():
            if name in arrays and arrays[name].size == kept.size:
                arrays[name].copy_from(kept)
        self._learner.restore(self.learner)
