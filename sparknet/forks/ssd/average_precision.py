"""Mean average precision of the rows that DetectionEvaluate gives.

SSD's Caffe: solver.cpp, TestDetection, and bbox_util.cpp, ComputeAP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.errors import SolverError

Array = np.ndarray[Any, Any]

VERSIONS = ("Integral", "11point", "MaxIntegral")
"""Every detection counts by its precision; the eleven recalls of VOC 2007; VOC 2012."""


def mean_average_precision(batches: Sequence[Array], version: str = "Integral") -> float:
    """The mean over classes of the average precision over all batches, each N x 5 rows."""
    found = average_precisions(batches, version)
    return float(np.mean(list(found.values()))) if found else 0.0


def average_precisions(batches: Sequence[Array], version: str = "Integral") -> dict[int, float]:
    """The average precision of each class; 0 where it has no true box or no detection."""
    if version not in VERSIONS:
        raise SolverError(f"unknown ap_version '{version}': it is one of {', '.join(VERSIONS)}")
    rows = np.concatenate([np.reshape(batch, (-1, 5)) for batch in batches])
    heads, found = rows[rows[:, 0] == -1], rows[rows[:, 0] != -1]
    return {
        int(label): _precision(
            found[found[:, 1] == label], heads[heads[:, 1] == label, 2].sum(), version
        )
        for label in np.unique(heads[:, 1])
    }


def _precision(rows: Array, real: float, version: str) -> float:
    # A row that is neither right nor wrong, of a difficult box, does not count.
    rows = rows[(rows[:, 3] != 0) | (rows[:, 4] != 0)]
    rows = rows[np.argsort(-rows[:, 2], kind="stable")]
    if not len(rows) or not real:
        return 0.0
    right = np.cumsum(rows[:, 3], dtype=np.float64)
    precision, recall = right / np.arange(1, len(rows) + 1), right / real
    if version == "Integral":
        gained = np.diff(recall, prepend=0)
        return float((precision * gained).sum())
    best = np.maximum.accumulate(precision[::-1])[::-1]
    if version == "11point":
        reached = [recall >= level / 10 for level in range(11)]
        return float(np.mean([best[at].max() if at.any() else 0 for at in reached]))
    return float((best * np.diff(recall, prepend=0)).sum())
