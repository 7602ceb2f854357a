"""LevelDB: what Caffe and a dict know, damage, and snappy's blocks."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import FileError
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.leveldb_table import MOST_GROWTH, decompress
from sparknet.native.transform import crc32c
from tests.goldens import GOLDENS
from tests.loaders.databases import Write, database, log, text
from tests.loaders.datums import check_against_sources


@pytest.mark.parametrize("name", ["gray_leveldb", "rgb_leveldb"])
def test_databases_of_caffe(name):
    with LevelDB(str(GOLDENS / "data" / name)) as records:
        check_against_sources(records, name)


def test_newest_wins_and_deletions_count(tmp_path):
    tables: list[list[Write]] = [
        [(b"a", 1, b"old"), (b"b", 2, b"keep"), (b"c", 3, b"gone")],
        [(b"a", 4, b"new"), (b"a", 3, b"older"), (b"d", 5, b"d")],
    ]
    logged: list[Write] = [(b"c", 6, None), (b"e", 7, b"x" * 100_000), (b"d", 8, b"D")]
    with LevelDB(str(database(tmp_path / "db", tables, logged))) as records:
        want = [(b"a", b"new"), (b"b", b"keep"), (b"d", b"D"), (b"e", b"x" * 100_000)]
        assert list(records) == want
        assert list(records) == want
        assert records.first() == want[0]
        assert len(records) == 4


def test_old_suffix_and_empty(tmp_path):
    folder = database(tmp_path / "one", [[(b"a", 1, b"1")]], [], suffix="sst")
    assert list(LevelDB(str(folder))) == [(b"a", b"1")]
    with pytest.raises(FileError, match="is empty"):
        LevelDB(str(database(tmp_path / "two", [], []))).first()


WRITES = st.lists(
    st.tuples(
        st.binary(max_size=3), st.integers(0, 2), st.one_of(st.none(), st.binary(max_size=5))
    ),
    max_size=40,
)


@settings(max_examples=60)
@given(WRITES)
def test_same_as_a_dict(writes):
    """Writes go to two tables and a log, in the order of their ages."""
    places: list[list[Write]] = [[], [], []]
    want: dict[bytes, bytes] = {}
    ordered = sorted(writes, key=lambda write: write[1])
    for sequence, (key, place, value) in enumerate(ordered, 1):
        places[place].append((key, sequence, value))
        if value is None:
            want.pop(key, None)
        else:
            want[key] = value
    with tempfile.TemporaryDirectory() as folder:
        made = database(Path(folder) / "db", [part for part in places[:2] if part], places[2])
        assert list(LevelDB(str(made))) == sorted(want.items())


def test_the_last_record_may_be_torn(tmp_path):
    folder = database(tmp_path / "db", [], [(b"a", 1, b"1"), (b"b", 2, b"2" * 50_000)])
    path = folder / "000010.log"
    path.write_bytes(path.read_bytes()[:-3])
    assert list(LevelDB(str(folder))) == [(b"a", b"1")]


def _refused(folder: Path, says: str) -> None:
    with pytest.raises(FileError, match=says):
        list(LevelDB(str(folder)))


def test_damage_is_refused(tmp_path):
    _refused(tmp_path / "absent", "does not exist")
    (tmp_path / "file").write_text("")
    _refused(tmp_path / "file", "is no folder")
    _refused(tmp_path, "has no file CURRENT")
    folder = database(tmp_path / "db", [[(b"a", 1, b"1")]], [])
    table = folder / "000001.ldb"
    whole = table.read_bytes()
    for data, says in (
        (whole[:40], "no room for a footer"),
        (whole[:-1], "is no LevelDB table, or cut short"),
        (whole[1:], "is damaged"),
        (b"\xff" * 4 + whole[4:], "is damaged"),
    ):
        table.write_bytes(data)
        _refused(folder, says)
    table.unlink()
    _refused(folder, "table 000001.ldb is missing")
    (folder / "MANIFEST-000002").write_bytes(log([b"\1" + text(b"rocksdb.Other")]))
    _refused(folder, "orders its keys by b'rocksdb.Other'")
    (folder / "MANIFEST-000002").write_bytes(log([b"\x63"]))
    _refused(folder, "an edit of kind 99")
    (folder / "CURRENT").write_text("MANIFEST-000007\n")
    _refused(folder, "CURRENT names 'MANIFEST-000007', which is not there")
    (folder / "CURRENT").write_text("../db/MANIFEST-000002\n")
    _refused(folder, "which is not there")


@settings(max_examples=150)
@given(st.data())
def test_no_damage_does_worse_than_raise(data):
    with tempfile.TemporaryDirectory() as name:
        writes: list[Write] = [(bytes([i]), i + 1, b"v" * i) for i in range(9)]
        folder = database(Path(name) / "db", [writes[:5]], writes[5:])
        victims = sorted(p for p in folder.iterdir() if p.stat().st_size)
        path = data.draw(st.sampled_from(victims))
        whole = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        with contextlib.suppress(FileError):
            list(LevelDB(str(folder)))


def test_literals_and_copies():
    assert decompress(b"\x00") == b""
    assert decompress(b"\x03\x08abc") == b"abc"
    assert decompress(b"\x08\x04ab\x09\x02") == b"abababab"[:8]
    # a copy of 20 bytes from 1 back, two bytes of offset
    assert decompress(b"\x15\x00x" + bytes([19 << 2 | 2, 1, 0])) == b"x" * 21
    # four bytes of offset
    assert decompress(b"\x06\x08abc" + bytes([2 << 2 | 3, 3, 0, 0, 0])) == b"abcabc"
    # a literal with its length in one byte
    assert decompress(bytes([61, 60 << 2, 60]) + b"y" * 61) == b"y" * 61


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no length"),
        (b"\xff\xff\xff\xff\xff\xff", "no length"),
        (b"\xff\xff\xff\xff\x0f\x00x", "cannot hold 4294967295"),
        (b"\x05\x08ab", "literal is cut short"),
        (b"\x05\xf4", "literal is cut short"),
        (b"\x05\x08abc", "3 bytes instead of 5"),
        (b"\x01\x08abc", "more than the 1 bytes"),
        (b"\x09\x00a\x11\x02", "copy from 2 bytes back"),
        (b"\x09\x00a\x11\x00", "copy from 0 bytes back"),
        (b"\x09\x00a\x02\x00", "copy is cut short"),
    ],
)
def test_damaged_snappy_is_refused(data, says):
    with pytest.raises(ValueError, match=says):
        decompress(data)


@given(st.binary(max_size=200))
def test_nothing_crashes_or_swells(data):
    with contextlib.suppress(ValueError):
        assert len(decompress(data)) <= MOST_GROWTH * len(data)


def test_known_check_sums():
    """RFC 3720, B.4."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def _bit_by_bit(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@settings(max_examples=60)
@given(st.binary(max_size=700))
def test_check_sums_are_those_of_the_definition(data):
    assert crc32c(data) == _bit_by_bit(data)
