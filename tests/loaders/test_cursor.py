"""Datum messages read in place, against protobuf's reading of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.cli.record_files import write_database
from sparknet.errors import FileError
from sparknet.loaders.datums import Cursor
from sparknet.native.transform import (
    ENCODED,
    FLOATS,
    SCATTERED,
    BatchItems,
    RecordError,
    Transformation,
)
from sparknet.proto import caffe_pb2

small = st.integers(-2, 5)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "channels": small,
        "height": small,
        "width": small,
        "label": st.integers(-(2**31), 2**31 - 1),
        "encoded": st.booleans(),
        "data": st.binary(max_size=30),
        "float_data": st.lists(st.floats(width=32, allow_nan=False), max_size=30),
    },
)


def _fits(datum: caffe_pb2.Datum) -> bool:
    count = len(datum.data) or len(datum.float_data)
    shape = (datum.channels, datum.height, datum.width)
    return datum.encoded or (min(shape) > 0 and int(np.prod(shape)) == count)


@settings(max_examples=300)
@given(st.lists(FIELDS, max_size=3), st.booleans())
def test_as_protobuf_reads_them(parts, right_size):
    """Several messages after each other are one message."""
    value = b"".join(caffe_pb2.Datum(**part).SerializeToString() for part in parts)
    want = caffe_pb2.Datum()
    want.ParseFromString(value)
    if right_size and not _fits(want):
        count = len(want.data) or len(want.float_data)
        value += caffe_pb2.Datum(channels=1, height=1, width=count).SerializeToString()
        want.ParseFromString(value)
    records = BatchItems(1)
    if not _fits(want):
        with pytest.raises(RecordError):
            records.scan(value, [0], [len(value)])
        return
    records.scan(value, [0], [len(value)])
    row = records.table[0]
    assert records.shape() == (want.channels, want.height, want.width)
    assert row["label"] == want.label
    if want.encoded:
        assert row["kind"] == ENCODED
        assert records.encoded(0) == want.data
    elif row["kind"] != SCATTERED:
        assert (row["kind"] == FLOATS) == (not want.data)
        out = np.empty((1, *records.shape()), np.float32)
        Transformation().apply(out, records, 0)
        values = list(want.data) or list(want.float_data)
        np.testing.assert_array_equal(out.ravel(), np.array(values, np.float32))


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_no_bytes_do_worse_than_raise(value):
    records = BatchItems(1)
    try:
        records.scan(value, [0], [len(value)])
    except RecordError:
        return
    if records.table["kind"][0] < ENCODED:
        out = np.empty((1, *records.shape()), np.float32)
        Transformation().apply(out, records, 0)


def test_a_record_outside_its_memory():
    for start, size in ((0, 11), (-1, 2), (11, 0), (5, 6), (2**62, 2**62)):
        with pytest.raises(IndexError):
            BatchItems(1).scan(b"0123456789", [start], [size])


def test_threads_change_nothing():
    images = np.random.default_rng(0).integers(0, 256, (64, 3, 40, 50)).astype(np.uint8)
    records = BatchItems(64)
    for number, image in enumerate(images):
        records.put(number, image)
    how = Transformation(crop=30, random_crop=True, mirror=True, scale=0.1, mean_values=(1, 2, 3))
    outs = [np.empty((64, 3, 30, 30), np.float32) for _ in range(2)]
    for out, threaded in zip(outs, (False, True), strict=True):
        how.apply(out, records, 9, threaded)
    np.testing.assert_array_equal(outs[0], outs[1])


def test_skipping_goes_round(tmp_path):
    path = str(tmp_path / "db")
    value = caffe_pb2.Datum(channels=1, height=1, width=1, data=b"x").SerializeToString()
    write_database(path, ((b"%d" % n, value) for n in range(5)))
    for skip in (0, 3, 5, 12):
        cursor = Cursor(path, skip)
        assert [int(key) for key in cursor.take(7)[0]] == [(skip + n) % 5 for n in range(7)]
        cursor.close()


def test_an_empty_database(tmp_path):
    write_database(str(tmp_path / "db"), [])
    with pytest.raises(FileError, match="is empty"):
        Cursor(str(tmp_path / "db")).take(1)
