"""sparknet: Caffe networks on Apache Spark.

Names are loaded when they are first used, so that ``import sparknet`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "sparknet.errors": ("SparkNetError",),
    "sparknet.native": ("NDArray",),
    "sparknet.proto": ("Model", "read_model", "read_net", "read_solver", "write_model"),
    "sparknet.dsl": (
        "ActivationLayer",
        "ConvLayer",
        "LinearLayer",
        "NetParams",
        "PoolLayer",
        "RDDLayer",
        "SoftmaxWithLoss",
        "SolverParams",
    ),
    "sparknet.net": ("Net",),
    "sparknet.dist": ("train",),
    "sparknet.weights": ("WeightCollection",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = ("caffe", "dist", "dsl", "errors", "graph", "spark", "summary")

__all__ = [
    "ActivationLayer",
    "ConvLayer",
    "LinearLayer",
    "Model",
    "NDArray",
    "Net",
    "NetParams",
    "PoolLayer",
    "RDDLayer",
    "SoftmaxWithLoss",
    "SolverParams",
    "SparkNetError",
    "WeightCollection",
    "__version__",
    "caffe",
    "dist",
    "dsl",
    "errors",
    "graph",
    "read_model",
    "read_net",
    "read_solver",
    "spark",
    "summary",
    "train",
    "write_model",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"sparknet.{name}")
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sparknet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from sparknet import caffe, dist, dsl, errors, graph, spark, summary
    from sparknet.dist import train
    from sparknet.dsl import (
        ActivationLayer,
        ConvLayer,
        LinearLayer,
        NetParams,
        PoolLayer,
        RDDLayer,
        SoftmaxWithLoss,
        SolverParams,
    )
    from sparknet.errors import SparkNetError
    from sparknet.native import NDArray
    from sparknet.net import Net
    from sparknet.proto import Model, read_model, read_net, read_solver, write_model
    from sparknet.weights import WeightCollection
