"""The recorded cases of real Caffe that lie in this folder (README.md), and how tests use them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

GOLDENS = Path(__file__).resolve().parent
ROOT = GOLDENS.parent.parent


def index(folder: str) -> list[dict[str, Any]]:
    """The entries of a folder's index.json."""
    entries: list[dict[str, Any]] = json.loads((GOLDENS / folder / "index.json").read_text())
    return entries


def agrees(got: object, want: object, rtol: float, atol: float, floor: float) -> bool:
    """The comparison that README.md defines."""
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if a.shape != b.shape:
        return False
    usual = np.abs(b[np.abs(b) < 1e12])
    scale = usual.max() if usual.size else 0.0
    allowed = rtol * np.abs(b) + atol * scale + floor
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return bool((same | (np.abs(a - b) <= allowed)).all())


SUITES = {
    "layers": 475,
    "nets": 12,
    "solvers": 57,
    "solvers/snapshots": 16,
    "solvers/testnets": 1,
    "solvers/weights": 1,
    "data": 23,
    "data/fillers": 15,
    "errors": 148,
    "formats/arrays": 8,
    "formats/binary": 6,
    "formats/filter": 7,
    "formats/netspec": 8,
    "formats/syntax": 7,
    "formats/upgrade": 14,
}
"""How many cases each suite lists."""


Test = TypeVar("Test", bound=Callable[..., object])


def cases(suite: str, entries: Sequence[dict[str, Any]] | None = None) -> Callable[[Test], Test]:
    """Run a test once for each case of a suite, as its argument ``case``, and count the cases."""
    chosen = index(suite) if entries is None else entries
    names = [str(entry["name"]) for entry in chosen]

    def decorate(test: Test) -> Test:
        made: Test = golden(suite)(pytest.mark.parametrize("case", chosen, ids=names)(test))
        return made

    return decorate


def golden(suite: str, *names: str) -> pytest.MarkDecorator:
    """Count what a test replays: the cases named, or the one that its parameters name."""
    return pytest.mark.golden(suite, *names)
