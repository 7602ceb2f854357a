"""The embedded pycaffe: the names of BVLC Caffe 1.0's Python module (docs/compatibility.md)."""

from __future__ import annotations

import sys

from sparknet.caffe import _caffe, io, proto, pycaffe
from sparknet.caffe._caffe import (
    NCCL,
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    Blob,
    Layer,
    NesterovSolver,
    Net,
    RMSPropSolver,
    SGDSolver,
    Timer,
    __version__,
    get_solver,
    has_nccl,
    init_log,
    layer_type_list,
    log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_multiprocess,
    set_random_seed,
    set_solver_count,
    set_solver_rank,
    solver_count,
    solver_rank,
)
from sparknet.caffe.classifier import Classifier
from sparknet.caffe.detector import Detector
from sparknet.caffe.net_spec import NetSpec, layers, params, to_proto
from sparknet.caffe.proto.caffe_pb2 import TEST, TRAIN
from sparknet.caffe.solvers import solver_from_text
from sparknet.layers.user_layer import use_caffe

__all__ = [
    "NCCL",
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
    "_caffe",
    "get_solver",
    "has_nccl",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "log",
    "params",
    "proto",
    "pycaffe",
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
