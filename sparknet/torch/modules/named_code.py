"""NamedCode: code by its import name, imported only where trusted (docs/decisions/0013)."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Literal, get_type_hints

from sparknet.errors import FileError

Role = Literal["module", "loss", "optimizer", "lr_schedule"]

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class NamedCode:
    """A class or a function, and what it is called with."""

    path: str
    """As in "shop.models:Classifier"."""
    arguments: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> NamedCode | None:
        """Return the name of a class, a function or a partial of one; else None."""
        arguments: dict[str, Any] = {}
        if isinstance(given, partial):
            if given.args or not _is_json(given.keywords):
                return None
            given, arguments = given.func, dict(given.keywords)
        module, name = (getattr(given, one, None) for one in ("__module__", "__qualname__"))
        if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
            return None
        code = cls(f"{module}:{name}", arguments)
        if not _PATH.fullmatch(code.path):
            return None  # as that of a lambda
        return code if _attribute(sys.modules.get(module), name) is given else None

    @classmethod
    def of_object(cls, given: Any) -> NamedCode | None:
        """Return the name of the class of a module or a loss, if calling that makes one like it."""
        import torch

        if not isinstance(given, torch.nn.Module):
            return None
        kind = type(given)
        try:
            inspect.signature(kind).bind()
        except (TypeError, ValueError):
            return None
        return cls.of(kind)

    @classmethod
    def read(cls, said: Any, where: Any) -> NamedCode:
        """Return what `said` made of it, of a file."""
        if (
            not isinstance(said, dict)
            or said.keys() != {"path", "arguments"}
            or not isinstance(said["path"], str)
            or not _PATH.fullmatch(said["path"])
            or not isinstance(said["arguments"], dict)
        ):
            raise FileError(where, f"names no code: {str(said)[:80]!r}")
        return cls(said["path"], said["arguments"])

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "arguments": self.arguments}

    def load(self, role: Role, where: Any, trusted: bool) -> Any:
        """Return what it names, of a file; FileError if that is not there or not to be trusted."""
        module, _, name = self.path.partition(":")
        value: Any
        if trusted:
            try:
                value = importlib.import_module(module)
            except Exception as error:
                why = (str(error).splitlines() or [""])[0]
                raise FileError(
                    where,
                    f"names '{self.path}' for its {role}, which cannot be imported: "
                    f"{type(error).__name__}: {why}",
                ) from error
        else:
            value = sys.modules.get(module)
            if value is None:
                raise FileError(
                    where,
                    f"names '{self.path}' for its {role}, which this program has not imported: "
                    "import it, or trust the file (trusted=True)",
                )
        code = _attribute(value, name)
        if code is None:
            raise FileError(
                where, f"names '{self.path}' for its {role}, and '{module}' has no '{name}'"
            )
        if not trusted and not _is_harmless(code, role):
            raise FileError(
                where,
                f"names '{self.path}' for its {role}, which is {_KINDS[role]} and so is called "
                "only where the file is trusted",
            )
        return partial(code, **self.arguments) if self.arguments else code


_KINDS = {
    "module": "neither a class of torch.nn.Module nor a function annotated to return one",
    "loss": "neither a loss of torch nor a class of torch.nn.Module",
    "optimizer": "no optimizer of torch",
    "lr_schedule": "no schedule of torch",
}


def _is_harmless(code: Any, role: Role) -> bool:
    """Return whether a file may call this: some functions run whatever they get."""
    import torch

    if role == "optimizer":
        return _is_class(code, torch.optim.Optimizer)
    if role == "lr_schedule":
        return _is_class(code, torch.optim.lr_scheduler.LRScheduler)
    if _is_class(code, torch.nn.Module):
        return not _is_class(code, torch.jit.ScriptModule)
    if role == "loss":
        return getattr(code, "__module__", None) == "torch.nn.functional"
    if not inspect.isfunction(code) or code.__module__.partition(".")[0] == "torch":
        return False  # torch.hub, torch.jit.load
    try:
        returned = get_type_hints(code).get("return")
    except Exception:  # hints of what is imported for type checkers alone
        return False
    return _is_class(returned, torch.nn.Module)


def _is_class(code: Any, kind: type) -> bool:
    return isinstance(code, type) and issubclass(code, kind)


def _attribute(held: Any, name: str) -> Any:
    return reduce(lambda one, part: getattr(one, part, None), name.split("."), held)


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False
