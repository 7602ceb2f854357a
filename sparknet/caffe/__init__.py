"""The embedded pycaffe: the names of BVLC Caffe 1.0's Python module.

`sparknet.caffe.alias` makes a plain ``import caffe`` mean this package.
Differences from pycaffe, each with its reason: docs/compatibility.md.
"""

from __future__ import annotations

import sys

from sparknet.caffe import io, proto
from sparknet.caffe.blob import Blob
from sparknet.caffe.classifier import Classifier
from sparknet.caffe.detector import Detector
from sparknet.caffe.modes import (
    has_nccl,
    init_log,
    log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_multiprocess,
    set_solver_count,
    set_solver_rank,
    solver_count,
    solver_rank,
)
from sparknet.caffe.net import Net
from sparknet.caffe.net_spec import NetSpec, layers, params, to_proto
from sparknet.caffe.proto.caffe_pb2 import TEST, TRAIN
from sparknet.caffe.random import set_random_seed
from sparknet.caffe.solvers import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    get_solver,
    solver_from_text,
)
from sparknet.caffe.timer import Timer
from sparknet.layers.user_layer import UserLayer as Layer
from sparknet.layers.user_layer import use_caffe

__version__ = "1.0.0"

__all__ = [
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Blob",
    "Classifier",
    "Detector",
    "Layer",
    "NesterovSolver",
    "Net",
    "NetSpec",
    "RMSPropSolver",
    "SGDSolver",
    "Timer",
    "__version__",
    "get_solver",
    "has_nccl",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "log",
    "params",
    "proto",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_from_text",
    "solver_rank",
    "to_proto",
]

use_caffe(sys.modules[__name__])


def layer_type_list() -> list[str]:
    """Every layer type, sorted by name."""
    from sparknet.layers import LAYERS

    return sorted(LAYERS)
