"""What activations compute that exporters write in many nodes, by which they are recognised."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparknet.onnx.source import Array

HALF_ROOT = float(np.float16(2**0.5))
PROBE = np.linspace(-6, 6, 49, dtype=np.float32)


def _gelu(x: Array) -> Any:
    return x * 0.5 * (1 + np.array([math.erf(float(one) / 2**0.5) for one in x]))


def _gelu_of_half(x: Array) -> Any:
    """As exporters write it for half floats, which have no nearer root of 2."""
    return x * 0.5 * (1 + np.array([math.erf(float(one) / HALF_ROOT) for one in x]))


def _gelu_by_tanh(x: Array) -> Any:
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


ACTIVATIONS: dict[str, Callable[[Array], Any]] = {
    "Gelu": _gelu,
    "GeluTanh": _gelu_by_tanh,
    "GeluHalf": _gelu_of_half,
}
