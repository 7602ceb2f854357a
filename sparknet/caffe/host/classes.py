"""Class numbers out of a blob of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import LayerError
from sparknet.graph import Node

Array = np.ndarray[Any, Any]


def class_numbers(node: Node, labels: Array, classes: int, ignored: int | None = None) -> Array:
    """Whole numbers below `classes`, or the one that is ignored; LayerError otherwise."""
    found = labels.ravel().astype(np.int64)
    bad = found[((found < 0) | (found >= classes)) & (found != ignored)]
    if len(bad):
        raise LayerError(node.name, f"{node.type}: label {bad[0]} is not below {classes} classes")
    return np.asarray(found)
