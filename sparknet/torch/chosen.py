"""Which engine a net gets, and on which device."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sparknet import native
from sparknet.errors import SparkNetError, SpecError
from sparknet.native.engine import NetEngine

APART = "apart"
"""A device for tests: the CPU, with memory kept apart as that of a GPU is."""


class NoTorchError(SparkNetError, ImportError):
    """PyTorch is wanted and not installed."""


def need_torch() -> Any:
    """The module torch, or a sentence that says how to get it."""
    try:
        return import_module("torch")
    except ImportError:
        raise NoTorchError(
            "PyTorch, which computes on this device, is not installed: "
            "pip install 'sparknet[torch]'"
        ) from None


def chosen_device(device: str | None) -> str | None:
    """The device that a program names, or SPARKNET_ENGINE and SPARKNET_DEVICE; None: the native
    engine, which is the default unless its loops are the portable ones and PyTorch is there."""
    if device is not None:
        return device
    engine = os.environ.get("SPARKNET_ENGINE", "")
    named = os.environ.get("SPARKNET_DEVICE", "")
    if engine not in ("", "native", "torch"):
        raise SpecError(f"SPARKNET_ENGINE must be 'native' or 'torch'; it is {engine!r}")
    if engine == "torch":
        return named or "cpu"
    if engine == "native":
        return None
    return named or ("cpu" if native.onednn() == "none" and find_spec("torch") else None)


def checked_device(device: str) -> str:
    """A device that PyTorch has here."""
    torch = need_torch()
    name = "cpu" if device == APART else device
    try:
        found = torch.device(name)
    except RuntimeError:
        raise SpecError(
            f"device must be 'cpu', 'cuda:0' or another name of PyTorch's; it is {device!r}"
        ) from None
    if found.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (found.index or 0) >= count:
            raise SpecError(f"device={device!r}: PyTorch sees {count} GPUs here")
    return device


def engine_of(device: str | None, train: bool, seed: int, precision: str) -> NetEngine:
    """An engine: PyTorch's on the device, or the native one."""
    if device is None:
        from sparknet.native.net import NativeNet

        return NativeNet(train, seed, precision == "bf16")
    if precision == "int8":
        raise SpecError("precision='int8' is the native engine's: leave device out")
    need_torch()
    from sparknet.torch.engine import TorchNet

    checked_device(device)
    apart = device == APART
    return TorchNet(train, seed, precision, "cpu" if apart else device, apart)
