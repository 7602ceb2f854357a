"""The means of a test net's outputs over records, whatever batches they came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class Means:
    """Weighs each batch by its number of records."""

    def __init__(self) -> None:
        self.batches = 0
        self.records = 0
        self._sums: dict[str, float] = {}
        self._others: set[str] = set()

    def add(self, outputs: Mapping[str, Any], records: int) -> None:
        """Outputs of one number in every batch are metrics; others are no metrics."""
        for name, values in outputs.items():
            if np.size(values) != 1:
                self._others.add(name)
                continue
            value = float(np.asarray(values).item())
            self._sums[name] = self._sums.get(name, 0.0) + value * records
        self.batches += 1
        self.records += records

    def result(self) -> dict[str, float]:
        sums = self._sums.items()
        return {name: total / self.records for name, total in sums if name not in self._others}
