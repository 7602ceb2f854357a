"""Memory that others see, by address."""

import copy
import pickle

import numpy as np
import pytest

from sparknet.errors import ArrayError
from sparknet.native import NDArray
from tests.native.arrays import DTYPES


class Legacy:
    """An exporter that knows only the first DLPack protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Elsewhere(Legacy):
    """An exporter whose memory is on a GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_protocol_shows_the_same_memory(dtype):
    array = NDArray(range(24), (2, 3, 4), dtype)[:, ::2, 1:]
    view = memoryview(array)
    assert (view.shape, view.strides, view.readonly) == (array.shape, array.strides, False)
    for other in (np.asarray(array), np.asarray(view), array.numpy(), np.from_dlpack(array)):
        assert other.ctypes.data == array.address
        assert other.strides == array.strides
        assert other.dtype == dtype
    view[1, 0, 0] = 99
    assert array[1, 0, 0] == 99


def test_numpy_protocol():
    array = NDArray([1.5, 2.5])
    assert np.array(array, copy=True).ctypes.data != array.address
    assert np.asarray(array, np.float64).tolist() == [1.5, 2.5]
    assert array.__array__().ctypes.data == array.address
    assert array.__array__(copy=True).ctypes.data != array.address
    assert array.__array__(np.int32).tolist() == [1, 2]
    with pytest.raises(ValueError, match="without copying"):
        array.__array__(np.float64, copy=False)
    total = np.ones(2, np.float32) + array
    assert isinstance(total, NDArray)
    assert total.to_flat().tolist() == [2.5, 3.5]
    with pytest.raises((BufferError, ValueError)):
        pickle.PickleBuffer(NDArray.zeros((2, 3, 4))[:, ::2]).raw()


def test_dlpack():
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    for exporter in (source, Legacy(source), NDArray.view(source)):
        array = NDArray.from_dlpack(exporter)
        assert array.address == source.ctypes.data
        assert array.shape == (2, 3)
    assert NDArray.from_dlpack(source, copy=True).address != source.ctypes.data
    array = NDArray.view(source)
    assert array.__dlpack_device__() == (1, 0)
    assert "dltensor" in repr(array.__dlpack__())
    assert "dltensor" in repr(array.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=None))
    copied = np.from_dlpack(Legacy(NDArray.from_dlpack(array, copy=True)))
    assert copied.tolist() == source.tolist()
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        array.__dlpack__(stream=1)
    with pytest.raises(ArrayError, match="device"):
        NDArray.from_dlpack(Elsewhere(source))
    with pytest.raises(ArrayError, match="DLPack"):
        NDArray.from_dlpack(object())
    with pytest.raises(ArrayError, match="int64"):
        NDArray.from_dlpack(np.arange(3))


def test_a_dlpack_consumer_keeps_the_memory():
    other = np.from_dlpack(NDArray.full(1 << 20, 3))
    assert other.sum() == 3 << 20


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(protocol):
    for array in (
        NDArray(range(24), (2, 3, 4)).T,
        NDArray.zeros((0, 2)),
        NDArray(3, dtype=np.int8),
    ):
        again = pickle.loads(pickle.dumps(array, protocol))
        assert again.equals(array)
        assert again.dtype == array.dtype
        assert not again.readonly


def test_pickling_out_of_band_copies_nothing():
    array = NDArray(range(1000))
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(array, 5, buffer_callback=buffers.append)
    assert len(data) < 300
    again = pickle.loads(data, buffers=buffers)
    assert again.address == array.address
    assert copy.deepcopy(array).equals(copy.copy(array))


def test_repr_is_short():
    assert repr(NDArray([1, 2.5])) == "NDArray([1. , 2.5], shape=(2,), dtype=float32)"
    assert len(repr(NDArray.zeros((100, 100, 100)))) < 500


def test_arrays_compare_by_identity():
    a, b = NDArray([1]), NDArray([1])
    assert a != b
    assert len({a, b, a}) == 2
    assert bool(a)
    assert float(a) == 1
    with pytest.raises(ArrayError):
        bool(NDArray([1, 2]))
    with pytest.raises(TypeError):
        len(NDArray(1))
