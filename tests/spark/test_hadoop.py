"""Snapshots through Hadoop's file systems."""

import pytest

from sparknet.errors import FileError
from sparknet.spark.filesystem.remote import HadoopRuns, open_runs
from sparknet.training.checkpoints.runs import FolderRuns


def test_a_snapshot_goes_there_and_back(spark, tmp_path):
    store = HadoopRuns(spark, f"file://{tmp_path}").store("snapshots")
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


def test_drafts_are_cleaned(spark, tmp_path):
    for name in ("draft", "dropped"):
        (tmp_path / f".round-00000007.{name}").mkdir()
    store = HadoopRuns(spark, f"file://{tmp_path}").store("")
    store.clean()
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_loses_its_name_before_its_files(spark, tmp_path):
    """What deletes is cut off: the name is gone all the same."""
    store = HadoopRuns(spark, f"file://{tmp_path}").store("")
    store.begin(4)
    store.put(4, "a", [b"x"])
    store.commit(4)
    real = store._system

    class Cut:
        rename, exists = real.rename, real.exists

        @staticmethod
        def delete(path, _):
            if real.exists(path):
                raise KeyboardInterrupt

    store._system = Cut()
    with pytest.raises(KeyboardInterrupt):
        store.drop(4)
    store._system = real
    assert store.rounds() == []
    assert (tmp_path / ".round-00000004.dropped" / "a").read_bytes() == b"x"
    store.clean()
    assert [path for path in tmp_path.iterdir() if "crc" not in path.name] == []


class Broken:
    """A file system that fails from its call number ``at`` on, until it is mended."""

    def __init__(self, real, at):
        self._real, self.left = real, at

    def __getattr__(self, name):
        def call(*arguments):
            self.left -= 1
            if self.left < 0:
                raise FileError("there", "the network is gone")
            return getattr(self._real, name)(*arguments)

        return call


def test_a_system_that_fails_within_a_commit_leaves_no_half_snapshot(spark, tmp_path):
    """Cut off before each call of a commit, the round is there whole, or not at all."""
    at, done = 0, False
    while not done:
        folder = tmp_path / str(at)
        store = HadoopRuns(spark, f"file://{folder}").store("")
        real = store._system
        store.begin(7)
        store.put(7, "worker-0.state", [b"abc"])
        store.put(7, "manifest.json", [b"{}"])
        store._system = Broken(real, at)
        try:
            store.commit(7)
            done = True
        except FileError:
            store._system = real
            again = HadoopRuns(spark, f"file://{folder}").store("")
            assert store.rounds() == again.rounds() == []
            again.clean()
            assert [one.name for one in folder.glob("*") if "crc" not in one.name] == []
        at += 1
    assert at > 6
    store._system = real
    assert store.rounds() == [7]
    assert bytes(store.get(7, "worker-0.state")) == b"abc"


def test_listings_that_lag(spark, tmp_path):
    """What was just written is not listed yet, what was dropped still is."""
    store = HadoopRuns(spark, f"file://{tmp_path}").store("")
    for number in (3, 12):
        store.begin(number)
        store.put(number, "manifest.json", [b"{}"])
        store.commit(number)
    store._names = list
    assert store.rounds() == [3, 12]
    store.drop(3)
    store._names = lambda: ["round-00000003"]
    assert store.rounds() == [12]


def test_a_missing_file_is_named(spark, tmp_path):
    with pytest.raises(FileError, match=r"round-00000001/none: .*does not exist"):
        HadoopRuns(spark, f"file://{tmp_path}").store("").get(1, "none")


def test_an_unknown_scheme(spark):
    with pytest.raises(FileError, match='nosuch://there/x: No FileSystem for scheme "nosuch"'):
        open_runs(spark, "nosuch://there/x")


def test_local_paths_need_no_hadoop(spark, tmp_path):
    for path in (str(tmp_path), f"file://{tmp_path}"):
        runs = open_runs(spark, path)
        assert isinstance(runs, FolderRuns)
        assert runs.folder == tmp_path


def test_a_place_where_nothing_can_be_written_is_told_at_once(spark, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(FileError, match="taken: is a file, where a folder for snapshots is needed"):
        open_runs(spark, taken).prepare()
    with pytest.raises(FileError, match="taken/in: Not a directory"):
        open_runs(spark, taken / "in").prepare()
    with pytest.raises(FileError, match="taken/in: "):
        HadoopRuns(spark, f"file://{taken}/in").prepare()
