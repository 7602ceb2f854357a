"""TrainedModule: the result of training a module of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, NoReturn

from sparknet.errors import SpecError
from sparknet.net.heads import Kind
from sparknet.training.modules.module_files import (
    Array,
    SavedModule,
    StrPath,
    save_module,
)
from sparknet.training.modules.named_code import NamedCode
from sparknet.training.trained import Trained


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
        """What a file says of it."""
        return SavedModule.of(self.module, self.made_by, self.inputs, self.first, self.kind)

    def _described(self) -> str:
        return f"<pre>{escape(str(self.module))}</pre>"


NO_NET: Any = NoNet()
