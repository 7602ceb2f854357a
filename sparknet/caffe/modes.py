"""The switches of pycaffe that concern the process: device, random seed, logging, ranks."""

from __future__ import annotations

import logging
import sys
import warnings

from sparknet.caffe import arguments
from sparknet.devices import take_gpu, use_device
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
    """Nets that are made from now on compute on a GPU, with PyTorch; where there is none, this
    warns, and they compute on the CPU."""
    _gpu["mode"] = 1
    _follow("set_mode_gpu")


def set_device(device: int) -> None:
    """Choose the GPU of `set_mode_gpu` by number."""
    _gpu["device"] = arguments.whole("device", device)
    _follow(f"set_device({_gpu['device']})")


def _follow(what: str) -> None:
    if reason := take_gpu(_gpu["device"]):
        warnings.warn(f"{what}: {reason}", stacklevel=3)
    elif not _gpu["mode"]:
        use_device(None)


def init_log(level: int = logging.INFO, stderr: bool = True) -> None:
    """Show the reports of nets and solvers on stderr; Caffe's second argument has no effect."""
    level = arguments.whole("level", level)
    if not _logger.handlers:
        log_to(logging.StreamHandler(sys.stderr))
    _logger.setLevel(level if level >= logging.DEBUG else logging.INFO)


def log_to(handler: logging.Handler) -> None:
    """Also send the reports to this handler, in glog's format."""
    handler.setFormatter(logging.Formatter(_LINE, _TIME))
    _logger.addHandler(handler)


def log(message: str) -> None:
    _logger.info("%s", arguments.text("message", message))


def solver_count() -> int:
    return int(_ranks["count"])


def set_solver_count(count: int) -> None:
    _ranks["count"] = arguments.whole("count", count)


def solver_rank() -> int:
    return int(_ranks["rank"])


def set_solver_rank(rank: int) -> None:
    _ranks["rank"] = arguments.whole("rank", rank)


def set_multiprocess(multiprocess: bool) -> None:
    """Only stored: parallel training goes through sparknet's own strategies."""
    _ranks["multiprocess"] = arguments.switch("multiprocess", multiprocess)


def layer_type_list() -> list[str]:
    """Every layer type, sorted by name."""
    return sorted(LAYERS)


def has_nccl() -> bool:
    return False
