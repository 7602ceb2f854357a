"""The seed from which nets draw theirs: fixed by `set_random_seed`, else the system's own."""

from __future__ import annotations

import secrets
import threading

import numpy as np

from sparknet.caffe import arguments
from sparknet.errors import SpecError

_lock = threading.Lock()
_sequence: np.random.Generator | None = None


def set_random_seed(seed: int) -> None:
    """From here on nets get the same numbers in every run of the program."""
    global _sequence
    seed = arguments.whole("seed", seed)
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
