"""PyTorch under Caffe's nets: an engine for GPUs, and nets as modules; the only room with torch."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from sparknet import renamed
from sparknet.devices import APART, check_device, need_torch, requested_device, resolve_device
from sparknet.errors import SpecError
from sparknet.native.engine import NetEngine

__all__ = ["make_engine", "module", "need_torch"]


def module(net: Any, *, share: bool = False) -> Any:
    """Return a `torch.nn.Module` of a net, of `sparknet.Net` or `sparknet.caffe.Net`: the same
    names, and the same results and gradients as the engine of PyTorch has.

    Its weights are copies, or with ``share`` the net's own memory.  Batches may have other sizes
    than the net's."""
    need_torch()
    from sparknet.torch.net_module import NetModule

    return NetModule(net if hasattr(net, "graph") else net.net, share)


def untranslated(layers: Iterable[tuple[str, str]], elsewhere: Container[str]) -> dict[str, str]:
    """Return the layers (name, type) that PyTorch does not compute, unless ``elsewhere``."""
    need_torch()
    from sparknet.torch.engine import translated

    return {name: kind for name, kind in layers if not translated(kind) and kind not in elsewhere}


def untranslated_message(layers: Mapping[str, str]) -> str:
    """Return a line about such layers; empty if there are none."""
    if not layers:
        return ""
    names = [f"'{name}' ({kind})" for name, kind in list(layers.items())[:5]]
    more = f" and {len(layers) - 5} more" if len(layers) > 5 else ""
    those = "a layer" if len(layers) == 1 else f"{len(layers)} layers"
    return (
        f"PyTorch does not compute {those}, which the native engine does on the CPU: "
        f"{', '.join(names)}{more}"
    )


def make_engine(device: str | None, train: bool, seed: int, precision: str) -> NetEngine:
    """Return an engine: PyTorch's on the device, or the native one."""
    if device is None:
        from sparknet.native.net import NativeNet

        return NativeNet(train, seed, precision == "bf16")
    if precision == "int8":
        raise SpecError("precision='int8' is the native engine's: leave device out")
    need_torch()
    from sparknet.torch.engine import TorchNet

    check_device(device)
    apart = device == APART
    return TorchNet(train, seed, precision, "cpu" if apart else device, apart)


__getattr__ = renamed.names(
    __name__,
    chosen_device=resolve_device,
    engine_of=make_engine,
    named_device=requested_device,
)
