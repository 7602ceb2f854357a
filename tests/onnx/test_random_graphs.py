"""Drawn graphs: the net computes what onnxruntime does, or the model is refused."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparknet.errors import SparkNetError
from tests.onnx.graphs import converted, helper, numpy_helper, old_runtime, onnx, run, save
from tests.onnx.random_graphs import Drawing

TOLERANCE = 1e-3


def wrong(drawing: Drawing, folder: Path) -> list[str] | None:
    """The outputs that differ; None: the model is refused, by onnxruntime or here.

    What onnxruntime computes otherwise node by node (shapes that it has foretold wrongly) may be
    either.  What depends on the last digits (the first of values that are equal but for them) may
    be anything: it changes with other last digits of the feeds and of what the nodes compute.
    """
    path = save(drawing.model(), folder)
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
    shaken = [_shaken(drawing, seed, path) for seed in range(6)] if found else []
    return [name for name in found if all(_agrees(one[name], want[name]) for one in shaken)]


_EXACT = (
    *("Abs", "Cast", "Ceil", "Clip", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten"),
    *("Floor", "Gather", "GatherElements", "GlobalMaxPool", "Identity", "LeakyRelu", "Max"),
    *("MaxPool", "Min", "Neg", "Pad", "Relu", "Reshape", "Round", "Sign", "Slice"),
    *("SpaceToDepth", "Split", "Squeeze", "ThresholdedRelu", "Tile", "TopK", "Transpose"),
    *("Trilu", "Unsqueeze", "Where"),
)
"""Operators that round nothing."""


def _shaken(drawing, seed, path):
    """The outputs with other last digits of the feeds and behind every node that rounds."""
    numbers = np.random.default_rng(seed)

    def moved(value):
        """As much as a sum of such values may be off; zeros stay."""
        off = numbers.uniform(-1e-6, 1e-6, value.shape) * np.abs(value).max(initial=0)
        return np.asarray(np.where(value == 0, 0, off), np.float32)

    model = drawing.model()
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for one in nodes:
        kept = model.graph.node.add()
        kept.CopyFrom(one)
        for place, name in enumerate(one.output):
            value = drawing.values.get(name)
            if one.op_type in _EXACT or value is None or value.dtype != np.float32:
                continue
            kept.output[place] = f"{name}_exact"
            model.graph.initializer.append(numpy_helper.from_array(moved(value), f"{name}_off"))
            words = [f"{name}_exact", f"{name}_off"]
            model.graph.node.append(helper.make_node("Add", words, [name], name=f"off_{name}"))
    onnx.save(model, str(path))
    feeds = {
        name: value + moved(value) if value.dtype == np.float32 else value
        for name, value in drawing.fed.items()
    }
    return run(path, feeds)


def _agrees(got, want):
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
def test_drawn_graphs(tmp_path, seed, nodes):
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
def test_many_drawn_graphs(tmp_path, seed, nodes):
    drawing = Drawing(Random(seed), nodes)
    if drawing.nodes:
        assert not wrong(drawing, tmp_path)
