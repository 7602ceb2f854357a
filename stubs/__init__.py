"""The types that type checkers read, from layer types and Params: `python -m stubs sparknet`.

A wheel is built where pyspark is not installed: empty classes stand in for pyspark.ml's there.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


class _Empty(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls if name == "_dummy" else f"{cls.__name__}.{name}"


class _Module(ModuleType):
    __path__ = []  # noqa: RUF012 - a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Empty(name, (), {"__init__": lambda self, *words: None})


if importlib.util.find_spec("pyspark") is None:
    for name in ("pyspark", "pyspark.ml", "pyspark.ml.param", "pyspark.ml.util"):
        sys.modules[name] = _Module(name)
