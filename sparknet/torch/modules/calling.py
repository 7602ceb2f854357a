"""How records become a module's arguments, and its outputs a loss and metrics."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, Literal

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


def takes_any(module: Any) -> bool:
    """Return whether a module's forward takes any arguments and names none: ``**batch``."""
    parameters = inspect.signature(module.forward).parameters.values()
    return any(one.kind == one.VAR_KEYWORD for one in parameters) and not any(arguments(module))


def arguments(module: Any) -> tuple[list[str], list[str]]:
    """Return the arguments of a module's forward: needed ones, and optional ones."""
    parameters = inspect.signature(module.forward).parameters.values()
    names = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    needed = [one.name for one in names if one.default is one.empty]
    return needed, [one.name for one in names if one.default is not one.empty]


def chosen_inputs(
    module: Any,
    columns: Collection[str],
    targets: Sequence[str],
    given: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return argument → column, by ``given``, by name, or the only column for the only one."""
    needed, optional = arguments(module)
    kind, given = type(module).__name__, given or {}
    if is_open := takes_any(module):
        optional = [name for name in given if name not in targets]
        optional = optional or [name for name in columns if name not in targets]
    for name in given:
        if name not in (*needed, *optional, *targets):
            raise SettingError(
                f"columns names '{name}', but the forward of module '{kind}' takes "
                f"{[*needed, *optional]}"
            )
    inputs = {
        name: given.get(name, name)
        for name in (*needed, *optional)
        if name in given or name in columns
    }
    target_columns = {given.get(name, name) for name in targets}
    rest = [name for name in columns if name not in target_columns]
    if not inputs and not is_open and len(needed or optional) and len(rest) == 1:
        only = needed or optional[:1]
        if len(only) == 1:
            inputs = {only[0]: rest[0]}
    listing = ", ".join(f"'{name}'" for name in columns)
    for name in needed or optional[:1]:
        if name not in inputs and (needed or not inputs):
            raise DataError(
                f"the data has no column for the argument '{name}' of module '{kind}': it has "
                f"{listing}; say which with columns={{'{name}': …}}"
            )
    for name, column in {**inputs, **{one: given.get(one, one) for one in targets}}.items():
        if column not in columns:
            what = "target" if name not in inputs else f"argument '{name}'"
            say = "; say which with target=" if name not in inputs else ""
            raise DataError(
                f"the data has no column '{column}' for the {what}: it has {listing}{say}"
            )
    return inputs


# -- tensors ---------------------------------------------------------------------------------


def tensor(values: Any, is_input: bool, device: str = "cpu") -> Any:
    """Return a column as a tensor of float32 or int64; bytes of inputs are float32 pixels."""
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
    """Return the name of torch's own loss, a class or a function; empty for another."""
    while isinstance(loss, partial):
        loss = loss.func
    function = loss if hasattr(loss, "__qualname__") else type(loss)
    if not (getattr(function, "__module__", None) or "").startswith("torch."):
        return ""
    return str(function.__name__).lower().replace("_", "").removesuffix("loss")


def named_outputs(outputs: Any) -> dict[str, Any]:
    """Return outputs by name: their own, else output, or output_0, output_1 … of a tuple."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    if is_dataclass(outputs) and not isinstance(outputs, type):
        return {one.name: getattr(outputs, one.name) for one in fields(outputs)}
    if hasattr(outputs, "_asdict"):
        return dict(outputs._asdict())
    if isinstance(outputs, (tuple, list)):
        return {f"output_{number}": one for number, one in enumerate(outputs)}
    return {"output": outputs}


def first_tensor(outputs: Any) -> Any:
    """Return the tensor to compare with targets: the only one, or the first of several numbers."""
    import torch

    if isinstance(outputs, torch.Tensor):
        return outputs
    outputs_by_name = named_outputs(outputs)
    if list(outputs_by_name) == ["output"]:
        return None
    tensors = (first_tensor(one) for one in outputs_by_name.values())
    return next((one for one in tensors if one is not None and one.ndim), None)


def computing_in(precision: str, device: str = "cpu") -> AbstractContextManager[Any]:
    """Multiplying in bfloat16 where that is asked for."""
    import torch

    if precision == "float32":
        return nullcontext()
    context: AbstractContextManager[Any] = torch.autocast(device.partition(":")[0], torch.bfloat16)
    return context


def _apart(loss: Any, fed: Sequence[Any]) -> tuple[Any, str, Any]:
    """Return the losses of a batch's records, the reduction, and the divisor of a mean."""
    import torch

    settings: dict[str, Any] = {}
    function = loss
    while isinstance(function, partial):
        settings = {**function.keywords, **settings}
        function = function.func
    if isinstance(function, torch.nn.Module):
        function_without: Any = function
        settings = {
            "reduction": function_without.reduction,
            "ignore_index": getattr(function_without, "ignore_index", -100),
        }
        settings["weight"] = getattr(function_without, "weight", None)
        apart = copy(function_without)
        apart.reduction = "none"
        each = apart(*fed)
    else:
        each = loss(*fed, reduction="none")
    divisor = each.numel()
    target = fed[1]
    if _name_of(loss) in ("crossentropy", "nll") and not target.dtype.is_floating_point:
        counted = target != settings.get("ignore_index", -100)
        classes = settings.get("weight")
        divisor = counted.sum() if classes is None else classes[target[counted]].sum()
    return each, settings.get("reduction", "mean"), divisor


class ModuleLoss:
    """A loss of torch or of the user's."""

    def __init__(self, loss: Any) -> None:
        if not callable(loss):
            raise SettingError(f"loss must be a function or a loss of torch.nn, not {loss!r}")
        self.function = loss
        self.name = _name_of(loss)

    @property
    def kind(self) -> Literal["classes", "labels", "numbers"] | None:
        """What it takes the outputs for; None where that is not known."""
        if self.name in _OF_CLASSES:
            return "classes"
        if _BINARY.get(self.name) == 0.0:
            return "labels"
        return "numbers" if self.name in _OF_VALUES - _BINARY.keys() else None

    def __call__(self, outputs: Any, targets: Sequence[Any], weights: Any = None) -> Any:
        """Return the loss of a batch whose records have ``weights``, with a gradient."""
        import torch

        fitted = [self._fitted(outputs, one) for one in targets]
        fed = [outputs, *([fitted[0]] if len(fitted) == 1 else [fitted] if fitted else [])]
        loss = self.function(*fed) if weights is None else self._weighted(fed, weights)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            what = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise SettingError(f"the loss of a batch must be one number, not {what}")
        return loss.reshape(())

    def check_weights(self) -> None:
        """SettingError if records cannot have weights in this loss."""
        if self.name in _OF_CLASSES | _OF_VALUES:
            return
        try:
            takes = "weights" in inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            takes = False
        if not takes:
            what = getattr(self.function, "__qualname__", type(self.function).__name__)
            raise SettingError(
                f"the loss '{what}' cannot weigh records: give a loss of torch's for classes or "
                "values, or a function of outputs, target and weights"
            )

    def _weighted(self, fed: Sequence[Any], weights: Any) -> Any:
        """Return the loss of weighted records, divided as without weights."""
        if self.name not in _OF_CLASSES | _OF_VALUES:
            return self.function(*fed, weights=weights)
        each, reduction, divisor = _apart(self.function, fed)
        weighed = each * weights.reshape(-1, *[1] * (each.ndim - 1)).to(each.dtype)
        return weighed.sum() if reduction == "sum" else weighed.sum() / divisor

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

        scores = first_tensor(outputs)
        if not targets or scores is None:
            return None, None, None
        real = self._fitted(scores, targets[0])
        whole = not real.dtype.is_floating_point
        accuracy = None
        if self.name in _BINARY:
            accuracy = float(((scores > _BINARY[self.name]) == (real > 0.5)).float().mean())
        elif whole and (axis := self._classes_of(tuple(scores.shape), tuple(real.shape))):
            ignored = getattr(self.function, "ignore_index", -100)
            counted = real != ignored
            right = (scores.argmax(axis) == real)[counted]
            accuracy = float(right.float().mean()) if right.numel() else 0.0
        return scores, real, accuracy

    def _classes_of(self, made: tuple[int, ...], real: tuple[int, ...]) -> int:
        """Return the axis of classes: torch's losses have the second, else the last; 0: none."""
        axes = [1] if self.name in _OF_CLASSES else [len(made) - 1, 1]
        fits = (one for one in axes if len(made) > 1 and made[:one] + made[one + 1 :] == real)
        return next(fits, 0)


@contextmanager
def evaluation_mode(module: Any) -> Iterator[None]:
    """Set a module in its mode of evaluation; afterwards every part has its own again."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def computed(module: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of a batch by name, as float32."""
    import torch

    tensors = {name: tensor(one, True) for name, one in values.items()}
    with torch.no_grad(), evaluation_mode(module):
        outputs = module(**tensors)
    return {
        name: one.detach().cpu().to(torch.float32).numpy()
        for name, one in named_outputs(outputs).items()
        if isinstance(one, torch.Tensor)
    }
