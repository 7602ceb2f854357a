import contextlib
import shutil
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import FileError
from sparknet.loaders.lmdb import LMDB
from tests.goldens import GOLDENS
from tests.loaders.datums import check_against_sources


def _make(path: Path, count: int) -> Path:
    lmdb = pytest.importorskip("lmdb")
    with (
        lmdb.open(str(path), map_size=1 << 24) as environment,
        environment.begin(write=True) as transaction,
    ):
        for i in range(count):
            transaction.put(b"%05d" % i, b"x" * i)
    return path


@pytest.mark.parametrize("name", ["rgb_lmdb", "gray_lmdb", "float_lmdb"])
def test_databases_of_caffe(name):
    with LMDB(str(GOLDENS / "data" / name)) as records:
        check_against_sources(records, name)
    assert not (GOLDENS / "data" / name / "lock.mdb").exists()


def test_many_records_in_key_order(tmp_path):
    with LMDB(str(_make(tmp_path / "db", 500))) as records:
        assert len(records) == 500
        assert [key for key, _ in records] == [b"%05d" % i for i in range(500)]
        assert records.first() == (b"00000", b"")
    with LMDB(str(tmp_path / "db" / "data.mdb")) as records:
        assert len(records) == 500


def test_long_values_deletions_and_depth(tmp_path):
    """The oracle is LMDB itself."""
    lmdb = pytest.importorskip("lmdb")
    random = np.random.default_rng(3)
    path = str(tmp_path / "db")
    with lmdb.open(path, map_size=1 << 28, sync=False) as environment:
        for _ in range(3):
            with environment.begin(write=True) as transaction:
                for number in random.integers(0, 3000, 2000):
                    key = b"%d" % number * 5
                    if random.random() < 0.2:
                        transaction.delete(key)
                    else:
                        size = int(random.choice([0, 1, 300, 2000, 5000, 20000]))
                        transaction.put(key, random.bytes(size))
        with environment.begin() as transaction:
            want = list(transaction.cursor())
    with LMDB(path) as records:
        assert len(records) == len(want)
        assert list(records) == want


@settings(max_examples=150)
@given(st.data())
def test_no_damage_does_worse_than_raise(data):
    with tempfile.TemporaryDirectory() as folder:
        path = _make(Path(folder) / "db", 60) / "data.mdb"
        whole = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 5))):
            # Headers and pointers more often than values.
            page = data.draw(st.integers(0, len(whole) // 4096 - 1)) * 4096
            at = data.draw(st.one_of(st.integers(0, 160), st.integers(0, 4095)))
            whole[page + at] = data.draw(st.sampled_from([0, 1, 2, 4, 8, 16, 127, 128, 255]))
        path.write_bytes(whole)
        with contextlib.suppress(FileError), LMDB(str(path)) as records:
            assert sum(len(value) for _, value in records) < 60 * len(whole)


def test_a_circle_is_refused(tmp_path):
    path = _make(tmp_path / "db", 500) / "data.mdb"
    whole = bytearray(path.read_bytes())
    with LMDB(str(path)) as records:
        root = records.tree.root * 4096
    first = struct.unpack_from("<H", whole, root + 16)[0]
    struct.pack_into("<HHH", whole, root + first, records.tree.root, 0, 0)
    path.write_bytes(whole)
    with pytest.raises(FileError, match="go round in a circle"), LMDB(str(path)) as records:
        list(records)


def test_refused(tmp_path):
    for path, says in ((tmp_path / "absent", "does not exist"), (tmp_path, "holds no data.mdb")):
        with pytest.raises(FileError, match=says):
            LMDB(str(path))
    folder = _make(tmp_path / "db", 500)
    whole = (folder / "data.mdb").read_bytes()
    cut = tmp_path / "cut"
    for size, says in (
        (0, "does not begin with a meta page"),
        (100, "does not begin with a meta page"),
        (5000, "is cut short"),
        (len(whole) // 2 // 4096 * 4096, "is cut short"),
    ):
        cut.mkdir(exist_ok=True)
        (cut / "data.mdb").write_bytes(whole[:size])
        with pytest.raises(FileError, match=says):
            LMDB(str(cut))
    (cut / "data.mdb").write_bytes(b"\0" * 8192)
    with pytest.raises(FileError, match="is no LMDB"):
        LMDB(str(cut))
    with pytest.raises(FileError, match="is empty"), LMDB(str(_make(tmp_path / "none", 0))) as db:
        db.first()


def test_absurd_page_numbers(tmp_path):
    folder = _make(tmp_path / "db", 3)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    whole = bytearray((copy / "data.mdb").read_bytes())
    for start in (0, 4096):
        whole[start + 16 + 120 : start + 16 + 128] = struct.pack("<Q", 2**40)
    (copy / "data.mdb").write_bytes(whole)
    with pytest.raises(FileError, match="is cut short"):
        LMDB(str(copy))
