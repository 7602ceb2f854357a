"""Where elements live: own memory, somebody else's, a file; and how long."""

import gc
import mmap
import os
import weakref

import numpy as np
import pytest

from sparknet.errors import ArrayError, FileError, IndexOutOfRange, OutOfMemory
from sparknet.native import NDArray
from sparknet.native.core import lib
from sparknet.native.exchange import OWNERS
from tests.native.arrays import DTYPES


def live() -> int:
    """Storages that the core holds."""
    gc.collect()
    count: int = lib.sn_live_storages()
    return count


@pytest.mark.parametrize("dtype", DTYPES)
def test_making(dtype):
    for array, value in [(NDArray.zeros((2, 3), dtype), 0), (NDArray.full((2, 3), 7, dtype), 7)]:
        assert array.dtype == dtype
        assert array.numpy().tolist() == [[value] * 3] * 2
        assert array.address % 64 == 0
        assert array.nbytes == 6 * array.dtype.itemsize
        assert array.is_contiguous
        assert not array.readonly
    assert NDArray.empty((0, 3), dtype).size == 0
    assert NDArray.zeros((), dtype).get() == 0
    assert isinstance(NDArray.zeros((), dtype)[()], float if np.dtype(dtype).kind == "f" else int)


def test_large_zeros_are_lazy():
    array = NDArray.zeros(1 << 30)
    assert array[123_456_789] == 0
    assert array.nbytes == 1 << 32


def test_the_constructor_copies():
    source = np.arange(6, dtype=np.float32)
    array = NDArray(source, (2, 3))
    source[0] = 9
    assert array[0, 0] == 0
    assert NDArray([[1, 2], [3, 4]]).shape == (2, 2)
    assert NDArray(2.5).shape == ()
    assert NDArray(np.arange(3, dtype=np.int64)).to_flat().tolist() == [0, 1, 2]
    assert NDArray(np.array([1.0, 2.0], ">f4")).to_flat().tolist() == [1, 2]
    assert NDArray([-1, 300, 7], dtype=np.uint8).to_flat().tolist() == [0, 255, 7]
    assert NDArray([], (0, 4)).shape == (0, 4)


@pytest.mark.parametrize(
    ("data", "shape"),
    [([1, 2, 3], (2, 2)), ([[1], [2, 3]], None), (["a"], None), ([1j], None), ([1, 2], (-1, -2))],
)
def test_what_is_no_array_is_refused(data, shape):
    with pytest.raises(ArrayError):
        NDArray(data, shape)


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        ((1 << 61, 4), OutOfMemory),
        ((1 << 46,), OutOfMemory),
        ((1 << 80,), ArrayError),
        ((-1,), ArrayError),
        ((1,) * 33, ArrayError),
        ("3", ArrayError),
        ((1.5,), ArrayError),
    ],
)
def test_impossible_shapes_are_refused(shape, error):
    with pytest.raises(error):
        NDArray.zeros(shape)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, ">f4", "U3", "nonsense", None])
def test_other_types_are_refused(dtype):
    if dtype is None:
        assert NDArray.zeros(1, dtype).dtype == np.float64  # as numpy reads None
        return
    with pytest.raises(ArrayError, match="an NDArray holds"):
        NDArray.zeros(1, dtype)


def test_a_borrowed_owner_lives_as_long_as_its_views():
    before, lent = live(), len(OWNERS)
    owner = np.arange(10, dtype=np.float32)
    alive = weakref.ref(owner)
    view = NDArray.view(owner)[2:8]
    assert view.address == owner.ctypes.data + 8
    del owner
    row = view.reshape(2, 3)[1]
    del view
    assert alive() is not None
    numbers = row.numpy()
    del row
    assert numbers.tolist() == [5, 6, 7]
    assert alive() is not None
    del numbers
    assert live() == before
    assert alive() is None
    assert len(OWNERS) == lent


def test_nothing_is_left_behind():
    before, lent = live(), len(OWNERS)
    for _ in range(1000):
        array = NDArray.zeros((10, 10))
        array += np.ones((10, 10), np.float32)
        array.T.reshape(100)[3:50].copy()
        with pytest.raises(ArrayError):
            NDArray.view(np.zeros(3, np.float16))
        with pytest.raises(IndexOutOfRange):
            array[10]
    del array
    assert (live(), len(OWNERS)) == (before, lent)


def test_failed_borrowing_releases():
    lent = len(OWNERS)
    deep = np.zeros((1,) * 32, np.float32)[None] if np.__version__ >= "2" else None
    if deep is not None:
        with pytest.raises(ArrayError):
            NDArray.view(deep)
    with pytest.raises(ArrayError):
        NDArray.view(np.frombuffer(bytearray(9), np.float32, 2, 1))
    assert len(OWNERS) == lent


def test_buffers_of_every_kind():
    raw = bytearray(16)
    array = NDArray.view(raw, (2, 2), np.float32)
    array[1, 1] = 1
    assert raw[12:] == np.float32(1).tobytes()
    with pytest.raises(BufferError):
        raw.clear()
    assert NDArray.view(b"abc").readonly
    assert NDArray.view(memoryview(raw)[4:8]).to_flat().tolist() == [0] * 4
    with mmap.mmap(-1, 4096) as pages:
        view = NDArray.view(pages, dtype=np.int32)
        view.fill(5)
        assert pages[:4] == b"\5\0\0\0"
        del view
        gc.collect()
    for thing in ([1, 2], "text", 3, None, np.zeros(3, ">f4"), np.zeros(3, np.complex64)):
        with pytest.raises(ArrayError):
            NDArray.view(thing)
    with pytest.raises(ArrayError):
        NDArray.view(b"abc", dtype=np.float32)


def test_read_only_means_read_only():
    fixed = np.zeros((2, 2), np.float32)
    fixed.flags.writeable = False
    for array in (NDArray.view(fixed), NDArray.zeros((2, 2)).frozen(), NDArray.view(bytes(4))):
        assert array.readonly
        assert array[:1].readonly
        assert not array.numpy().flags.writeable
        assert memoryview(array).readonly
        for deed in (
            lambda a: a.fill(1),
            lambda a: a.copy_from(a),
            lambda a: a.set(*[0] * a.ndim, 1),
        ):
            with pytest.raises(ArrayError, match="read-only"):
                deed(array)
    with pytest.raises(ArrayError, match="read-only"):
        NDArray.view(fixed).add(1)
    assert NDArray.view(fixed).copy().fill(1).sum() == 4


def test_shared_elements_are_read_but_not_written():
    wide = np.broadcast_to(np.array([1, 2], np.float32), (3, 2))
    assert NDArray.view(wide).sum() == 9
    trick = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (3, 2), (4, 4))
    with pytest.raises(ArrayError, match="share memory"):
        NDArray.view(trick).fill(1)


def test_mapped_files(tmp_path):
    path = tmp_path / "weights"
    shared = NDArray.map(path, (3, 1000), mode="w+")
    shared[1, 5] = 7
    shared.flush()
    again = NDArray.map(str(path), (3, 1000), mode="r+")
    reader = NDArray.map(path, 10, offset=4000)
    private = NDArray.map(os.fsencode(path), (3, 1000), mode="c")
    assert reader[5] == 7
    assert reader.readonly
    again.set(1, 6, 8)
    assert reader[6] == 8
    private.fill(1)
    assert reader[5] == 7
    assert private.sum() == 3000
    del shared, again
    assert np.fromfile(path, np.float32)[1005] == 7


def test_mapping_refuses(tmp_path):
    path = tmp_path / "short"
    path.write_bytes(bytes(10))
    with pytest.raises(FileError, match="holds 10 bytes where 12 are needed") as caught:
        NDArray.map(path, 3)
    assert caught.value.path == str(path)
    with pytest.raises(FileError):
        NDArray.map(tmp_path / "absent", 1)
    with pytest.raises(FileError, match="regular"):
        NDArray.map(tmp_path, 1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="regular"):
        NDArray.map(tmp_path / "pipe", 1)
    with pytest.raises(ArrayError, match="multiple"):
        NDArray.map(path, 1, offset=2)
    for wrong in ({"offset": -4}, {"offset": 1 << 70}, {"mode": "x"}):
        with pytest.raises(ArrayError):
            NDArray.map(path, 1, **wrong)
    with pytest.raises(OutOfMemory):
        NDArray.map(path, 1 << 61)
    with pytest.raises(ArrayError, match="file name"):
        NDArray.map("a\0b", 1)
    assert NDArray.map(path, 0).size == 0
