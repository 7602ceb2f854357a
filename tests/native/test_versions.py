"""Whether somebody may have written to an array's memory."""

import gc

import numpy as np
import pytest

from sparknet.native import NDArray


@pytest.fixture(autouse=True)
def few_objects():
    """A collection of garbage looks at this file's own alone: it takes a second of a long run."""
    gc.freeze()
    yield
    gc.unfreeze()


WRITES = {
    "set": lambda array: array.set(1, 2, 9),
    "fill": lambda array: array.fill(3),
    "copy": lambda array: array.copy_from(np.ones((2, 3))),
    "assign": lambda array: array.__setitem__((0, 1), 4),
    "part": lambda array: array[1:, ::2].fill(1),
    "add": lambda array: array.add(array),
    "scale": lambda array: array.__imul__(2.0),
    "numpy": lambda array: array.numpy().fill(1),
    "memoryview": lambda array: memoryview(array).cast("B").release(),
    "dlpack": lambda array: np.from_dlpack(array),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_a_write_changes_the_version(write):
    array = NDArray.zeros((2, 3))
    part, before = array[1], array.version
    write(array)
    gc.collect()
    assert 0 not in (before, array.version, part.version)
    assert array.version != before
    assert array.version == part.version


def test_reading_does_not():
    array = NDArray.zeros((2, 3))
    before = array.version
    assert array.sum() == 0
    assert (array + 1).get(0, 0) == 1
    assert array.copy().equals(array)
    assert array.frozen().numpy().sum() == 0
    gc.collect()
    assert array.version == before


def test_memory_that_others_hold_has_none():
    array = NDArray.zeros((2, 3))
    views = [array.numpy()[:, 1], memoryview(array), np.asarray(array)[::-1].ravel()[:0]]
    while views:
        assert array.version == 0
        views.pop()
        gc.collect()
    assert array.version > 0
    assert array.__array_interface__["data"][0] == array.address
    assert array.version == 0


def test_memory_of_others_has_none(tmp_path):
    assert NDArray.view(np.zeros(3, np.float32)).version == 0
    for mode in ("w+", "r", "c"):
        assert NDArray.map(tmp_path / "file", (2,), mode=mode).version == 0
