"""How records become a module's arguments, and its outputs a loss and metrics."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.errors import DataError, SettingError

_OF_CLASSES = {"crossentropy", "nll", "multimargin"}
_OF_VALUES = {
    *("mse", "l1", "smoothl1", "huber", "poissonnll", "softmargin"),
    *("bce", "bcewithlogits", "binarycrossentropy", "binarycrossentropywithlogits"),
}
_BINARY = {"bcewithlogits": 0.0, "binarycrossentropywithlogits": 0.0}
_BINARY |= {"bce": 0.5, "binarycrossentropy": 0.5}
"""Losses of two classes → the output above which it is the second."""


# -- columns ---------------------------------------------------------------------------------


def arguments(module: Any) -> tuple[list[str], list[str]]:
    """The arguments of a module's forward: those that it needs, and those that may be missing."""
    known = inspect.signature(module.forward).parameters.values()
    named = [one for one in known if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    needed = [one.name for one in named if one.default is one.empty]
    return needed, [one.name for one in named if one.default is not one.empty]


def chosen_inputs(
    module: Any,
    columns: Collection[str],
    targets: Sequence[str],
    given: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Argument of the module → column, for the columns that there are.

    ``given`` says what they are called; else an argument has the column of its own name, and a
    single argument the only column that is no target.
    """
    needed, optional = arguments(module)
    kind, given = type(module).__name__, given or {}
    for name in given:
        if name not in (*needed, *optional, *targets):
            raise SettingError(
                f"columns names '{name}', but the forward of module '{kind}' takes "
                f"{[*needed, *optional]}"
            )
    found = {
        name: given.get(name, name)
        for name in (*needed, *optional)
        if name in given or name in columns
    }
    taken = {given.get(name, name) for name in targets}
    rest = [name for name in columns if name not in taken]
    if not found and len(needed or optional) and len(rest) == 1:
        only = needed or optional[:1]
        if len(only) == 1:
            found = {only[0]: rest[0]}
    held = ", ".join(f"'{name}'" for name in columns)
    for name in needed or optional[:1]:
        if name not in found and (needed or not found):
            raise DataError(
                f"the data has no column for the argument '{name}' of module '{kind}': it has "
                f"{held}; say which with columns={{'{name}': …}}"
            )
    for name, column in {**found, **{one: given.get(one, one) for one in targets}}.items():
        if column not in columns:
            what = "target" if name not in found else f"argument '{name}'"
            say = "; say which with target=" if name not in found else ""
            raise DataError(f"the data has no column '{column}' for the {what}: it has {held}{say}")
    return found


# -- tensors ---------------------------------------------------------------------------------


def tensor(values: Any, is_input: bool, device: str = "cpu") -> Any:
    """A column as a tensor: numbers with a point are float32, whole ones int64.

    Bytes are float32 in inputs, as they are pixels there.
    """
    import torch

    values = np.asarray(values)
    if values.dtype.kind == "f" or (values.dtype == np.uint8 and is_input):
        values = values.astype(np.float32, copy=False)
    elif values.dtype.kind in "iu":
        values = values.astype(np.int64, copy=False)
    elif values.dtype.kind != "b":
        raise DataError(f"a column of {values.dtype} is neither numbers nor bytes")
    values = np.require(values, requirements=["C", "W"])  # records may be views of a file
    return torch.from_numpy(values).to(device)


# -- loss and metrics ------------------------------------------------------------------------


def _name_of(loss: Any) -> str:
    """The name of a loss of torch, of a class or a function; empty for one of the user's own."""
    named = loss if hasattr(loss, "__qualname__") else type(loss)
    if not (getattr(named, "__module__", None) or "").startswith("torch."):
        return ""
    return str(named.__name__).lower().replace("_", "").removesuffix("loss")


def first_tensor(outputs: Any) -> Any:
    """The tensor that metrics compare with the targets: the only one, or the first."""
    if isinstance(outputs, Mapping):
        outputs = list(outputs.values())
    while isinstance(outputs, (tuple, list)) and outputs:
        outputs = outputs[0]
    return outputs


class ModuleLoss:
    """A loss of torch or of the user's."""

    def __init__(self, loss: Any) -> None:
        if not callable(loss):
            raise SettingError(f"loss must be a function or a loss of torch.nn, not {loss!r}")
        self.function = loss
        self.name = _name_of(loss)

    def __call__(self, outputs: Any, targets: Sequence[Any]) -> Any:
        """The loss of a batch, a tensor of one number that has a gradient."""
        import torch

        given = [self._fitted(outputs, one) for one in targets]
        made = self.function(
            outputs, *([given[0]] if len(given) == 1 else [given] if given else [])
        )
        if not isinstance(made, torch.Tensor) or made.numel() != 1:
            what = tuple(made.shape) if isinstance(made, torch.Tensor) else type(made).__name__
            raise SettingError(f"the loss of a batch must be one number, not {what}")
        return made.reshape(())

    def _fitted(self, outputs: Any, targets: Any) -> Any:
        """Targets of the type and shape that a loss of torch compares outputs with."""
        import torch

        if not isinstance(outputs, torch.Tensor):
            return targets
        if self.name in _OF_CLASSES:
            if targets.ndim == outputs.ndim and targets.shape[1:] == (1,) != outputs.shape[1:]:
                targets = targets.reshape(-1)
            return targets.long() if targets.ndim == outputs.ndim - 1 else targets
        if self.name in _OF_VALUES:
            if targets.shape != outputs.shape and targets.numel() == outputs.numel():
                targets = targets.reshape(outputs.shape)
            return targets.to(outputs.dtype)
        return targets

    def judged(self, outputs: Any, targets: Sequence[Any]) -> tuple[Any, Any, float | None]:
        """Predictions and targets for metrics, and the accuracy; None where there is none."""
        import torch

        made = first_tensor(outputs)
        if not targets or not isinstance(made, torch.Tensor):
            return None, None, None
        real = self._fitted(made, targets[0])
        whole = not real.dtype.is_floating_point
        accuracy = None
        if self.name in _BINARY:
            accuracy = float(((made > _BINARY[self.name]) == (real > 0.5)).float().mean())
        elif whole and real.ndim == made.ndim - 1 and made.ndim > 1:
            ignored = getattr(self.function, "ignore_index", -100)
            counted = real != ignored
            right = (made.argmax(1) == real)[counted]
            accuracy = float(right.float().mean()) if right.numel() else 0.0
        return made, real, accuracy
