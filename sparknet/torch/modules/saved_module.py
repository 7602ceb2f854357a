"""A module as files: its state dict, and as JSON what makes it (docs/decisions/0024)."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from sparknet.errors import FileError, SettingError, clean, extra
from sparknet.net.files import output_file
from sparknet.net.heads import Kind
from sparknet.net.model_folder import write_folder
from sparknet.net.model_inputs import ModelInputs
from sparknet.torch.modules.flat_module import tensors_of
from sparknet.torch.modules.named_code import NamedCode, Role
from sparknet.weights.safetensors import SUFFIX, read_tensors, write_tensors

Array = np.ndarray[Any, Any]
StrPath = str | os.PathLike[str]

MODULE = "module.safetensors"
"""The state dict in a model's folder."""
_LARGEST = 1 << 24
_KINDS = ("classes", "labels", "numbers", None)


@dataclass(frozen=True)
class SavedModule:
    """What is known of a module beside its numbers."""

    name: str
    """That of its class."""
    made_by: NamedCode | None
    """What makes it, if that has a name."""
    columns: dict[str, str]
    """The arguments of its forward → columns."""
    inputs: dict[str, tuple[tuple[int, ...], str]]
    """The arguments → the shape of a record, and its type."""
    kind: Kind | None = None
    """What the numbers of its first output are."""

    @classmethod
    def of(
        cls,
        module: Any,
        made_by: NamedCode | None,
        columns: Mapping[str, str],
        records: Mapping[str, Array],
        kind: Kind | None,
    ) -> SavedModule:
        return cls(
            type(module).__name__,
            made_by if made_by is not None and makes(made_by, module) else None,
            {name: columns.get(name, name) for name in records},
            {name: (one.shape[1:], one.dtype.name) for name, one in records.items()},
            kind,
        )

    @property
    def records(self) -> dict[str, Array]:
        """Records of zeros, in the shapes that the module is given."""
        return {name: np.zeros((2, *shape), kind) for name, (shape, kind) in self.inputs.items()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "module": self.name,
            "made_by": None if self.made_by is None else self.made_by.to_dict(),
            "columns": self.columns,
            "inputs": {
                name: {"shape": list(shape), "dtype": kind}
                for name, (shape, kind) in self.inputs.items()
            },
            "kind": self.kind,
        }

    @classmethod
    def read(cls, said: Any, where: Any) -> SavedModule:
        try:
            inputs = {
                str(name): (_shape(one["shape"]), _type(one["dtype"]))
                for name, one in said["inputs"].items()
            }
            columns, kind, name = said["columns"], said["kind"], said["module"]
            is_sound = isinstance(name, str) and kind in _KINDS and columns.keys() == inputs.keys()
            if not is_sound or not all(isinstance(one, str) for one in columns.values()):
                raise ValueError("its parts do not fit each other")
            made_by = said["made_by"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FileError(where, f"is no description of a module: {error!r}") from error
        code = None if made_by is None else NamedCode.read(made_by, where)
        return cls(name, code, dict(columns), inputs, kind)

    def module(self, given: Any, where: Any, trusted: bool) -> Any:
        """Return the module without its numbers; ``given`` is one, or what makes one."""
        import torch

        if isinstance(given, torch.nn.Module):
            return copy.deepcopy(given)
        if given is None:
            if self.made_by is None:
                raise FileError(
                    where,
                    f"does not name what makes its module '{clean(self.name)}': give module=, "
                    "a module like it or a function that makes one",
                )
            return called(self.made_by.load("module", where, trusted), where)
        return called(given, where)


def made_module(given: Any) -> Any:
    """Return the module that was given, or that a function makes."""
    with extra("torch", "torch", "a module of PyTorch"):
        import torch
    return given if isinstance(given, torch.nn.Module) else called(given)


def called(given: Any, where: Any = None) -> Any:
    """Return the module that a function makes."""
    import torch

    kind = getattr(given, "__qualname__", type(given).__name__)
    if not callable(given):
        raise SettingError(
            "module must be a module of PyTorch, or a function that makes one, not "
            f"{type(given).__name__}"
        )
    try:
        module = given()
    except Exception as error:
        if where is None:
            raise
        why = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        raise FileError(where, f"is of a module that cannot be made: {why}") from error
    if not isinstance(module, torch.nn.Module):
        raise SettingError(f"'{kind}' makes no module of PyTorch, but {type(module).__name__}")
    return module


def makes(code: NamedCode, module: Any) -> bool:
    """Return whether what the code makes has the parts of this module."""
    import torch

    try:
        with torch.random.fork_rng(devices=[]):
            similar = called(code.load("module", "", True))
    except Exception:
        return False
    return str(similar) == str(module) and _shapes(similar) == _shapes(module)


def code_of(given: Any) -> NamedCode | None:
    """Return the name of what makes such a module: its class, or the function that was given."""
    return NamedCode.of_object(given) or NamedCode.of(given)


# -- numbers -------------------------------------------------------------------------------------


def write_state(path: StrPath, module: Any) -> None:
    """Write a module's state dict, in its own types but for those that numpy lacks."""
    import torch

    arrays = {}
    for name, one in tensors_of(module).items():
        values = one.detach().cpu()
        arrays[name] = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    write_tensors(path, arrays, "own")


def read_state(path: StrPath, module: Any) -> None:
    """Let a module have the numbers of a file; FileError where they are not a module's like it."""
    import torch

    arrays, tensors = read_tensors(path), tensors_of(module)
    kind = type(module).__name__
    for name in tensors:
        if name not in arrays:
            raise FileError(path, f"has no '{clean(name)}', which module '{kind}' has")
    for name, values in arrays.items():
        if name not in tensors:
            raise FileError(path, f"has '{clean(name)}', which module '{kind}' does not have")
        one = tensors[name]
        if values.shape != tuple(one.shape):
            raise FileError(
                path,
                f"'{clean(name)}' is {list(values.shape)}; that of module '{kind}' is "
                f"{list(one.shape)}",
            )
        if (values.dtype.kind == "f") != one.dtype.is_floating_point:
            raise FileError(
                path, f"'{clean(name)}' is {values.dtype}; that of module '{kind}' is {one.dtype}"
            )
    with torch.no_grad():
        for name, one in tensors.items():
            one.copy_(torch.from_numpy(arrays[name]))


# -- both ----------------------------------------------------------------------------------------


def beside(path: StrPath) -> str:
    """Return the path of the JSON file next to a state dict."""
    return os.fspath(path).removesuffix(SUFFIX) + ModelInputs.SUFFIX


def save_module(module: Any, saved: SavedModule, path: StrPath) -> None:
    """Write a module's folder; or its state dict as .safetensors, and the rest beside it."""
    if not os.fspath(path).endswith(SUFFIX):

        def fill(folder: Path) -> dict[str, Any]:
            write_state(folder / MODULE, module)
            return {"module": saved.to_dict()}

        write_folder(path, fill, f"a folder, or as one of {SUFFIX}")
        return
    with output_file(os.fspath(path)) as file:
        write_state(file, module)
    with output_file(beside(path)) as file:
        file.write_text(json.dumps(saved.to_dict(), indent=1), encoding="utf-8")


def read_description(path: Path, name: str) -> SavedModule:
    """Return what a JSON file says, which is called ``name`` in messages."""
    try:
        if path.stat().st_size > _LARGEST:
            raise FileError(name, "is too large")
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(name, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise FileError(name, f"is no description of a module: {error}") from error
    return SavedModule.read(facts, name)


def _shapes(module: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(one.shape) for name, one in tensors_of(module).items()}


def _shape(said: Any) -> tuple[int, ...]:
    if not isinstance(said, list) or not all(type(one) is int and one >= 0 for one in said):
        raise ValueError(f"a shape is {said!r}")
    if len(said) > 32 or int(np.prod(said, dtype=object)) > _LARGEST:
        raise ValueError(f"a record has the shape {said!r}")
    return tuple(said)


def _type(said: Any) -> str:
    if not isinstance(said, str) or np.dtype(said).kind not in "fiub":
        raise ValueError(f"a type is {said!r}")
    return said


STATE = "module.safetensors"
ROLES: tuple[Role, ...] = get_args(Role)
"""The settings that are code."""


def write_learning(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write what a module learns from; returns the names of its code, as JSON."""
    import torch

    roles: dict[str, Any] = {role: _role_to_json(role, given[role]) for role in ROLES}
    if isinstance(given["module"], torch.nn.Module):
        write_state(folder / STATE, given["module"])
    return roles


def read_learning(said: Any, folder: Path, trusted: bool) -> dict[str, Any]:
    """Return the settings that are code; the numbers are those that were written."""
    if not isinstance(said, dict) or said.keys() != set(ROLES):
        raise FileError(folder, "is no description of how a module learns")
    parts: dict[str, Any] = {role: _load_role(role, said[role], folder, trusted) for role in ROLES}
    if (folder / STATE).exists():
        module = called(parts["module"], folder)
        read_state(folder / STATE, module)
        parts["module"] = module
    return parts


def _role_to_json(role: Role, given: Any) -> dict[str, Any] | None:
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
    return code.to_dict()


def _is_like(role: Role, code: NamedCode, given: Any) -> bool:
    """Return whether the class of a module or loss makes one like it without arguments."""
    if not makes(code, given):
        return False
    return role == "module" or _settings(code.load(role, "", True)()) == _settings(given)


def _settings(loss: Any) -> dict[str, Any]:
    """Return the settings of a loss: none of them are in what torch prints."""
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in {**vars(loss), **loss._buffers}.items()
        if not name.startswith("_")
    }


def _load_role(role: Role, said: Any, folder: Path, trusted: bool) -> Any:
    if said is None:
        return None
    if role == "lr_schedule" and isinstance(said, dict) and "path" not in said:
        return said
    code = NamedCode.read(said, folder).load(role, folder, trusted)
    # A loss that is a class is used by its object, all else by calling it.
    return code() if role == "loss" and isinstance(code, type) else code
