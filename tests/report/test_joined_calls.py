"""Calls of several threads that share a batch."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from sparknet.report.joined_calls import JoinedCalls

MAX_ROWS = 16


class Doubler:
    """Doubles a column; the first call takes until the others wait."""

    def __init__(self):
        self.sizes: list[int] = []
        self.has_begun, self.may_end = Event(), Event()

    def __call__(self, columns):
        self.sizes.append(len(columns["x"]))
        if len(self.sizes) == 1:
            self.has_begun.set()
            assert self.may_end.wait(30)
        if (columns["x"] < 0).any():
            raise ValueError(f"{columns['x'].min()} is below 0")
        return {"y": 2 * columns["x"], "names": [str(value) for value in columns["x"].ravel()]}


def results(calls):
    """What each of the calls gives, of which all but the first wait, and the sizes of batches."""
    function = Doubler()
    joined = JoinedCalls(function, MAX_ROWS)
    with ThreadPoolExecutor(len(calls)) as pool:
        first = pool.submit(joined, {"x": calls[0]})
        assert function.has_begun.wait(30)
        rest = []
        for number, call in enumerate(calls[1:], 1):
            rest.append(pool.submit(joined, {"x": call}))
            while len(joined._waiting) < number:
                pass
        function.may_end.set()
        return [one.exception(30) or one.result() for one in (first, *rest)], function.sizes


def test_calls_that_wait_are_one_batch():
    calls = [np.full((rows, 1), rows, np.float32) for rows in (1, 2, 3, 4)]
    found, sizes = results(calls)
    assert sizes == [1, 9]
    for call, result in zip(calls, found, strict=True):
        np.testing.assert_array_equal(result["y"], 2 * call)
        assert result["names"] == [str(float(len(call)))] * len(call)


def test_other_columns_and_many_rows_are_batches_of_their_own():
    shapes = [(1, 1), (1, 1), (1, 2), (1, 1), (MAX_ROWS, 1), (1, 1)]
    found, sizes = results([np.ones(shape) for shape in shapes])
    assert sizes == [1, 1, 1, 1, MAX_ROWS, 1]
    assert [one["y"].shape for one in found] == shapes


def test_an_error_is_of_the_call_that_causes_it():
    found, sizes = results([np.full((1, 1), value) for value in (1.0, 2.0, -3.0, 4.0)])
    assert sizes == [1, 3, 1, 1, 1]
    assert [one["y"].item() for one in (found[0], found[1], found[3])] == [2, 4, 8]
    with pytest.raises(ValueError, match=r"-3.0 is below 0"):
        raise found[2]


def test_quick_calls_do_not_share_a_batch():
    function = Doubler()
    function.may_end.set()
    joined = JoinedCalls(function, MAX_ROWS)
    ones = {"x": np.ones((1, 1))}
    while not joined._is_quick:
        joined(ones)
    with joined._turn:  # which a call that shares a batch waits for
        np.testing.assert_array_equal(joined(ones)["y"], [[2]])
