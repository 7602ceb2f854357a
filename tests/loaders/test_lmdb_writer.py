import numpy as np
import pytest

from sparknet.cli.record_files import write_database
from sparknet.errors import FileError
from sparknet.loaders.lmdb import LMDB


def _records(count: int) -> list[tuple[bytes, bytes]]:
    random = np.random.default_rng(count)
    sizes = random.choice([0, 1, 10, 800, 2000, 2022, 2023, 2024, 4080, 4081, 9000], count)
    return [
        (b"%08d" % i + b"k" * int(random.integers(0, 60)), random.bytes(int(size)))
        for i, size in enumerate(sizes)
    ]


# 117 and 118 leaves fill a branch; 1000 to 1100 records come near, on both sides.
@pytest.mark.parametrize("count", [0, 1, 2, 3, 500, 8000, *range(1500, 2100, 50)])
def test_lmdb_itself_reads_it(count, tmp_path):
    lmdb = pytest.importorskip("lmdb")
    records, path = _records(count), str(tmp_path / "db")
    assert write_database(path, iter(records)) == count
    with LMDB(path) as database:
        assert list(database) == records
    with lmdb.open(path, readonly=True, lock=False) as environment, environment.begin() as reader:
        assert list(reader.cursor()) == records
        for key, value in records[::37]:
            assert reader.get(key) == value
        assert reader.get(b"nosuch") is None


def test_lmdb_itself_writes_on(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    records, path = dict(_records(1000)), str(tmp_path / "db")
    write_database(path, records.items())
    with lmdb.open(path, map_size=1 << 26) as environment:
        with environment.begin(write=True) as writer:
            for key in list(records)[::3]:
                assert writer.delete(key)
                del records[key]
            writer.put(b"0", b"x" * 7000)
        with environment.begin() as reader:
            assert list(reader.cursor()) == [(b"0", b"x" * 7000), *records.items()]


def test_a_branch_never_has_one_child(tmp_path):
    """LMDB ends the process over one."""
    for leaves in range(1, 400):
        path = tmp_path / str(leaves)
        # Keys of 500 bytes: one record a leaf, seven children a branch.
        write_database(str(path), ((b"%0500d" % n, b"v" * 1500) for n in range(2 * leaves)))
        with LMDB(str(path)) as database:
            pages = range(2, database.tree.last_page + 1)
            flags = [database._page(page) for page in pages]
            assert all(len(nodes) > 1 for kind, _, nodes in flags if kind & 1)
            assert sum(1 for _ in database) == 2 * leaves
        if leaves > 20:
            break


def test_refused(tmp_path):
    path = str(tmp_path / "db")
    for keys, says in (
        ([b"b", b"a"], "ascending keys: b'a' came after b'b'"),
        ([b"a", b"a"], "ascending"),
        ([b""], "a key of 0 bytes"),
        ([b"x" * 512], "a key of 512 bytes"),
    ):
        with pytest.raises(FileError, match=says):
            write_database(path, ((key, b"") for key in keys))
        assert not (tmp_path / "db").exists()
    write_database(path, [(b"a", b"1")])
    with pytest.raises(FileError, match="exists already"):
        write_database(path, [])
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="exists already"):
        write_database(str(tmp_path / "file"), [])
    with LMDB(path) as database:
        assert list(database) == [(b"a", b"1")]
