"""Weights by layer name, as views of one flat buffer."""

from __future__ import annotations

from sparknet.proto.model import WeightsWarning
from sparknet.weights.collection import WeightCollection
from sparknet.weights.files import (
    NOTHING,
    Opened,
    check_layers,
    copy_from,
    copy_weights,
    open_weights,
)
from sparknet.weights.layout import LayerBlobs, Layout, Scattered, Span, layout_of
from sparknet.weights.safetensors import from_state_dict, read_tensors, state_dict, write_tensors

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
    "from_state_dict",
    "layout_of",
    "open_weights",
    "read_tensors",
    "state_dict",
    "write_tensors",
]
