"""The tensor core: arrays over shared storage, in C; the only room that knows cffi."""

from __future__ import annotations

from sparknet.devices import tell_onednn
from sparknet.native.core import (
    has_bf16,
    has_int8,
    onednn,
    onednn_isa,
    onednn_version,
    set_threads,
    threads,
    version,
)
from sparknet.native.ndarray import NDArray

tell_onednn(lambda: onednn() != "none")

__all__ = [
    "NDArray",
    "has_bf16",
    "has_int8",
    "onednn",
    "onednn_isa",
    "onednn_version",
    "set_threads",
    "threads",
    "version",
]
