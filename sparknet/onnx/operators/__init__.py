"""What each operator of ONNX becomes: one function each, registered by its name."""

from __future__ import annotations

from importlib import import_module

_MODULES = (
    *("activations", "arithmetic", "classical", "comparing", "cutting", "detecting", "einsum"),
    *(
        "gathering",
        "matrices",
        "moving",
        "normalising",
        "picking",
        "pooling",
        "quantised",
        "recurrent",
    ),
    *("reducing", "resizing", "scattering", "shapes", "transforms", "trees", "windows"),
)


def load() -> None:
    """Register all of them."""
    for name in _MODULES:
        import_module(f"{__name__}.{name}")
