"""Weights by layer name, as views of one flat buffer."""

from __future__ import annotations

from sparknet.weights.collection import WeightCollection
from sparknet.weights.copying import (
    NOTHING,
    Opened,
    WeightsWarning,
    check_layers,
    copy_from,
    copy_weights,
    open_weights,
)
from sparknet.weights.layout import LayerBlobs, Layout, Span, layout_of
from sparknet.weights.scattered import Scattered

__all__ = [
    "NOTHING",
    "LayerBlobs",
    "Layout",
    "Opened",
    "Scattered",
    "Span",
    "WeightCollection",
    "WeightsWarning",
    "check_layers",
    "copy_from",
    "copy_weights",
    "layout_of",
    "open_weights",
]
