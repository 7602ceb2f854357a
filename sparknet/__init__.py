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

Every layer type has a builder here, which a star import brings and `dir(sparknet)` lists.

`train` does so by several processes of this machine, `sparknet.spark.Trainer` by the workers of a
Spark cluster.  `sparknet.training` has the strategies by which workers synchronise,
`sparknet.models` well-known nets, `sparknet.report` progress and plots; `sparknet.caffe` is a
pycaffe.

Names are loaded when they are first used, so that ``import sparknet`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

if archive := getattr(getattr(__spec__, "loader", None), "archive", None):
    from sparknet.zip_import import unpack

    __path__ = [unpack(archive)]

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
        "SolverParams",
    ),
    "sparknet.net": ("Net",),
    "sparknet.predict.loaded": ("load",),
    "sparknet.training": ("train",),
    "sparknet.training.planning": ("plan",),
    "sparknet.training.rate_finder": ("find_lr",),
    "sparknet.weights": ("WeightCollection",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = ("caffe", "dsl", "errors", "graph", "models", "report", "spark", "training")


def _builders() -> list[str]:
    """Return what `sparknet.dsl` has: a builder for every layer type, and SparkNet's own names."""
    names: list[str] = import_module("sparknet.dsl").__all__
    return names


def __dir__() -> list[str]:
    return sorted({"spark", *import_module(__name__).__all__})


def load_ipython_extension(shell: object) -> None:
    """Let ``import caffe`` mean `sparknet.caffe`: ``%load_ext sparknet``."""
    import_module("sparknet.caffe.alias").install()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _ROOMS or name in ("renamed", "summary"):
            return import_module(f"sparknet.{name}")
        if name == "__all__":
            # Not spark: a star import would hide the session of that name in shells and notebooks.
            rooms = set(_ROOMS) - {"spark"}
            value: Any = sorted({"__version__", *rooms, *_HOME_OF, *_builders()})
        elif name in _HOME_OF:
            value = getattr(import_module(_HOME_OF[name]), name)
        elif not name.startswith("_") and name in _builders():
            value = getattr(import_module("sparknet.dsl"), name)
        else:
            raise AttributeError(f"module 'sparknet' has no attribute {name!r}")
        globals()[name] = value
        return value

else:
    from sparknet import caffe as caffe
    from sparknet import dsl as dsl
    from sparknet import errors as errors
    from sparknet import graph as graph
    from sparknet import models as models
    from sparknet import report as report
    from sparknet import spark as spark
    from sparknet import training as training
    from sparknet.dsl import *  # noqa: F403 - SparkNet's own names
    from sparknet.dsl.typed import *  # noqa: F403 - a builder for each layer type
    from sparknet.errors import SparkNetError as SparkNetError
    from sparknet.native import NDArray as NDArray
    from sparknet.net import Net as Net
    from sparknet.predict.loaded import load as load
    from sparknet.proto import Model as Model
    from sparknet.proto import read_model as read_model
    from sparknet.proto import read_net as read_net
    from sparknet.proto import read_solver as read_solver
    from sparknet.proto import write_model as write_model
    from sparknet.training import train as train
    from sparknet.training.planning import plan as plan
    from sparknet.training.rate_finder import find_lr as find_lr
    from sparknet.weights import WeightCollection as WeightCollection
