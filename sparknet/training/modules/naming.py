"""The parameters and buffers of a module by their names in its state_dict."""

from __future__ import annotations

from typing import Any

from sparknet.errors import SettingError

EXACT = 1 << 24
"""Whole numbers up to this one are exact in float32."""


def tensors_of(module: Any) -> dict[str, Any]:
    """Name → parameter or persistent buffer; one that is tied stands under each of its names."""
    found = dict(module.named_parameters(remove_duplicate=False))
    found |= buffers_of(module)
    return found


def buffers_of(module: Any) -> dict[str, Any]:
    """Name → buffer, of those that a state_dict has."""
    found = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for name, value in part._buffers.items():
            if value is not None and name not in part._non_persistent_buffers_set:
                found[f"{prefix}.{name}" if prefix else name] = value
    return found


def travelling(module: Any) -> dict[str, Any]:
    """Those that lie in the flat weights: parameters, and buffers whose values fit there."""
    parameters = {id(one) for one in module.parameters()}
    named = tensors_of(module)
    return {name: one for name, one in named.items() if id(one) in parameters or is_carried(one)}


def check_parameters(module: Any) -> None:
    """Raise SettingError for a module without parameters, or with some that cannot be averaged."""
    import torch

    kind = type(module).__name__
    parameters = dict(module.named_parameters())
    if not any(one.requires_grad for one in parameters.values()):
        least = "no parameters" if not parameters else "no parameter that requires a gradient"
        raise SettingError(f"module '{kind}' has {least}: there is nothing to train")
    types = {one.dtype for one in parameters.values()}
    for name, one in parameters.items():
        dtype = str(one.dtype)[6:]
        what = f"parameter '{name}' of module '{kind}' is {dtype}"
        if not one.dtype.is_floating_point:
            raise SettingError(f"{what}: parameters are numbers with a point, float32 mostly")
        if len(types) == 1 and one.dtype != torch.float32:
            narrow = "" if one.dtype.itemsize > 2 else ", precision='bf16' multiplies in bfloat16"
            raise SettingError(
                f"{what}, as all are, but records are float32: give module.float(){narrow}"
            )


def is_carried(buffer: Any) -> bool:
    """Whether a buffer's values fit into float32, so that they can be averaged with the weights."""
    import torch

    if buffer.dtype == torch.bool or buffer.dtype.is_floating_point:
        return True
    if buffer.dtype.is_complex:
        return False
    return not buffer.numel() or int(buffer.abs().max()) < EXACT
