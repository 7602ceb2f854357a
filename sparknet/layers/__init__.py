"""Caffe's layer types: parameters, defaults, arity and shape rules.

``Plan.values`` names things alike in all layers, for the kernels that read it:

- Sizes, strides and pads are tuples with one entry per spatial axis: ``kernel``,
  ``stride``, ``pad``, ``dilation``; a pair is (height, width).
- ``axis`` counts from 0, whatever sign the option had.  Per-axis values (``offset``,
  ``order``) cover all axes of the input.
- Enums are short lowercase words: ``max``, ``across_channels``, ``prod``.
- Everything else has the name and the type of its option (``num_output``,
  ``transpose``, ``eps``), with defaults filled in.
- Shapes are not repeated: they are in ``Plan.tops`` and ``Plan.params``."""

from __future__ import annotations

from sparknet.layers.host import Host
from sparknet.layers.layer import TEST, TRAIN, Arity, Layer, Param, Plan, Shape, layer
from sparknet.layers.registry import LAYERS, make

__all__ = [
    "LAYERS",
    "TEST",
    "TRAIN",
    "Arity",
    "Host",
    "Layer",
    "Param",
    "Plan",
    "Shape",
    "layer",
    "make",
]
