"""Epoch accounting: nothing is lost, nothing comes twice, and any place can be sought."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.errors import ArrayError
from sparknet.loaders.order import Order, permuted
from sparknet.loaders.records import Rows

lengths = st.integers(1, 200)
sizes = st.integers(1, 9)
seeds = st.integers(-(2**65), 2**65)
FIRST_TWENTY = [2, 7, 1, 3, 9, 5, 4, 8, 0, 6, 1, 4, 9, 5, 3, 7, 8, 0, 2, 6]


@given(lengths, sizes, seeds, st.booleans(), st.data())
def test_every_record_exactly_once_an_epoch_over_all_ranks(length, size, seed, shuffle, data):
    seen: dict[int, Counter[int]] = {0: Counter(), 1: Counter(), 2: Counter()}
    for rank in range(size):
        order = Order(length, seed, shuffle, rank, size)
        while (epoch := order.epoch) < 3:
            batch = data.draw(st.integers(1, 64)) if rank < 2 else 7
            rows = order.next(min(batch, order.remaining))
            assert len(rows) == min(batch, len(rows))
            seen[epoch].update(rows.tolist())
    for counts in seen.values():
        assert counts == Counter(range(length))


@given(lengths, sizes, seeds, st.integers(1, 40))
def test_workers_see_together_what_one_sees_with_larger_batches(length, size, seed, batch):
    orders = [Order(length, seed, True, rank, size) for rank in range(size)]
    whole = Order(length, seed)
    for _ in range(3):
        dealt = np.concatenate([order.next(batch) for order in orders])
        assert sorted(dealt.tolist()) == sorted(whole.next(size * batch).tolist())
        assert {json.dumps(order.cursor) for order in orders} == {json.dumps(whole.cursor)}


@given(lengths, sizes, st.lists(st.integers(0, 50), max_size=8), st.integers(0, 300))
def test_batches_of_any_size_give_the_same_order_and_a_cursor_resumes_it(length, size, cuts, more):
    rank = length % size
    plain, cut = (Order(length, 5, True, rank, size) for _ in range(2))
    want = plain.next(sum(cuts) + more)
    got = [cut.next(count) for count in cuts]
    resumed = Order(length, 5, True, rank, size)
    resumed.seek(json.loads(json.dumps(cut.cursor)))
    assert np.concatenate([*got, resumed.next(more)]).tolist() == want.tolist()
    assert resumed.cursor == plain.cursor


@given(lengths, sizes, sizes, st.integers(0, 60))
def test_another_number_of_workers_takes_over_without_loss(length, before, after, steps):
    stream = Order(length, 1).next(steps * before + 20 * after).tolist()
    first = [Order(length, 1, True, rank, before) for rank in range(before)]
    second = [Order(length, 1, True, rank, after) for rank in range(after)]
    seen = [row for order in first for row in order.next(steps).tolist()]
    for order in second:
        order.seek(first[0].cursor)
        seen += order.next(20).tolist()
    assert sorted(seen) == sorted(stream)


def test_the_order_is_the_same_everywhere():
    order = Order(10, seed=1)
    assert order.next(20).tolist() == FIRST_TWENTY
    assert Order(10, shuffle=False).next(12).tolist() == [*range(10), 0, 1]


def shuffled(length: int, seed: int, epoch: int) -> Rows:
    return permuted(np.arange(length), length, seed, np.full(length, epoch))


def test_epochs_and_seeds_differ_and_every_permutation_is_as_likely():
    orders = Counter(tuple(shuffled(4, seed, 3).tolist()) for seed in range(4800))
    assert len(orders) == 24
    # 200 of each are expected, give or take 14: these are five deviations.
    assert 130 < min(orders.values()) <= max(orders.values()) < 270
    long = [shuffled(1000, seed, epoch) for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.count_nonzero(long[one] == long[other]) < 10
        assert abs(np.corrcoef(long[one], long[other])[0, 1]) < 0.15
    assert abs(np.corrcoef(long[0][1:], long[0][:-1])[0, 1]) < 0.15


def test_a_place_in_billions_of_records_costs_nothing():
    length = 3 * 10**9 + 1
    order = Order(length, rank=1, size=3)
    order.seek({"epoch": 10**6, "position": length - 2})
    rows = order.next(5)
    assert ((rows >= 0) & (rows < length)).all()
    assert len(set(rows.tolist())) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "an order of 0 records"),
        ((5, 0, True, 2, 2), "worker 2 of 2"),
        ((5, 0, True, -1, 2), "worker -1 of 2"),
    ],
)
def test_orders_that_cannot_be(arguments, message):
    with pytest.raises(ArrayError, match=message):
        Order(*arguments)


@pytest.mark.parametrize(
    "cursor", [{}, {"epoch": 0}, {"epoch": -1, "position": 0}, {"epoch": 0, "position": 5}]
)
def test_cursors_of_another_order(cursor):
    with pytest.raises(ArrayError, match="is not a position in an order of 5 records"):
        Order(5).seek(cursor)
