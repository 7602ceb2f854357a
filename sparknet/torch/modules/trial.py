"""trial: what is made of a module before it is trained, and a pass of a few records through it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sparknet.errors import SettingError, extra
from sparknet.torch.modules.calling import ModuleLoss, evaluation_mode, tensor
from sparknet.torch.modules.flat_module import ModuleParts, check_parameters
from sparknet.torch.modules.saved_module import called
from sparknet.torch.modules.updater import made_optimizer


def parts_of(module: Any, loss: Any, optimizer: Any, schedule: Any) -> ModuleParts:
    """Return a copy of the module with its loss and optimizer; nothing of the user's is changed."""
    with extra("torch", "torch", "a module of PyTorch"):
        import torch
    if hasattr(module, "_orig_mod"):
        raise SettingError("module is compiled: give the module that torch.compile was given")
    if isinstance(module, torch.jit.ScriptModule):
        raise SettingError("module is TorchScript: give the module that it was made of")
    if isinstance(module, torch.nn.Module):
        try:
            module, optimizer, schedule = copy.deepcopy((module, optimizer, schedule))
        except Exception as error:
            kind = type(module).__name__
            raise SettingError(f"module '{kind}' cannot be copied: {_line(error)}") from error
    else:
        module = called(module)
    check_parameters(module)
    made_optimizer(optimizer, module)  # may be refused
    return ModuleParts(module, loss, optimizer, schedule)


def try_out(
    module: Any,
    loss: ModuleLoss,
    inputs: Mapping[str, str],
    targets: tuple[str, ...],
    first: Mapping[str, Any],
    weights: str | None = None,
    backward: bool = False,
) -> bool:
    """Refuse a module or loss that fails on a few records; return whether there is an accuracy."""
    import torch

    kind = type(module).__name__
    tensors = {name: tensor(first[column], True) for name, column in inputs.items()}
    real = [tensor(first[name], False) for name in targets]
    shapes = ", ".join(f"'{name}' {tuple(one.shape)}" for name, one in tensors.items())
    with torch.random.fork_rng(devices=[]), evaluation_mode(module), _same_buffers(module):
        try:
            outputs = module(**tensors)
        except Exception as error:
            raise SettingError(
                f"module '{kind}' fails on the first records, {shapes}: {_line(error)}"
            ) from error
        try:
            loss_value = loss(
                outputs, real, None if weights is None else tensor(first[weights], True)
            )
            accuracy = loss.judged(outputs, real)[2]
        except SettingError:
            raise
        except Exception as error:
            raise SettingError(
                f"the loss fails on the first records of module '{kind}': {_line(error)}"
            ) from error
        if backward:
            learned = [one for one in module.parameters() if one.requires_grad]
            torch.autograd.grad(loss_value, learned, allow_unused=True)
        if not loss_value.requires_grad:
            raise SettingError(f"the loss of module '{kind}' does not depend on its parameters")
    return accuracy is not None


@contextmanager
def _same_buffers(module: Any) -> Iterator[None]:
    """Whatever a pass makes of the buffers, they are afterwards what they were."""
    from torch.nn.parameter import is_lazy

    buffers_before = [
        (part._buffers, name, one, one.clone())
        for part in module.modules()
        for name, one in part._buffers.items()
        if one is not None and not is_lazy(one)
    ]
    yield
    for buffers, name, one, values in buffers_before:
        one.copy_(values)
        buffers[name] = one


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
