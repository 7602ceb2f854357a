"""Parquet files as records."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError, MissingExtra
from sparknet.loaders import Column, Parquet, Records

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DATA = np.random.default_rng(0).integers(0, 256, (10, 6), np.uint8)


def write(path, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=4)
    return path


def some(path: Path) -> Path:
    return write(
        path,
        data=pa.array(DATA.tolist(), pa.list_(pa.uint8())),
        fixed=pa.FixedSizeListArray.from_arrays(pa.array(DATA.ravel()), 6),
        label=np.arange(10),
        weight=np.arange(10, dtype=np.float32) / 2,
    )


def test_rows_across_row_groups(tmp_path):
    records = Parquet(some(tmp_path / "some.parquet"), shapes={"data": (1, 2, 3)})
    assert isinstance(records, Records)
    assert len(records) == 10
    assert records.columns["data"] == Column(np.dtype(np.uint8), (1, 2, 3))
    assert records.columns["fixed"].shape == (6,)
    for one in (records, pickle.loads(pickle.dumps(records))):
        batch = one.take([9, 0, 5, 9])
        np.testing.assert_array_equal(batch["data"].reshape(4, 6), DATA[[9, 0, 5, 9]])
        np.testing.assert_array_equal(batch["fixed"], DATA[[9, 0, 5, 9]])
        assert batch["label"].tolist() == [9, 0, 5, 9]
        assert batch["weight"].tolist() == [4.5, 0, 2.5, 4.5]


def test_chosen_columns(tmp_path):
    records = Parquet(some(tmp_path / "some.parquet"), ["label"])
    assert list(records.take([3])) == ["label"]


def test_what_does_not_fit(tmp_path):
    path = tmp_path / "some.parquet"
    for columns, message in (
        ({"x": [[1], [1, 2]]}, "column 'x' has lists of several lengths"),
        ({"x": [1, None]}, "column 'x' has rows without a value"),
        ({"x": ["a", "b"]}, "column 'x' holds string, not numbers"),
        ({"x": pa.array([], pa.int32())}, "holds no rows"),
    ):
        with pytest.raises(FileError, match=message):
            Parquet(write(path, **columns))
    lists = [[1]] * 4 + [[1, 2]] * 4
    with pytest.raises(FileError, match=r"'x' has rows of \(2,\) in row group 1, \(1,\) in the"):
        Parquet(write(path, x=lists)).take([7])
    with pytest.raises(FileError, match=r"rows of \(1,\), not \(3,\)"):
        Parquet(path, shapes={"x": (3,)})
    with pytest.raises(FileError, match="has no column 'nosuch': x"):
        Parquet(write(path, x=[1]), ["nosuch"])


def test_damage(tmp_path):
    path = some(tmp_path / "some.parquet")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileError, match="cannot be read as Parquet"):
        Parquet(path)
    with pytest.raises(FileError, match="does not exist"):
        Parquet(tmp_path / "nothing.parquet")


def test_without_pyarrow(tmp_path, monkeypatch):
    path = some(tmp_path / "some.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sparknet\[parquet\]'"):
        Parquet(path)
