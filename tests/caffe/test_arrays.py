from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sparknet.caffe import io
from sparknet.errors import ArrayError
from sparknet.proto import caffe_pb2

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
SHAPES = arrays.array_shapes(min_dims=1, max_dims=5, max_side=4)


@given(arrays.arrays(np.float32, SHAPES, elements=FLOATS))
def test_blobs_round_trip(array: Any) -> None:
    blob = io.array_to_blobproto(array, array * 0 - 1)
    assert list(blob.shape.dim) == list(array.shape)
    assert list(blob.data) == array.ravel().tolist()
    back = io.blobproto_to_array(blob)
    assert back.dtype == np.float64
    assert np.array_equal(back, array)
    assert (io.blobproto_to_array(blob, return_diff=True) == -1).all()


@given(arrays.arrays(np.float64, (2, 3, 4), elements=FLOATS))
def test_datums_round_trip(array: Any) -> None:
    datum = io.array_to_datum(array, 3)
    assert (datum.channels, datum.height, datum.width, datum.label) == (2, 3, 4, 3)
    assert list(datum.float_data) == array.ravel().tolist()
    assert np.array_equal(io.datum_to_array(datum), array)


def test_bytes_of_a_datum() -> None:
    array = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    datum = io.array_to_datum(array[:, ::-1])
    assert not datum.HasField("label")
    assert datum.data == array[:, ::-1].tobytes()
    back = io.datum_to_array(datum)
    assert back.dtype == np.uint8
    assert np.array_equal(back, array[:, ::-1])
    back[0] = 0


def test_odd_memory_layouts_and_types() -> None:
    array = np.arange(24).reshape(2, 3, 4).T
    assert np.array_equal(io.blobproto_to_array(io.array_to_blobproto(array)), array)
    assert np.array_equal(io.datum_to_array(io.array_to_datum(array)), array)


def test_doubles() -> None:
    blob = caffe_pb2.BlobProto(double_data=[1.5, 2.5], shape={"dim": [2]})
    assert io.blobproto_to_array(blob).tolist() == [1.5, 2.5]


def test_vectors() -> None:
    list_ = [np.ones((2, 1)), np.zeros(3)]
    data = io.arraylist_to_blobprotovector_str(list_)
    assert data == io.arraylist_to_blobprotovecor_str(list_)
    back = io.blobprotovector_str_to_arraylist(data)
    assert [a.tolist() for a in back] == [[[1.0], [1.0]], [0.0, 0.0, 0.0]]


def test_refusals() -> None:
    with pytest.raises(ArrayError, match=r"shape \(2, 3\) but holds 1 numbers"):
        io.blobproto_to_array(caffe_pb2.BlobProto(data=[1], shape={"dim": [2, 3]}))
    with pytest.raises(ValueError, match=r"shape \(-1, -1, 0, 0\) but holds 1 numbers"):
        io.blobproto_to_array(caffe_pb2.BlobProto(data=[1], num=-1, channels=-1))
    with pytest.raises(ArrayError, match="holds 0 numbers"):
        io.datum_to_array(caffe_pb2.Datum(channels=1 << 20, height=1 << 20, width=1))
    with pytest.raises(ValueError, match="3-dimensional array, not one of shape"):
        io.array_to_datum(np.zeros(3))
    with pytest.raises(ArrayError, match="encoded image"):
        io.datum_to_array(caffe_pb2.Datum(encoded=True, data=b"x"))
