"""sparknet: Caffe networks on Apache Spark.

A net is written in Python or comes as Caffe's prototxt, with a solver that says how it learns:

>>> import numpy as np
>>> from sparknet import LinearLayer, Net, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
>>> lines = NetParams(
...     "lines",
...     RDDLayer("data", shape=[32, 2]),
...     RDDLayer("label", shape=[32]),
...     LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
...     SoftmaxWithLoss("loss", ["ip", "label"]),
... )
>>> net = Net(SolverParams(net=lines, base_lr=0.5, lr_policy="fixed"), seed=1)
>>> points = np.random.default_rng(0).normal(size=(1000, 2))
>>> net.set_training_data((points, points[:, 0] > points[:, 1]))
>>> net.train(100) < 0.3  # the mean loss
True

`train` does so by several processes of this machine, `sparknet.spark.Trainer` by the workers of a
Spark cluster.  `sparknet.dsl` has a builder for every layer type, `sparknet.dist` the strategies by
which workers synchronise, `sparknet.models` well-known nets, `sparknet.summary` progress and plots;
`sparknet.caffe` is a pycaffe.

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
_ROOMS = ("caffe", "dist", "dsl", "errors", "graph", "models", "spark", "summary")

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
    "models",
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
    from sparknet import caffe, dist, dsl, errors, graph, models, spark, summary
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
