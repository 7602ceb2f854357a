"""Which engine a net gets, and on which device."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sparknet import native
from sparknet.errors import SparkNetError, SpecError, extra
from sparknet.native.engine import NetEngine

_of_process: list[str] = []
"""The device of nets that name none: that of pycaffe's set_mode_gpu."""
APART = "apart"
"""A device for tests: the CPU, with memory kept apart as that of a GPU is."""
NATIVE = "native"
"""The name of the native engine, among devices."""
AUTO = "auto"
"""A GPU where there is one; else what a program gets that names no device."""


def need_torch() -> Any:
    """The module torch; MissingExtra if it is not there."""
    with extra("torch", "torch", "computing with PyTorch"):
        return import_module("torch")


def use_device(device: str | None) -> None:
    """Nets that are made from now on, and name no device, compute there; None: as before."""
    _of_process[:] = [] if device is None else [device]


def take_gpu(number: int) -> str | None:
    """Let nets that are made from now on compute on a GPU; where there is none, say so."""
    device = f"cuda:{number}"
    try:
        checked_device(device)
    except SparkNetError as error:
        return f"{error}; the net runs on the CPU"
    use_device(device)
    return None


def chosen_device(device: str | None) -> str | None:
    """The device that a program names, or pycaffe's set_mode_gpu, or SPARKNET_ENGINE and
    SPARKNET_DEVICE; None: the native engine, which is the default unless its loops are the portable
    ones and PyTorch is there."""
    named = named_device(device)
    if named == AUTO and _gpus():
        return "cuda"
    if named in (None, AUTO):
        return "cpu" if native.onednn() == "none" and find_spec("torch") else None
    return None if named == NATIVE else named


def named_device(device: str | None) -> str | None:
    """The device that a program names, in one of these ways; None if it leaves the choice."""
    if device is not None:
        return device
    if _of_process:
        return _of_process[0]
    engine = os.environ.get("SPARKNET_ENGINE", "")
    named = os.environ.get("SPARKNET_DEVICE", "")
    if engine not in ("", "native", "torch"):
        raise SpecError(f"SPARKNET_ENGINE must be 'native' or 'torch'; it is {engine!r}")
    if engine == "torch":
        return named or "cpu"
    return NATIVE if engine == "native" else named or None


def takes_gpu_of_task(named: str | None) -> bool:
    """Whether the GPU that Spark gave the task is what some workers compute with."""
    names = (named_device(named) or "").split(",")
    return any(one.strip() in ("cuda", AUTO) for one in names)


def device_of_worker(named: str | None, rank: int, gpu: int | None) -> str | None:
    """The device of one worker.

    Of a list with commas each worker has its own, and behind its end they begin again.  Of "cuda"
    and "auto" it has the GPU that Spark gave it, or else "auto" deals out those of the machine.
    """
    named = named_device(named)
    if named is None:
        return None
    names = [one.strip() for one in named.split(",")]
    mine = names[rank % len(names)]
    if gpu is not None and mine in ("cuda", AUTO):
        return f"cuda:{gpu}"
    if mine == AUTO and (count := _gpus()):
        return f"cuda:{rank % count}"
    return mine


def _gpus() -> int:
    """How many GPUs PyTorch sees here; 0 without PyTorch."""
    if not find_spec("torch"):
        return 0
    torch = need_torch()
    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def name_of_device(device: str) -> str:
    """A name that all processes of the machine have for a device."""
    if not device.startswith("cuda"):
        return device
    torch = need_torch()
    number = torch.device(device).index
    number = torch.cuda.current_device() if number is None else number
    return str(getattr(torch.cuda.get_device_properties(number), "uuid", f"cuda:{number}"))


def checked_devices(named: str) -> None:
    """Refuse a device of workers on this machine that is not here."""
    for one in named.split(","):
        if one.strip() not in (NATIVE, AUTO):
            checked_device(one.strip())


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
            seen = "no GPU" if not count else f"{count} GPU{'s' if count > 1 else ''}"
            raise SpecError(f"there is no device {device!r}: PyTorch sees {seen} here")
    return device


def untranslated(layers: Iterable[tuple[str, str]], elsewhere: Container[str]) -> dict[str, str]:
    """Of layers (name, type) those that PyTorch does not compute; ``elsewhere`` are the types that
    no engine computes, as they live in Python."""
    need_torch()
    from sparknet.torch.engine import translated

    return {name: kind for name, kind in layers if not translated(kind) and kind not in elsewhere}


def told_untranslated(layers: Mapping[str, str]) -> str:
    """A line about such layers; empty if there are none."""
    if not layers:
        return ""
    shown = [f"'{name}' ({kind})" for name, kind in list(layers.items())[:5]]
    more = f" and {len(layers) - 5} more" if len(layers) > 5 else ""
    those = "a layer" if len(layers) == 1 else f"{len(layers)} layers"
    return (
        f"PyTorch does not compute {those}, which the native engine does on the CPU: "
        f"{', '.join(shown)}{more}"
    )


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
