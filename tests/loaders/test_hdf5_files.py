"""HDF5 files as records."""

import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparknet.errors import FileError
from sparknet.loaders import HDF5File, Records

DATA = np.random.default_rng(0).normal(size=(9, 2, 3)).astype(np.float32)
LABEL = np.arange(9)


def write(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("data", data=DATA, chunks=(2, 2, 3), compression="gzip")
        file["label"] = LABEL
        file["words"] = np.array([b"a"] * 9)
        file["group/inner"] = LABEL
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 8), max_size=12))
def test_rows_in_any_order(tmp_path, rows):
    records = HDF5File(write(tmp_path / "some.h5"))
    assert isinstance(records, Records)
    assert list(records.columns) == ["data", "label"]
    batch = records.take(rows)
    np.testing.assert_array_equal(batch["data"], DATA[rows])
    assert batch["label"].tolist() == rows
    records.close()


def test_chosen_columns_and_pickling(tmp_path):
    records = HDF5File(write(tmp_path / "some.h5"), ["group/inner"])
    records.take([0])
    assert pickle.loads(pickle.dumps(records)).take([8])["group/inner"].tolist() == [8]


def test_what_does_not_fit(tmp_path):
    path = write(tmp_path / "some.h5")
    with pytest.raises(FileError, match="data set 'nosuch' is missing"):
        HDF5File(path, ["nosuch"])
    with pytest.raises(FileError, match="'words' holds no numbers"):
        HDF5File(path, ["words"])
    with h5py.File(path, "a") as file:
        file["short"] = LABEL[:3]
    with pytest.raises(FileError, match="'data' 9, 'label' 9, 'short' 3"):
        HDF5File(path)
    with h5py.File(tmp_path / "none.h5", "w") as file:
        file["words"] = np.array([b"a"])
    with pytest.raises(FileError, match="no data sets of numbers"):
        HDF5File(tmp_path / "none.h5")
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(FileError, match=r"some\.h5: "):
        HDF5File(path).take([0])
