"""LevelDB databases of unknown origin: keys and blocks are bounded, check sums count."""

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from sparknet.errors import FileError
from sparknet.loaders.leveldb import LOG, LevelDB
from tests.loaders.databases import MAGIC, database, internal, log, sealed, varint


def small_database(folder: Path) -> Path:
    return database(folder / "db", [[(b"a", 1, b"1"), (b"b", 2, b"2")]], [(b"c", 3, b"3")])


def table(folder: Path, entries: bytes, handles: Sequence[bytes] = ()) -> Path:
    """A database whose only table has one block of these entries, named by these handles."""
    path = small_database(folder)
    tail = (0).to_bytes(4, "little") + (1).to_bytes(4, "little")
    data = entries + tail
    out = sealed(data)
    index = b""
    for handle in handles or [varint(0) + varint(len(data))]:
        last = internal(b"\xff", 1, 1)
        index += varint(0) + varint(len(last)) + varint(len(handle)) + last + handle
    handle = varint(len(out)) + varint(len(index + tail))
    out += sealed(index + tail)
    (path / "000001.ldb").write_bytes(out + (b"\0\0" + handle).ljust(40, b"\0") + MAGIC)
    return path


def refused(folder: Path, says: str) -> None:
    with pytest.raises(FileError, match=says):
        list(LevelDB(str(folder)))
    with pytest.raises(FileError, match=says):
        LevelDB(str(folder)).fetch([b"a"], 1)


def growing_keys(count: int, start: int) -> bytes:
    """Keys of which each is the one before and a byte more, without its 8 bytes of age."""
    out, size = varint(0) + varint(start + 8) + b"\0" + b"a" * start + internal(b"", 1, 1), start
    for _ in range(count):
        fresh = b"a" + internal(b"", 1, 1)
        out += varint(size) + varint(len(fresh)) + b"\0" + fresh
        size += 1
    return out


def test_keys_that_grow(tmp_path):
    """Each shares all of the one before: so few bytes stood for gigabytes."""
    for entries in (growing_keys(40_000, 1), growing_keys(4000, 4000)):
        folder = table(tmp_path, entries)
        tracemalloc.start()
        refused(folder, "is damaged: keys of up to .* bytes in a block of")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 64 << 20


def test_one_key_again_and_again(tmp_path):
    key = internal(b"k" * 100, 1, 1)
    entry = varint(0) + varint(len(key)) + b"\0" + key
    refused(table(tmp_path, entry + (varint(len(key)) + b"\0\0") * 50), "keys do not ascend")


def test_one_block_again_and_again(tmp_path):
    key = internal(b"a", 1, 1)
    entry = varint(0) + varint(len(key)) + b"\0" + key
    size = varint(len(entry) + 8)
    refused(table(tmp_path, entry, [varint(0) + size] * 9), "the block at 0 begins before another")


def test_large_blocks(tmp_path):
    entry = varint(0) + varint(9) + b"\0" + internal(b"a", 1, 1)
    handle = [varint(0) + varint(1 << 29)]
    refused(table(tmp_path, entry, handle), "a block of 536870912 bytes")


@pytest.mark.parametrize("name", ["000001.ldb", "000011.log", "MANIFEST-000002"])
def test_every_flipped_bit_of_records_is_found(name, tmp_path):
    path = small_database(tmp_path) / name
    want = list(LevelDB(str(path.parent)))
    whole = path.read_bytes()
    places = set(range(len(whole)))
    if name.endswith("ldb"):
        # Nobody reads the empty block of metadata, and the footer's padding.
        meta = whole.index(empty := sealed(bytes(4) + b"\1" + bytes(3)))
        places -= {*range(meta, meta + len(empty)), *range(len(whole) - 48, len(whole) - 8)}
    lengths = []
    for at in sorted(places):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            records = list(LevelDB(str(path.parent)))
        except FileError:
            continue
        # A last record that reaches past the file, as an interrupted writer leaves it.
        assert records == [record for record in want if record in records] != want
        lengths.append(at)
    assert len(lengths) <= (0 if name.endswith("ldb") else 2)


def test_a_record_past_its_block(tmp_path):
    folder = database(tmp_path / "db", [], [(b"c", 3, b"3"), (b"d", 4, b"x" * 70_000)])
    path = folder / "000010.log"
    whole = bytearray(path.read_bytes())
    whole[5] = 0xFF
    path.write_bytes(whole)
    with pytest.raises(FileError, match="a record reaches past its block"):
        list(LevelDB(str(folder)))


def test_names_of_files(tmp_path):
    folder = small_database(tmp_path)
    want = list(LevelDB(str(folder)))
    (folder / "²³.log").write_bytes(log([b"never read"]))
    assert list(LevelDB(str(folder))) == want
    for name in ("MANIFEST-" + "1" * 291, "MANIFEST-000\0", "MANIFEST-²", "MANIFEST-/etc"):
        (folder / "CURRENT").write_text(name + "\n", encoding="latin-1")
        with pytest.raises(FileError, match=r"CURRENT names 'MANIFEST-.*, which is not there"):
            LevelDB(str(folder))


def test_files_that_may_not_be_opened(tmp_path):
    folder = small_database(tmp_path)
    for name in ("000011.log", "MANIFEST-000002"):
        path = folder / name
        path.unlink()
        path.mkdir()
        with pytest.raises(FileError, match=f"{name}|is not there"):
            LevelDB(str(folder)).fetch([b"c"], LOG)
