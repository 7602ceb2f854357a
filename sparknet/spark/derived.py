"""Derived: what pyspark.ml's columns need of a module's outputs, as layers make it of a net's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Step = Literal["softmax", "sigmoid", "pair", "argmax"]


@dataclass(frozen=True)
class Derived:
    """Something made of an output, a row for each record."""

    of: str
    steps: tuple[Step, ...]


def with_derived(made: dict[str, Array], wanted: Mapping[str, Derived]) -> dict[str, Array]:
    """The outputs with what is derived from them."""
    for name, one in wanted.items():
        values = made[one.of]
        for step in one.steps:
            values = _STEPS[step](values)
        made[name] = values
    return made


def _softmax(values: Array) -> Array:
    grown: Array = np.exp(values - values.max(axis=1, keepdims=True))
    shares: Array = grown / grown.sum(axis=1, keepdims=True)
    return shares


def _sigmoid(values: Array) -> Array:
    found: Array = 0.5 * np.tanh(0.5 * values) + np.float32(0.5)
    return found.astype(np.float32)


def _pair(values: Array) -> Array:
    """Two classes, no and yes, as pyspark.ml has them."""
    flat = values.reshape(len(values), 1)
    return np.concatenate([-flat, flat], axis=1)


def _argmax(values: Array) -> Array:
    places: Array = values.argmax(axis=1).astype(np.float32)
    return places


_STEPS: dict[Step, Callable[[Array], Array]] = {
    "softmax": _softmax,
    "sigmoid": _sigmoid,
    "pair": _pair,
    "argmax": _argmax,
}
