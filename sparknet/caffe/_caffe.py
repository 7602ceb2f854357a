"""The names of pycaffe's C++ module (Caffe: python/caffe/_caffe.cpp)."""

from __future__ import annotations

from sparknet.caffe.blob import Blob
from sparknet.caffe.modes import (
    NCCL,
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
from sparknet.caffe.net import Net
from sparknet.caffe.solvers import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    Solver,
    get_solver,
)
from sparknet.caffe.timing import Timer
from sparknet.layers.user_layer import (
    BlobVec,
    BoolVec,
    DtypeVec,
    IntVec,
    LayerVec,
    NetVec,
    RawBlobVec,
    StringVec,
)
from sparknet.layers.user_layer import UserLayer as Layer
from sparknet.proto.caffe_pb2 import LayerParameter, SolverParameter

__version__ = "1.0.0"

__all__ = [
    "NCCL",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Blob",
    "BlobVec",
    "BoolVec",
    "DtypeVec",
    "IntVec",
    "Layer",
    "LayerParameter",
    "LayerVec",
    "NesterovSolver",
    "Net",
    "NetVec",
    "RMSPropSolver",
    "RawBlobVec",
    "SGDSolver",
    "Solver",
    "SolverParameter",
    "StringVec",
    "Timer",
    "__version__",
    "get_solver",
    "has_nccl",
    "init_log",
    "layer_type_list",
    "log",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
]
