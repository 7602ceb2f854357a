"""What each operator of ONNX becomes: one function each, registered by its name."""

from __future__ import annotations

from importlib import import_module

_MODULES = (
    *("binary", "comparison", "convolution", "detection", "gather_scatter"),
    *(
        "matrix_products",
        "ml",
        "normalization",
        "pointwise",
        "pooling",
        "quantization",
        "recurrent",
    ),
    *("reductions", "resize", "shapes", "slicing"),
)


def load() -> None:
    """Register all of them."""
    for name in _MODULES:
        import_module(f"{__name__}.{name}")
