"""Batches: the order's records, resumed bit for bit, around damaged ones, and made ahead."""

import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import ArrayError, FileError
from sparknet.loaders.batches import Batches, ahead, one_pass
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords, Batch, Indices, rows_of

few = settings(max_examples=40)


class Damaged(ArrayRecords):
    """Leaves out some of its records."""

    def __init__(self, count: int, bad: set[int]) -> None:
        super().__init__(x=np.arange(count))
        self.bad = np.array(sorted(bad), np.int64)

    def take(self, indices: Indices) -> Batch:
        rows = rows_of(indices, len(self))
        return super().take(rows[~np.isin(rows, self.bad)])


@few
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_every_record_once_an_epoch_over_all_workers(length, batch_size, size, ragged):
    records = ArrayRecords(x=np.arange(length))
    seen: list[int] = []
    for rank in range(size):
        order = Order(length, 3, True, rank, size)
        mine = len(range(rank, 2 * length, size))
        got: list[int] = []
        with Batches(records, batch_size, order, ragged=ragged) as batches:
            while len(got) < mine:
                got += batches.next()["x"].tolist()
        assert not ragged or len(got) == mine
        assert got[:mine] == order.next(mine).tolist()
        seen += got[:mine]
    assert sorted(seen) == sorted([*range(length)] * 2)


@few
@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 6), st.booleans(), st.data())
def test_a_cursor_resumes_bit_for_bit(length, batch_size, steps, ragged, data):
    bad = data.draw(st.sets(st.integers(0, length - 1), max_size=length - 1))
    records = Damaged(length, bad)
    order = Order(length, 1)
    with Batches(records, batch_size, order, ragged=ragged) as batches:
        for _ in range(steps):
            batches.next()
        cursor = json.loads(json.dumps(batches.cursor))
        want = [batches.next()["x"].tolist() for _ in range(4)]
        batches.seek(cursor)
        assert [batches.next()["x"].tolist() for _ in range(4)] == want
    with Batches(records, batch_size, order, ragged=ragged) as again:
        again.seek(cursor)
        assert [again.next()["x"].tolist() for _ in range(4)] == want
    assert not bad & {x for batch in want for x in batch}


def test_damaged_records_are_replaced_with_the_next():
    with Batches(Damaged(6, {1, 4}), 3, Order(6, shuffle=False)) as batches:
        assert [next(batches)["x"].tolist() for _ in range(3)] == [[0, 2, 3], [5, 0, 2], [3, 5, 0]]


def test_nothing_but_damaged_records_ends_with_an_error():
    with (
        Batches(Damaged(4, {0, 1, 2, 3}), 2) as batches,
        pytest.raises(FileError, match="every one of them is damaged"),
    ):
        batches.next()


def test_ragged_batches_stop_at_the_end_of_an_epoch():
    with Batches(ArrayRecords(x=np.arange(5)), 2, Order(5, shuffle=False), ragged=True) as batches:
        got = [batches.next()["x"].tolist() for _ in range(4)]
    assert got == [[0, 1], [2, 3], [4], [0, 1]]


def test_transforms_are_told_the_number_of_the_first_record():
    firsts = []

    def tenfold(values, first):
        firsts.append(first)
        return values * 10

    records = ArrayRecords(x=np.arange(4), y=np.arange(4))
    order = Order(4, shuffle=False, rank=1, size=2)
    with Batches(records, 3, order, transforms={"x": tenfold}) as batches:
        got = [batches.next() for _ in range(2)]
    assert [batch["x"].tolist() for batch in got] == [[10, 30, 10], [30, 10, 30]]
    assert got[0]["y"].tolist() == [1, 3, 1]
    assert firsts[:2] == [0, 6]


def test_batches_belong_to_the_caller_and_do_not_move_the_order():
    records, order = ArrayRecords(x=np.arange(6)), Order(6, shuffle=False)
    with Batches(records, 2, order) as batches:
        first = batches.next()["x"]
        first[:] = 99
        assert batches.next()["x"].tolist() == [2, 3]
    assert records.arrays["x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert order.next(1).tolist() == [0]


def test_an_error_is_raised_where_the_batch_is_taken():
    class Failing(ArrayRecords):
        def take(self, indices: Indices) -> Batch:
            if 3 in rows_of(indices, len(self)):
                raise FileError("disk", "is gone")
            return super().take(indices)

    with Batches(Failing(x=np.arange(6)), 2, Order(6, shuffle=False)) as batches:
        assert batches.next()["x"].tolist() == [0, 1]
        for _ in range(2):
            with pytest.raises(FileError, match="disk: is gone"):
                batches.next()


def test_dropped_batches_end_their_thread():
    before = set(threading.enumerate())
    batches = Batches(ArrayRecords(x=np.arange(6)), 2)
    batches.next()
    (thread,) = set(threading.enumerate()) - before
    del batches
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_one_pass_loses_and_pads_nothing():
    got = [batch["x"].tolist() for batch in one_pass(ArrayRecords(x=np.arange(5)), 2)]
    assert got == [[0, 1], [2, 3], [4]]


def test_batches_that_cannot_be():
    records = ArrayRecords(x=np.arange(5))
    with pytest.raises(ArrayError, match="a batch of 0 records"):
        Batches(records, 0)
    with pytest.raises(ArrayError, match="an order of 4 records for 5"):
        Batches(records, 2, Order(4))


def test_in_order_and_ahead():
    second = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        second.set()
        yield from range(2, 100)

    made = ahead(items())
    assert next(made) == 1
    assert second.wait(10)  # while the first is in use
    assert list(made) == list(range(2, 100))
    assert list(ahead([])) == []


def test_an_error_comes_where_its_item_would():
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no second")

    made = ahead(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="no second"):
        next(made)


def test_nobody_wants_more():
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            ended.set()

    made = ahead(items())
    assert next(made) == 0
    made.close()
    assert ended.wait(10)


LEAVES = """
import threading
from sparknet.loaders.batches import Prefetch

class Maker:
    def make(self, number, spare):
        if number == 2:
            making.set()
        return number

    def close(self):
        print("closed", flush=True)

making = threading.Event()
batches = Prefetch(lambda number: Maker())
assert batches.take() == 0
batches.give_back(None)
making.wait()
print("end", flush=True)
"""


def test_threads_end_before_the_interpreter_does():
    """One that is stopped in the middle of h5py keeps its lock, which the exit waits for."""
    ran = subprocess.run(
        [sys.executable, "-c", LEAVES], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == ["end", "closed"]
