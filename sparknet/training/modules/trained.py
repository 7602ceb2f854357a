"""TrainedModule: the result of training a module of PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NoReturn

from sparknet.errors import SpecError
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

    def _described(self) -> str:
        return f"<pre>{escape(str(self.module))}</pre>"


NO_NET: Any = NoNet()
