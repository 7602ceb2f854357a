"""Devices: the names of what nets compute on, and which of them a net or a worker gets."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sparknet.errors import SparkNetError, SpecError, extra

_of_process: list[str] = []
"""The device of nets that name none: that of pycaffe's set_mode_gpu."""
_onednn: list[Callable[[], bool]] = []
"""What says whether the native engine has oneDNN; sparknet.native puts it here."""
APART = "apart"
"""A device for tests: the CPU, with memory kept apart as that of a GPU is."""
NATIVE = "native"
"""The name of the native engine, among devices."""
AUTO = "auto"
"""A GPU where there is one; else what a program gets that names no device."""


def tell_onednn(has_onednn: Callable[[], bool]) -> None:
    """Let the native engine say whether it has oneDNN; without it PyTorch is the default."""
    _onednn[:] = [has_onednn]


def need_torch() -> Any:
    """Import torch; raise MissingExtra if it is not installed."""
    with extra("torch", "torch", "computing with PyTorch"):
        return import_module("torch")


def use_device(device: str | None) -> None:
    """Nets that are made from now on, and name no device, compute there; None: as before."""
    _of_process[:] = [] if device is None else [device]


def take_gpu(number: int) -> str | None:
    """Let nets that are made from now on compute on a GPU; where there is none, say so."""
    device = f"cuda:{number}"
    try:
        check_device(device)
    except SparkNetError as error:
        return f"{error}; the net runs on the CPU"
    use_device(device)
    return None


def resolve_device(device: str | None) -> str | None:
    """Return the device that a program names, or pycaffe's set_mode_gpu, or SPARKNET_ENGINE and
    SPARKNET_DEVICE; None: the native engine, the default unless this build has no oneDNN and
    PyTorch is installed."""
    name = requested_device(device)
    if name == AUTO and _gpus():
        return "cuda"
    if name in (None, AUTO):
        needs_torch = _onednn and not _onednn[0]()
        return "cpu" if needs_torch and find_spec("torch") else None
    return None if name == NATIVE else name


def requested_device(device: str | None) -> str | None:
    """Return the device that a program names; None if it leaves the choice."""
    if device is not None:
        return device
    if _of_process:
        return _of_process[0]
    engine = os.environ.get("SPARKNET_ENGINE", "")
    name = os.environ.get("SPARKNET_DEVICE", "")
    if engine not in ("", "native", "torch"):
        raise SpecError(f"SPARKNET_ENGINE must be 'native' or 'torch'; it is {engine!r}")
    if engine == "torch":
        return name or "cpu"
    return NATIVE if engine == "native" else name or None


def uses_task_gpu(named: str | None) -> bool:
    """Return whether the GPU that Spark gave the task is what some workers compute with."""
    names = (requested_device(named) or "").split(",")
    return any(one.strip() in ("cuda", AUTO) for one in names)


def device_of_worker(named: str | None, rank: int, gpu: int | None) -> str | None:
    """Return the device of one worker.

    Of a list with commas each worker has its own, and behind its end they begin again.  Of "cuda"
    and "auto" it has the GPU that Spark gave it, or else "auto" deals out those of the machine."""
    device = requested_device(named)
    if device is None:
        return None
    names = [one.strip() for one in device.split(",")]
    mine = names[rank % len(names)]
    if gpu is not None and mine in ("cuda", AUTO):
        return f"cuda:{gpu}"
    if mine == AUTO and (count := _gpus()):
        return f"cuda:{rank % count}"
    return mine


def _gpus() -> int:
    """Return how many GPUs PyTorch sees here; 0 without PyTorch."""
    if not find_spec("torch"):
        return 0
    torch = need_torch()
    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def device_identity(device: str) -> str:
    """Return a name that all processes of the machine have for a device."""
    if not device.startswith("cuda"):
        return device
    torch = need_torch()
    number = torch.device(device).index
    number = torch.cuda.current_device() if number is None else number
    return str(getattr(torch.cuda.get_device_properties(number), "uuid", f"cuda:{number}"))


def check_devices(named: str) -> None:
    """Refuse a device of workers on this machine that is not here."""
    for one in named.split(","):
        if one.strip() not in (NATIVE, AUTO):
            check_device(one.strip())


def check_device(device: str) -> str:
    """Return a device that PyTorch has here."""
    torch = need_torch()
    name = "cpu" if device == APART else device
    try:
        torch_device = torch.device(name)
    except RuntimeError:
        raise SpecError(
            f"device must be 'cpu', 'cuda:0' or another name of PyTorch's; it is {device!r}"
        ) from None
    if torch_device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (torch_device.index or 0) >= count:
            gpus = "no GPU" if not count else f"{count} GPU{'s' if count > 1 else ''}"
            raise SpecError(f"there is no device {device!r}: PyTorch sees {gpus} here")
    return device
