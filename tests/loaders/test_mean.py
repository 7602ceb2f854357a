"""Means: in double precision, batch by batch."""

import numpy as np
import pytest

from sparknet.errors import ArrayError, FileError
from sparknet.loaders import ArrayRecords, mean_of
from sparknet.loaders.datums import Mean


def test_the_mean_of_many_is_exact():
    data = np.full((3000, 1, 2, 2), 255, np.uint8)
    data[::3] = 254
    want = np.float32(255 - 1 / 3)
    np.testing.assert_array_equal(mean_of(ArrayRecords(data=data)), np.full((1, 2, 2), want))
    # A float32 sum would stop growing here.
    large = np.full((70, 1, 1, 1), 2**24 + 2, np.float32)
    assert mean_of(ArrayRecords(x=large), "x").item() == 2**24 + 2


def test_what_has_no_mean():
    with pytest.raises(FileError, match="have no column 'data': x"):
        mean_of(ArrayRecords(x=[1]))
    with pytest.raises(ArrayError, match="no image"):
        mean_of(ArrayRecords(data=np.zeros((0, 3))))
    mean = Mean()
    mean.add(np.zeros((1, 3, 2, 2)))
    with pytest.raises(ArrayError, match="image 1 is"):
        mean.add(np.zeros((1, 1, 2, 2)))
