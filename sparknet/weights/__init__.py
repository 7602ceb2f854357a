"""Weights by layer name, as views of one flat buffer."""

from __future__ import annotations

from sparknet.proto.model import WeightsWarning
from sparknet.weights.collection import WeightCollection
from sparknet.weights.copying import (
    NOTHING,
    Opened,
    check_layers,
    copy_from,
    copy_weights,
    open_weights,
)
from sparknet.weights.layout import LayerBlobs, Layout, Span, layout_of
from sparknet.weights.safetensors import read_tensors, write_tensors
from sparknet.weights.scattered import Scattered
from sparknet.weights.state_dict import from_state_dict, state_dict

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
