"""Observers: who is told of every training of this process, as MLflow's autolog is."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sparknet.training.history import Event
from sparknet.training.progress import LineProgress, Progress, kernel_display

if TYPE_CHECKING:
    from sparknet.training.events import OnEvent
    from sparknet.training.result import Trained


class Observer(ABC):
    """Hears one training from its begin to its end."""

    @abstractmethod
    def hear(self, event: Event) -> None:
        """Handle an event of the training."""

    @abstractmethod
    def done(self, trained: Trained) -> None:
        """Handle the result of the training."""

    @abstractmethod
    def failed(self) -> None:
        """Handle an error or an interruption of the training."""


_makers: list[Callable[[], Observer]] = []
_unheard = ContextVar("unheard", default=False)


@contextmanager
def unheard() -> Iterator[None]:
    """For trainings that only measure something: no observer is told of them."""
    before = _unheard.set(True)
    try:
        yield
    finally:
        _unheard.reset(before)


def listener(given: OnEvent | None) -> OnEvent | None:
    """Return the listener of a training that begins now: a bar on a terminal or in a notebook,
    and elsewhere few lines."""
    if given is not None or _unheard.get():
        return given
    is_watched = getattr(sys.stderr, "isatty", bool)() or kernel_display() is not None
    return Progress() if is_watched else LineProgress()


def observe(make: Callable[[], Observer]) -> None:
    """Let an observer be made for each training from now on."""
    _makers.append(make)


def forget(make: Callable[[], Observer]) -> None:
    """Make no such observer any more."""
    if make in _makers:
        _makers.remove(make)


def observers() -> list[Observer]:
    """Return those of a training that begins now."""
    return [] if _unheard.get() else [make() for make in _makers]
