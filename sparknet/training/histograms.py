"""Histograms: norms and histograms of each layer's weights and gradients, for an event.

Norms are of all values.  A histogram of a large blob counts values that lie equally far apart in
it, so that a look at a net takes less than a step of it.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from sparknet.native import NDArray
from sparknet.weights import Layout, Span

BINS = 30
"""Of equal width, from the least to the largest value that was counted."""
COUNTED = 1 << 14
"""The most values of a blob that a histogram counts, or a few less."""

Json = dict[str, Any]


def look(layout: Layout, weights: NDArray, gradients: NDArray) -> list[Json]:
    """A dict for each blob of parameters; those that layers share appear once."""
    seen, found = set[Span](), []
    for layer in layout.layers:
        for number, (begin, end) in enumerate(layer.spans):
            if begin == end or (begin, end) in seen:
                continue
            seen.add((begin, end))
            both = {"weights": weights[begin:end], "gradients": gradients[begin:end]}
            told = {kind: summary(values) for kind, values in both.items()}
            found.append({"layer": layer.name, "blob": number, "size": end - begin, **told})
    return found


def summary(values: NDArray) -> Json:
    """The norm (None where it is not finite), and the counts between ``low`` and ``high``."""
    norm, some = values.norm2(), values.numpy()[:: -(-values.size // COUNTED)]
    if not isfinite(norm):
        some = some[np.isfinite(some)]
    low, high = (float(some.min()), float(some.max())) if some.size else (0.0, 0.0)
    counts = np.zeros(BINS, np.int64)
    if low < high:
        # np.histogram rounds in float32, and refuses ranges that it cannot divide
        places = (some.astype(np.float64) - low) * (BINS / (high - low))
        counts = np.bincount(np.minimum(places.astype(np.int64), BINS - 1), minlength=BINS)
    else:
        counts[BINS // 2] = some.size
    return {
        "norm": norm if isfinite(norm) else None,
        "low": low,
        "high": high,
        "counts": counts.tolist(),
    }
