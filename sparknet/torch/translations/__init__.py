"""The layer types that torch computes, in files by family."""

from __future__ import annotations

from sparknet.torch.translations import (
    activations,
    convolutions,
    losses,
    normalisation,
    pooling,
    products,
    recurrent,
    resizing,
    selection,
    shapes,
    sums,
)
from sparknet.torch.translations.table import TABLE, Translatable, Translation

__all__ = [
    "TABLE",
    "Translatable",
    "Translation",
    "activations",
    "convolutions",
    "losses",
    "normalisation",
    "pooling",
    "products",
    "recurrent",
    "resizing",
    "selection",
    "shapes",
    "sums",
]
