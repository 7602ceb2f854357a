"""Small LevelDB databases, written byte by byte."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sparknet.loaders.leveldb_table import masked

Write = tuple[bytes, int, "bytes | None"]
"""Key, sequence number, value; None deletes."""

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(value: bytes) -> bytes:
    return varint(len(value)) + value


def internal(key: bytes, sequence: int, kind: int) -> bytes:
    return key + (sequence << 8 | kind).to_bytes(8, "little")


def block(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Keys share their beginnings, as a real writer has it."""
    out, last = b"", b""
    for key, value in pairs:
        shared = 0
        while shared < min(len(key), len(last)) and key[shared] == last[shared]:
            shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        out += key[shared:] + value
        last = key
    return out + (0).to_bytes(4, "little") + (1).to_bytes(4, "little")


def sealed(data: bytes, kind: int = 0) -> bytes:
    """A block as it lies in a table: with its compression and its check sum."""
    return data + bytes([kind]) + masked(data + bytes([kind])).to_bytes(4, "little")


def table(path: Path, writes: Sequence[Write], per_block: int = 2) -> bytes:
    """A table file; returns its manifest edit, less the tag, level, number and size."""
    rows = [
        (internal(key, number, 0 if value is None else 1), value or b"")
        for key, number, value in sorted(writes, key=lambda write: (write[0], -write[1]))
    ]
    out, index = b"", []
    for start in range(0, len(rows), per_block):
        part = rows[start : start + per_block]
        data = block(part)
        index.append((part[-1][0], varint(len(out)) + varint(len(data))))
        out += sealed(data)
    handles = b""
    for pairs in ([], index):
        data = block(pairs)
        handles += varint(len(out)) + varint(len(data))
        out += sealed(data)
    path.write_bytes(out + handles.ljust(40, b"\0") + MAGIC)
    return text(rows[0][0]) + text(rows[-1][0])


def log(records: Iterable[bytes]) -> bytes:
    out = b""
    for record in records:
        first = True
        while True:
            room = (1 << 15) - len(out) % (1 << 15)
            if room < 7:
                out += bytes(room)
                continue
            piece, record = record[: room - 7], record[room - 7 :]
            kind = (1 if first else 4) if not record else (2 if first else 3)
            body = bytes([kind]) + piece
            out += masked(body).to_bytes(4, "little") + len(piece).to_bytes(2, "little") + body
            first = False
            if not record:
                break
    return out


def batch(writes: Sequence[Write]) -> bytes:
    out = writes[0][1].to_bytes(8, "little") + len(writes).to_bytes(4, "little")
    for key, _, value in writes:
        out += b"\0" + text(key) if value is None else b"\1" + text(key) + text(value)
    return out


def database(
    folder: Path, tables: Sequence[Sequence[Write]], logged: Sequence[Write], suffix: str = "ldb"
) -> Path:
    folder.mkdir(exist_ok=True)
    first_log = len(tables) + 10
    edits = [b"\1" + text(b"leveldb.BytewiseComparator") + b"\2" + varint(first_log)]
    for number, writes in enumerate(tables, 1):
        path = folder / f"{number:06d}.{suffix}"
        keys = table(path, writes)
        edits.append(b"\7\0" + varint(number) + varint(path.stat().st_size) + keys)
    (folder / "MANIFEST-000002").write_bytes(log(edits))
    (folder / "CURRENT").write_text("MANIFEST-000002\n")
    data = log(batch([write]) for write in logged)
    (folder / f"{first_log:06d}.log").write_bytes(data)
    (folder / "000001.log").write_bytes(log([batch([(b"stale", 1, b"stale")])]))
    return folder
