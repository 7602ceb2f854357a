"""Trained: the result of a training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from sparknet.errors import SpecError
from sparknet.net import Net
from sparknet.net.heads import Kind
from sparknet.net.model_folder import SUFFIXES, save_model
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.scores import Array, confusion_of, without_confusion
from sparknet.torch.modules.named_code import NamedCode
from sparknet.torch.modules.saved_module import SavedModule, StrPath, save_module
from sparknet.training.history import History
from sparknet.training.workers.rounds import Outcome
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

    @property
    def confusion(self) -> Array | None:
        """The last validation's confusion matrix, true classes in rows; None without the metric."""
        return confusion_of(self.outcome.metrics)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder that `sparknet.load`, `SparkModel` and the command line read: the net, its
        weights, what happens to images, and the names of the classes.

        A name that ends in .caffemodel or .h5 makes it that file, as `Net.save` does.
        """
        inputs = ModelInputs(
            self._columns(), self.net.preprocessing, self.net.labels, self.net.features
        )
        if Path(path).suffix in SUFFIXES:
            self.net.save(path)
            inputs.write_beside(path)
        else:
            save_model(self.net, path, inputs)

    def _columns(self) -> dict[str, str]:
        """Return the net's inputs → the columns that it was trained on."""
        return {}

    def _repr_html_(self) -> str:
        """Return the curves, the outcome and the net, in a notebook."""
        outcome = self.outcome
        table: dict[str, Any] = {"ended because": outcome.reason, "iteration": outcome.iteration}
        table |= {"samples": outcome.samples, **without_confusion(outcome.metrics)}
        if self.confusion is not None:
            table["confusion, true classes in rows"] = self.confusion.astype(int).tolist()
        cells = (
            (name, f"{v:.5g}" if isinstance(v, float) else str(v)) for name, v in table.items()
        )
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in cells
        )
        return f"{self.history._repr_html_()}<table>{rows}</table>{self._described()}"

    def _described(self) -> str:
        return self.net._repr_html_()


Result = TypeVar("Result", bound=Trained)


def whole(trained: Result) -> Result:
    """Return a result; raise `Interrupted` with it where Ctrl-C ended the training."""
    if trained.outcome.reason == "interrupted":
        raise Interrupted(trained)
    return trained


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: ``trained`` is the result up to there, with the weights."""

    def __init__(self, trained: Trained) -> None:
        outcome = trained.outcome
        snapshot = outcome.snapshot or "no snapshot, as there is no path for them"
        super().__init__(
            f"interrupted at iteration {outcome.iteration}; left: {snapshot}; the exception's "
            ".trained has the weights"
        )
        self.trained = trained


# -- modules --------------------------------------------------------------------------------


class NoNet:
    """What stands in the place of the net."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise SpecError("a module was trained and no net: the result has it as module")

    def __repr__(self) -> str:
        return "no net"


@dataclass(frozen=True)
class TrainedModule(Trained):
    """The result of training a module; `module` is a copy of the user's, with trained weights."""

    inputs: dict[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    """The arguments of its forward → the columns that it was trained on."""
    first: Mapping[str, Array] = field(default_factory=dict, kw_only=True, repr=False)
    """A few records by argument, which say what the module is given."""
    kind: Kind | None = field(default=None, kw_only=True)
    """What the loss takes the numbers of the first output for."""
    made_by: NamedCode | None = field(default=None, kw_only=True, repr=False)
    """What makes such a module, if that has a name."""

    def save(self, path: StrPath) -> None:
        """Write a folder of the weights and the name of what makes the module, which
        `sparknet.load` and `ModuleModel.load` read; a .safetensors with a JSON file beside it too.
        """
        save_module(self.module, self.saved(), path)

    def saved(self) -> SavedModule:
        """Return what a file says of it."""
        return SavedModule.of(self.module, self.made_by, self.inputs, self.first, self.kind)

    def _described(self) -> str:
        return f"<pre>{escape(str(self.module))}</pre>"


NO_NET: Any = NoNet()
