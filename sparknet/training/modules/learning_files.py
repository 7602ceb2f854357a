"""How a module learns, as files: its names of code, and the numbers that it begins with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from sparknet.errors import FileError, SettingError
from sparknet.training.modules.module_files import (
    called,
    code_of,
    makes,
    read_state,
    write_state,
)
from sparknet.training.modules.named_code import NamedCode, Role

STATE = "module.safetensors"
ROLES: tuple[Role, ...] = get_args(Role)
"""The settings that are code."""


def write_learning(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write what a module learns from; returns the names of its code, as JSON."""
    import torch

    said: dict[str, Any] = {role: _said(role, given[role]) for role in ROLES}
    if isinstance(given["module"], torch.nn.Module):
        write_state(folder / STATE, given["module"])
    return said


def read_learning(said: Any, folder: Path, trusted: bool) -> dict[str, Any]:
    """The settings that are code; the numbers are those that were written."""
    if not isinstance(said, dict) or said.keys() != set(ROLES):
        raise FileError(folder, "is no description of how a module learns")
    found: dict[str, Any] = {role: _found(role, said[role], folder, trusted) for role in ROLES}
    if (folder / STATE).exists():
        made = called(found["module"], folder)
        read_state(folder / STATE, made)
        found["module"] = made
    return found


def _said(role: Role, given: Any) -> dict[str, Any] | None:
    import torch

    if given is None or (role == "lr_schedule" and isinstance(given, dict)):
        return given
    code = code_of(given)
    is_made = isinstance(given, torch.nn.Module)
    if code is not None and is_made and not _is_like(role, code, given):
        code = None
    if code is None:
        what = getattr(given, "__qualname__", type(given).__name__)
        raise SettingError(
            f"the {role} '{what}' cannot be saved, as no name stands for it as it is: give a class "
            "without arguments, a function or a functools.partial of one, from a file that Python "
            "can import"
        )
    return code.said()


def _is_like(role: Role, code: NamedCode, given: Any) -> bool:
    """Whether the class of a module or loss makes one like it without arguments."""
    if not makes(code, given):
        return False
    return role == "module" or _settings(code.found(role, "", True)()) == _settings(given)


def _settings(loss: Any) -> dict[str, Any]:
    """The settings of a loss: none of them are in what torch prints."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in {**vars(loss), **loss._buffers}.items()
        if not name.startswith("_")
    }


def _found(role: Role, said: Any, folder: Path, trusted: bool) -> Any:
    if said is None:
        return None
    if role == "lr_schedule" and isinstance(said, dict) and "path" not in said:
        return said
    found = NamedCode.read(said, folder).found(role, folder, trusted)
    # A loss that is a class is used by its object, all else by calling it.
    return found() if role == "loss" and isinstance(found, type) else found
