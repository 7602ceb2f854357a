"""Numbers beside arrays, sizes that are to be found, and how close is close."""

import numpy as np
import pytest

from sparknet.errors import ArrayError, NativeError
from sparknet.native import NDArray, locate
from sparknet.native.core import ffi, lib


def test_a_number_is_subtracted_into_a_new_array():
    a = NDArray(np.array([3, 5], np.float32))
    np.testing.assert_array_equal((a - 1).numpy(), [2, 4])
    np.testing.assert_array_equal((10 - a).numpy(), [7, 5])
    np.testing.assert_array_equal((a + 1).numpy(), [4, 6])
    np.testing.assert_array_equal(a.numpy(), [3, 5])


def test_one_size_is_found_if_the_others_divide():
    a = NDArray(np.arange(6, dtype=np.float32))
    assert a.reshape(-1, 3).shape == (2, 3)
    assert a.reshape(-1).shape == (6,)
    for sizes in ((-1, 4), (-1, 0), (-1, 12)):
        with pytest.raises(ArrayError, match="6 elements do not fit"):
            a.reshape(*sizes)
    with pytest.raises(ArrayError):
        a.reshape(-1, -1)


def test_how_close_is_close_unless_one_says():
    ones, zeros = NDArray(np.ones(1, np.float32)), NDArray(np.zeros(1, np.float32))
    assert NDArray(np.array([1 + 0.9e-5], np.float32)).allclose(ones)
    assert not NDArray(np.array([1 + 1.2e-5], np.float32)).allclose(ones)
    assert NDArray(np.array([0.9e-8], np.float32)).allclose(zeros)
    assert not NDArray(np.array([1.1e-8], np.float32)).allclose(zeros)
    assert ones.equals(NDArray(np.ones(1, np.float32)))
    assert not ones.equals(NDArray(np.array([np.nextafter(np.float32(1), np.float32(2))])))


def test_a_library_that_cannot_be_loaded_is_passed_over(tmp_path, monkeypatch):
    damaged = tmp_path / locate.LIBRARY
    damaged.write_bytes(b"no library")
    places = [tmp_path / "none", damaged, *locate.candidates()]
    monkeypatch.setattr(locate, "candidates", lambda: iter(places))
    locate.preload()
    monkeypatch.setattr(locate, "candidates", lambda: iter(places[:2]))
    with pytest.raises(NativeError, match="was not found"):
        locate.preload()


def test_a_guards_place_is_free_again():
    memory, numbers = ffi.new("char[]", 64), []
    for _ in range(3):
        numbers.append(lib.sn_guard_pages(memory, 64))
        lib.sn_unguard_pages(numbers[-1])
    assert numbers[0] >= 0
    assert numbers == [numbers[0]] * 3
