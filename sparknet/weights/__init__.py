"""Weights by layer name, over one flat buffer."""

from __future__ import annotations

from sparknet.weights.collection import WeightCollection
from sparknet.weights.layout import LayerBlobs, Layout, Span, layout_of

__all__ = ["LayerBlobs", "Layout", "Span", "WeightCollection", "layout_of"]
