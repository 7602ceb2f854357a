"""The `param_str` of the layers: a mapping, as YAML or Python write it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any


def settings(param_str: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults, replaced by what the text says: ``'feat_stride': 16``, an entry a line."""
    lines = [line.strip().rstrip(",") for line in param_str.splitlines() if line.strip()]
    text = ", ".join(lines).replace("!!python/tuple", "").strip("{}")
    try:
        given = ast.literal_eval("{" + text + "}")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        given = _plain(lines)
    return {**defaults, **given}


def _plain(lines: list[str]) -> dict[str, Any]:
    """Keys without quotes, as YAML allows."""
    found = {}
    for line in lines:
        key, separator, value = line.strip("{}").partition(":")
        try:
            found[key.strip().strip("'\"")] = ast.literal_eval(value.strip())
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"param_str cannot be read: {line[:80]!r}") from error
        if not separator:
            raise ValueError(f"param_str cannot be read: {line[:80]!r}")
    return found
