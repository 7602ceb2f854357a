"""Snapshots through Hadoop's file systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparknet.dist.store import FolderStore
from sparknet.errors import FileError
from sparknet.spark.hadoop import HadoopStore, open_store


def test_a_snapshot_goes_there_and_back(spark: Any, tmp_path: Path) -> None:
    store = HadoopStore(spark, f"file://{tmp_path}/snapshots")
    assert store.rounds() == []
    for number in (3, 12):
        store.begin(number)
        store.put(number, "worker-0.bin", [b"abc", memoryview(b"def")])
        store.put(number, "manifest.json", [b"{}"])
        assert number not in store.rounds()
        store.commit(number)
    assert store.rounds() == [3, 12]
    assert bytes(store.get(12, "worker-0.bin")) == b"abcdef"
    assert (tmp_path / "snapshots" / "round-00000012" / "manifest.json").read_text() == "{}"
    store.begin(12)
    store.put(12, "worker-0.bin", [b"new"])
    store.commit(12)
    assert bytes(store.get(12, "worker-0.bin")) == b"new"
    store.drop(3)
    assert store.rounds() == [12]


def test_drafts_are_cleaned(spark: Any, tmp_path: Path) -> None:
    (tmp_path / ".round-00000007.draft").mkdir()
    store = HadoopStore(spark, f"file://{tmp_path}")
    store.clean()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"round-00000001/none: .*does not exist"):
        HadoopStore(spark, f"file://{tmp_path}").get(1, "none")


def test_an_unknown_scheme(spark: Any) -> None:
    with pytest.raises(FileError, match='nosuch://there/x: No FileSystem for scheme "nosuch"'):
        open_store(spark, "nosuch://there/x")


def test_local_paths_need_no_hadoop(spark: Any, tmp_path: Path) -> None:
    for path in (str(tmp_path), f"file://{tmp_path}"):
        store = open_store(spark, path)
        assert isinstance(store, FolderStore)
        assert store.folder == tmp_path


def test_a_place_where_nothing_can_be_written_is_told_at_once(spark: Any, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(FileError, match="taken: is a file, where a folder for snapshots is needed"):
        open_store(spark, taken)
    with pytest.raises(FileError, match="taken/in: Not a directory"):
        open_store(spark, taken / "in")
    with pytest.raises(FileError, match="taken/in: "):
        HadoopStore(spark, f"file://{taken}/in")
