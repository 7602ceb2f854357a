"""Nets in Python: SparkNet's Listing 2, and a builder for every Caffe layer type.

``Convolution``, ``Pooling``, ``LRN`` … are made when first asked for; ``dir()``
lists them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparknet.dsl.builders import CaffeLayer, builder
from sparknet.dsl.layer_spec import LayerSpec
from sparknet.dsl.listing import (
    ActivationLayer,
    Ave,
    ConvLayer,
    LinearLayer,
    Max,
    PoolLayer,
    RDDLayer,
)
from sparknet.dsl.net_params import NetParams
from sparknet.dsl.solver_params import SolverParams
from sparknet.layers import LAYERS

__all__ = [
    "ActivationLayer",
    "Ave",
    "CaffeLayer",
    "ConvLayer",
    "LayerSpec",
    "LinearLayer",
    "Max",
    "NetParams",
    "PoolLayer",
    "RDDLayer",
    "SolverParams",
]

TYPES = tuple(name for name in LAYERS if name.isidentifier() and name not in __all__)
"""The layer types, each the name of a builder here."""

if TYPE_CHECKING:
    from sparknet.dsl import typed
    from sparknet.dsl.typed import *  # noqa: F403 - a function for each type

    __all__ += typed.__all__
else:
    __all__ += list(TYPES)

    def __getattr__(name: str) -> Any:
        if name not in TYPES:
            raise AttributeError(f"module 'sparknet.dsl' has no attribute {name!r}")
        globals()[name] = function = builder(name)
        return function


def __dir__() -> list[str]:
    return sorted(__all__)
