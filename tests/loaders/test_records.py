"""Records over arrays: columns, rows, parts and chains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.errors import ArrayError, IndexOutOfRange
from sparknet.loaders.records import ArrayRecords, Chain, Column, Records, Subset


def numbered(begin: int, end: int) -> ArrayRecords:
    label = np.arange(begin, end, dtype=np.int32)
    return ArrayRecords(data=label[:, None] * np.ones(3, np.float32), label=label)


def test_columns_length_and_rows():
    records = numbered(0, 5)
    assert isinstance(records, Records)
    assert records.columns == {
        "data": Column(np.dtype(np.float64), (3,)),
        "label": Column(np.dtype(np.int32), ()),
    }
    assert [column.size for column in records.columns.values()] == [24, 4]
    assert len(records) == 5
    batch = records.take([4, 0, 4])
    assert batch["label"].tolist() == [4, 0, 4]
    assert batch["data"].tolist() == [[4] * 3, [0] * 3, [4] * 3]


def test_a_slice_is_a_view():
    records = numbered(0, 5)
    assert np.shares_memory(records.take(slice(1, 3))["label"], records.arrays["label"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "at least one array"),
        ({"a": np.zeros(3), "b": np.zeros(2)}, "'a' has 3 rows, 'b' has 2 rows"),
        ({"a": 1.0}, "'a' has no rows"),
    ],
)
def test_arrays_that_are_no_records(arrays, message):
    with pytest.raises(ArrayError, match=message):
        ArrayRecords(**arrays)


@pytest.mark.parametrize("index", [-1, 5])
def test_rows_outside_are_refused(index):
    with pytest.raises(IndexOutOfRange, match=f"record {index} of 5"):
        numbered(0, 5).take([0, index])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.data())
def test_a_chain_is_its_parts_one_after_the_other(sizes, data):
    ends = np.cumsum([0, *sizes]).tolist()
    chain = Chain([numbered(*ends[place : place + 2]) for place in range(len(sizes))])
    total = ends[-1]
    assert len(chain) == total
    rows = data.draw(st.lists(st.integers(0, total - 1), max_size=9)) if total else []
    assert chain.take(rows)["label"].tolist() == rows
    assert chain.take(slice(1, None))["label"].tolist() == list(range(1, total))


def test_parts_of_a_chain_must_agree():
    with pytest.raises(ArrayError, match="part 1 of a chain has columns x: float32 2"):
        Chain([numbered(0, 2), ArrayRecords(x=np.zeros((1, 2), np.float32))])
    with pytest.raises(ArrayError, match="at least one part"):
        Chain([])


def test_a_chain_numbers_the_classes_of_all_parts():
    class Named(ArrayRecords):
        def __init__(self, *classes: str) -> None:
            super().__init__(label=np.arange(len(classes)))
            self.classes = classes

    chain = Chain([Named("cat", "elk"), Named("dog", "elk")])
    assert chain.classes == ("cat", "dog", "elk")
    assert chain.take(slice(None))["label"].tolist() == [0, 2, 1, 2]
    assert Subset(chain, [0]).classes == chain.classes
    with pytest.raises(ArrayError, match="part 1 of a chain has no names of classes"):
        Chain([Named("cat"), ArrayRecords(label=np.arange(1))])


def test_a_subset_has_an_order_of_its_own():
    part = Subset(numbered(10, 20), [7, 1, 3])
    assert len(part) == 3
    assert part.columns == numbered(0, 1).columns
    assert part.take(slice(None))["label"].tolist() == [17, 11, 13]
    assert part.take([2, 0])["label"].tolist() == [13, 17]
    with pytest.raises(IndexOutOfRange, match="record 3 of 3"):
        part.take([3])
