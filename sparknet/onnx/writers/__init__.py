"""What each layer type is in ONNX: one function each, registered by its type."""

from __future__ import annotations

from importlib import import_module

_MODULES = ("arithmetic", "detection", "normalization", "recurrent", "shapes", "windows")


def load() -> None:
    """Register all of them."""
    for name in _MODULES:
        import_module(f"{__name__}.{name}")
