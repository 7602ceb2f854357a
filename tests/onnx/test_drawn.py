"""Drawn graphs: the net computes what onnxruntime does, or the model is refused."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparknet.errors import SparkNetError
from tests.onnx.drawn import Drawing
from tests.onnx.graphs import Array, converted, old_runtime, onnx, run

TOLERANCE = 1e-3


def wrong(drawing: Drawing, folder: Path) -> list[str] | None:
    """The outputs that differ; None: the model is refused, by onnxruntime or here.

    What onnxruntime computes otherwise node by node (shapes that it has foretold wrongly) may be
    either.  What depends on the last digits (the first of values that are equal but for them) may
    be anything.
    """
    path = folder / "model.onnx"
    onnx.save(drawing.model(), str(path))
    try:
        want = run(path, drawing.fed)
    except Exception:  # onnxruntime has a class of its own for each status
        return None
    try:
        _, got = converted(path, drawing.fed, folder)
    except SparkNetError:
        return None
    found = [name for name, value in want.items() if not _agrees(got[name], value)]
    ours = {name: drawing.values[name.removesuffix("_f")].astype(np.float32) for name in found}
    found = [name for name in found if not _agrees(got[name], ours[name])]
    shaken = [run(path, _shaken(drawing.fed, seed)) for seed in range(3)] if found else []
    return [name for name in found if all(_agrees(one[name], want[name]) for one in shaken)]


def _shaken(feeds: dict[str, Array], seed: int) -> dict[str, Array]:
    """Other last digits."""
    numbers = np.random.default_rng(seed)
    return {
        name: value * np.asarray(numbers.uniform(1 - 3e-7, 1 + 3e-7, value.shape), np.float32)
        if value.dtype == np.float32
        else value
        for name, value in feeds.items()
    }


def _agrees(got: Array, want: Array) -> bool:
    largest = max(float(np.abs(want).max()), 1e-2)
    return got.shape == want.shape and bool(np.abs(got - want).max() <= TOLERANCE * largest)


@old_runtime
@settings(
    max_examples=15,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 4))
def test_drawn_graphs(tmp_path: Path, seed: int, nodes: int) -> None:
    drawing = Drawing(Random(seed), nodes)
    if drawing.nodes:
        assert not wrong(drawing, tmp_path)


@old_runtime
@pytest.mark.slow
@settings(
    max_examples=300,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 6))
def test_many_drawn_graphs(tmp_path: Path, seed: int, nodes: int) -> None:
    drawing = Drawing(Random(seed), nodes)
    if drawing.nodes:
        assert not wrong(drawing, tmp_path)
