"""OwnRandom: a learner with random numbers of its own, beside others of the same process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from sparknet.net.learner import OnGradient, Steps

_TURN = threading.Lock()
"""Held by the worker of this process that draws random numbers."""


def random_state(seed: int) -> Any:
    """Seed torch's generator, and return its state."""
    import torch

    with _TURN:
        torch.manual_seed(seed)
        return torch.get_rng_state()


class OwnRandom:
    """A `Learner` that computes in turn with the others: torch has one generator for a process."""

    def __init__(self, inner: Any, random: Any) -> None:
        """``random`` is the state of torch's generator at the beginning."""
        self._inner, self._random = inner, random

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def on_gradient(self) -> OnGradient | None:
        call: OnGradient | None = self._inner.on_gradient
        return call

    @on_gradient.setter
    def on_gradient(self, call: OnGradient | None) -> None:
        self._inner.on_gradient = call

    def step(self, count: int) -> Steps:
        done: Steps = self._own(lambda: self._inner.step(count))
        return done

    def compute_gradient(self) -> Steps:
        done: Steps = self._own(self._inner.compute_gradient)
        return done

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._own(self._inner.state)
        return state

    def restore(self, state: Mapping[str, Any]) -> str:
        losses: str = self._own(lambda: self._inner.restore(state))
        return losses

    def _own(self, call: Callable[[], Any]) -> Any:
        """Return what a call gives with this worker's random numbers."""
        import torch

        with _TURN:
            torch.set_rng_state(self._random)
            returned = call()
            self._random = torch.get_rng_state()
        return returned
