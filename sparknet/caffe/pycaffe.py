"""The names of pycaffe's own module of this name (Caffe: python/caffe/pycaffe.py)."""

from __future__ import annotations

from collections import OrderedDict
from itertools import zip_longest as izip_longest

import numpy as np

import sparknet.caffe as caffe
from sparknet.caffe._caffe import (
    NCCL,
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    Net,
    RMSPropSolver,
    SGDSolver,
    Timer,
)
from sparknet.caffe.optional_modules import six

__all__ = [
    "NCCL",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "Net",
    "OrderedDict",
    "RMSPropSolver",
    "SGDSolver",
    "Timer",
    "caffe",
    "izip_longest",
    "np",
    "six",
]
