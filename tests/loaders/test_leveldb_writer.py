from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.cli.record_files import write_database
from sparknet.errors import FileError
from sparknet.loaders import leveldb_writer
from sparknet.loaders.leveldb import LevelDB
from sparknet.native.transform import crc32c


def _records(count: int) -> list[tuple[bytes, bytes]]:
    random = np.random.default_rng(count)
    sizes = random.choice([0, 1, 10, 800, 4000, 16384, 40000], count)
    return [
        (b"%08d" % i + b"k" * int(random.integers(0, 60)), random.bytes(int(size)))
        for i, size in enumerate(sizes)
    ]


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


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 300])
def test_records_come_back(count, tmp_path):
    records, path = _records(count), str(tmp_path / "db")
    assert write_database(path, "leveldb", iter(records)) == count
    with LevelDB(path) as database:
        assert list(database) == records
        for (key, value), (_, number) in zip(records, database.places(), strict=True):
            assert database.fetch([key], number) == [value]


def test_several_tables(tmp_path, monkeypatch):
    """So many that the manifest needs several blocks of its log."""
    monkeypatch.setattr(leveldb_writer, "TABLE_SIZE", 1)
    monkeypatch.setattr(leveldb_writer, "BLOCK_SIZE", 1)
    records = [(b"%05d" % n + b"k" * 60, b"%d" % n) for n in range(500)]
    write_database(str(tmp_path / "db"), "leveldb", records)
    assert len(list((tmp_path / "db").glob("*.ldb"))) == 500
    assert (tmp_path / "db" / "MANIFEST-000002").stat().st_size > 2 * 32768
    with LevelDB(str(tmp_path / "db")) as database:
        assert list(database) == records
    _read_by_leveldb_itself(tmp_path / "db", records)


@pytest.mark.parametrize("count", [0, 1, 17, 1000])
def test_leveldb_itself_reads_it(count, tmp_path):
    records = _records(count)
    write_database(str(tmp_path / "db"), "leveldb", records)
    _read_by_leveldb_itself(tmp_path / "db", records)


def _read_by_leveldb_itself(path: Path, records: list[tuple[bytes, bytes]]) -> None:
    """It also puts records in, which the manifest's numbers have to leave room for."""
    library = pytest.importorskip("plyvel")
    with library.DB(str(path), paranoid_checks=True) as database:
        with database.iterator(verify_checksums=True) as found:
            assert list(found) == records
        for key, value in records[::37]:
            assert database.get(key, verify_checksums=True) == value
        assert database.get(b"nosuch") is None
        for key, _ in records[::3]:
            database.delete(key)
        database.put(b"zz", b"new")
    left = [one for number, one in enumerate(records) if number % 3]
    with library.DB(str(path)) as database:
        database.compact_range()
        assert list(database) == [*left, (b"zz", b"new")]
    with LevelDB(str(path)) as found:
        assert list(found) == [*left, (b"zz", b"new")]


def test_what_is_refused(tmp_path):
    path = str(tmp_path / "db")
    with pytest.raises(FileError, match="needs ascending keys: b'a' came after b'b'"):
        write_database(path, "leveldb", [(b"b", b""), (b"a", b"")])
    assert not list(tmp_path.iterdir())
    write_database(path, "leveldb", [(b"a", b"1")])
    with pytest.raises(FileError, match="exists already"):
        write_database(path, "leveldb", [])
    with pytest.raises(FileError, match="cannot be written"):
        write_database(str(tmp_path / "db" / "CURRENT" / "x"), "leveldb", [])
    with LevelDB(path) as database:
        assert list(database) == [(b"a", b"1")]
