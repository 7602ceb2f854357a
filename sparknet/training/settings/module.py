"""ModuleKeywords: what a training of a module of PyTorch is told, in place of a solver."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from sparknet.errors import SettingError
from sparknet.training.settings.fields import setting
from sparknet.training.settings.kinds import Choice, InProgram, Number, Unwritten, Whole

_OF_NETS = (
    *("head", "lr_mult", "batch_axis", "dialect", "features", "label"),
    *("resize", "resize_mode", "pad", "interpolation", "crop", "color", "upright", "mean"),
    *("exact", "scale", "std", "mirror"),
)
"""Settings that a module does not have, all of them None unless given."""
_CURES = {
    "batch_size": "a net's batch is the first size of its inputs, as in RDDLayer('data', [32, 3])",
    "loss": "a net's loss is a layer, as SoftmaxWithLoss",
    "optimizer": "a net's is the solver's type, as SolverParams(type='Adam')",
    "lr_schedule": "a net's is the solver's lr_policy",
    "accumulate": "a net's is the solver's iter_size",
    "clip_gradients": "a net's is the solver's clip_gradients",
    "target": "a net's targets are inputs of its loss, and label= names the column of a table",
}
"""What a net has in place of a module's settings."""


@dataclass(frozen=True, kw_only=True)
class ModuleKeywords:
    """The settings of a module: docs/pytorch-modules.md."""

    module: Any = setting(
        None,
        Unwritten(),
        "A module of PyTorch to train in place of a solver's net, or a function that makes one.",
    )
    loss: Any = setting(
        None,
        Unwritten(),
        "The module's loss: one of torch.nn, or a function of the outputs and the targets.",
    )
    optimizer: Any = setting(
        None,
        Unwritten(),
        "The module's optimizer, one of torch.optim, or a function that makes one of parameters.",
    )
    lr_schedule: Any = setting(
        None,
        Unwritten(),
        "A function that makes a torch scheduler of the optimizer, or a dict of Caffe's lr_policy "
        "and its settings; the rate is constant unless given.",
    )
    batch_size: int | None = setting(
        None,
        InProgram(Whole(1)),
        "The records of each worker's batch for a module; 32 unless given.",
        "records",
    )
    target: str | Sequence[str] = setting(
        "label",
        Unwritten(),
        "The column of the targets that the module's loss is given, or several, or () for none.",
    )
    buffers: Literal["average", "keep"] = setting(
        "average",
        InProgram(Choice(("average", "keep"))),
        "Whether workers average a module's buffers, such as running statistics, where they "
        "synchronise, or each goes on with its own and only the result is their mean.",
    )
    clip_gradients: float | None = setting(
        None,
        InProgram(Number(above=0)),
        "The norm to which larger gradients of a module are scaled down.",
    )

    accumulate: int = setting(
        1,
        InProgram(Whole(1)),
        "The batches of a worker whose gradients are averaged for an update of a module.",
        "batches",
    )

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of the targets."""
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)


def check_subject(given: Any, others: Collection[str] = ()) -> None:
    """Refuse settings of a module where none is given, and those of a net where one is.

    ``others`` are names that mean something else here.
    """
    needed = ("loss", "optimizer")
    if given.module is None:
        for one in fields(ModuleKeywords):
            if one.name not in others and getattr(given, one.name) != one.default:
                cure = _CURES.get(one.name, "give module, too")
                value = getattr(given, one.name)
                raise SettingError(f"{one.name}={value!r} is for a module of PyTorch: {cure}")
    else:
        if given.solver is not None:
            raise SettingError("give a solver or a module, not both")
        for name in _OF_NETS:
            if name not in others and getattr(given, name, None) is not None:
                raise SettingError(f"{name} is for nets, and a module was given")
        if getattr(given, "backend", "embedded") != "embedded":
            raise SettingError("backend is for nets, and a module was given")
        if getattr(given, "device", None) not in (None, "cpu"):
            raise SettingError(f"modules are trained on the cpu, not on device={given.device!r}")
        for name in needed:
            if getattr(given, name) is None:
                raise SettingError(f"a module is trained with a loss and an optimizer: give {name}")
        if not all(isinstance(one, str) for one in given.targets):
            raise SettingError(f"target must name columns, not {given.target!r}")
