"""The layer types that torch computes, in files by family."""

from __future__ import annotations

from sparknet.torch.translations import (
    convolutions,
    elementwise,
    losses,
    normalization,
    pooling,
    recurrent,
    shapes,
)
from sparknet.torch.translations.table import TABLE, Translatable, Translation

__all__ = [
    "TABLE",
    "Translatable",
    "Translation",
    "convolutions",
    "elementwise",
    "losses",
    "normalization",
    "pooling",
    "recurrent",
    "shapes",
]
