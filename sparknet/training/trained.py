"""Trained: the result of a training."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from sparknet.net import Net
from sparknet.summary import History
from sparknet.training.rounds import Outcome
from sparknet.weights import WeightCollection


@dataclass(frozen=True)
class Trained:
    """The result of training."""

    weights: WeightCollection
    history: History = field(repr=False)
    """The events (`sparknet.training.events`); of more than 1024 of a kind, some are left out."""
    net: Net
    """The net, with the trained weights."""
    outcome: Outcome
    module: Any = field(default=None, kw_only=True, repr=False)
    """The module of PyTorch with the trained weights, where one was trained in place of a net."""

    def _repr_html_(self) -> str:
        """The curves, the outcome and the net, in a notebook."""
        outcome = self.outcome
        told: dict[str, Any] = {"ended because": outcome.reason, "iteration": outcome.iteration}
        told |= {"samples": outcome.samples, **outcome.metrics}
        cells = ((name, f"{v:.5g}" if isinstance(v, float) else str(v)) for name, v in told.items())
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in cells
        )
        return f"{self.history._repr_html_()}<table>{rows}</table>{self._described()}"

    def _described(self) -> str:
        return self.net._repr_html_()
