"""Weights by layer name, as views of one flat buffer."""

from __future__ import annotations

from sparknet.weights.collection import WeightCollection
from sparknet.weights.copying import WeightsWarning, check_names, copy_from
from sparknet.weights.layout import LayerBlobs, Layout, Span, layout_of
from sparknet.weights.scattered import Scattered

__all__ = [
    "LayerBlobs",
    "Layout",
    "Scattered",
    "Span",
    "WeightCollection",
    "WeightsWarning",
    "check_names",
    "copy_from",
    "layout_of",
]
