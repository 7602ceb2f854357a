"""The switches of pycaffe that concern the process: device, random seed, logging, ranks, NCCL."""

from __future__ import annotations

import logging
import secrets
import sys
import threading
import warnings
from typing import NoReturn

import numpy as np

from sparknet.caffe import checks
from sparknet.devices import take_gpu, use_device
from sparknet.errors import SparkNetError, SpecError
from sparknet.layers import LAYERS

_logger = logging.getLogger("sparknet.caffe")
_LINE = "%(levelname).1s%(asctime)s.%(msecs)03d000 %(process)5d caffe] %(message)s"
_TIME = "%m%d %H:%M:%S"
"""As glog writes them, which Caffe's parse_log.py reads: I1231 23:59:59.000000 12345 …"""
_gpu = {"mode": 0, "device": 0}
_ranks = {"count": 1, "rank": 0, "multiprocess": False}


def set_mode_cpu() -> None:
    """Nets that are made from now on compute on the CPU, with the native engine."""
    _gpu["mode"] = 0
    use_device(None)


def set_mode_gpu() -> None:
    """Let nets from now on compute on a GPU by PyTorch; without one, warn and stay on the CPU."""
    _gpu["mode"] = 1
    _follow("set_mode_gpu")


def set_device(device: int) -> None:
    """Choose the GPU of `set_mode_gpu` by number."""
    _gpu["device"] = checks.integer("device", device)
    _follow(f"set_device({_gpu['device']})")


def _follow(what: str) -> None:
    if reason := take_gpu(_gpu["device"]):
        warnings.warn(f"{what}: {reason}", stacklevel=3)
    elif not _gpu["mode"]:
        use_device(None)


def init_log(level: int = logging.INFO, stderr: bool = True) -> None:
    """Show the reports of nets and solvers on stderr; Caffe's second argument has no effect."""
    level = checks.integer("level", level)
    if not _logger.handlers:
        log_to(logging.StreamHandler(sys.stderr))
    _logger.setLevel(level if level >= logging.DEBUG else logging.INFO)


def log_to(handler: logging.Handler) -> None:
    """Also send the reports to this handler, in glog's format."""
    handler.setFormatter(logging.Formatter(_LINE, _TIME))
    _logger.addHandler(handler)


def log(message: str) -> None:
    _logger.info("%s", checks.text("message", message))


def solver_count() -> int:
    return int(_ranks["count"])


def set_solver_count(count: int) -> None:
    _ranks["count"] = checks.integer("count", count)


def solver_rank() -> int:
    return int(_ranks["rank"])


def set_solver_rank(rank: int) -> None:
    _ranks["rank"] = checks.integer("rank", rank)


def set_multiprocess(multiprocess: bool) -> None:
    """Only stored: parallel training goes through sparknet's own strategies."""
    _ranks["multiprocess"] = checks.boolean("multiprocess", multiprocess)


def layer_type_list() -> list[str]:
    """Every layer type, sorted by name."""
    return sorted(LAYERS)


def has_nccl() -> bool:
    return False


_lock = threading.Lock()
_sequence: np.random.Generator | None = None


def set_random_seed(seed: int) -> None:
    """From here on nets get the same numbers in every run of the program."""
    global _sequence
    seed = checks.integer("seed", seed)
    if seed < 0:
        raise SpecError(f"a seed must not be negative; it is {seed}")
    with _lock:
        _sequence = np.random.default_rng(seed)


def next_seed() -> int:
    """Return a seed for one net; nets that are built in the same order get the same ones."""
    with _lock:
        if _sequence is None:
            return secrets.randbits(63)
        return int(_sequence.integers(0, 2**63))


class NoNCCLError(SparkNetError, RuntimeError):
    """A program wants to train on several GPUs by pycaffe's own way."""


def _refuse() -> NoReturn:
    raise NoNCCLError(
        "caffe.NCCL trains on several GPUs, which sparknet does by workers: "
        "train on several workers with sparknet.train or sparknet.spark.Trainer"
    )


class NCCL:
    """Exists by name only: any use raises an error that says what to use instead."""

    def __init__(self, solver: object, uid: object) -> None:
        _refuse()

    @staticmethod
    def new_uid() -> bytes:
        _refuse()

    def bcast(self) -> None:
        _refuse()
