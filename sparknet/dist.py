"""The name of `sparknet.training` before version 0.2, for a version."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NOW = "sparknet.training"


class _Alias(MetaPathFinder, Loader):
    """Has each module of the old name be the one of the new name."""

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return import_module(_NOW + spec.name.removeprefix(__name__))

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed under its own name."""


warnings.warn(f"sparknet.dist is called {_NOW} now", DeprecationWarning, stacklevel=2)
sys.meta_path.insert(0, _Alias())
sys.modules[__name__] = import_module(_NOW)
