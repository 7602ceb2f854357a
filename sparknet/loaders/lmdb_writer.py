"""Writes an LMDB in one go, from records in key order; no library, no lock.

The file is what `mdb_load` would leave: two meta pages, then leaves and long values in the
order in which they come, then the branches.  Layout: mdb.c of LMDB 0.9 (64 bit, little endian).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sparknet.errors import FileError
from sparknet.loaders.lmdb import (
    BIG,
    BRANCH,
    EMPTY,
    LEAF,
    MAGIC,
    META,
    NODE,
    OVERFLOW,
    PAGE,
    VERSION,
)
from sparknet.proto.byte_source import replacing

SIZE = 4096
META_PAGE, INTEGER_KEYS = 8, 8
LONGEST_KEY = 511
LARGEST_NODE = ((SIZE - PAGE.size) // 2 & -2) - 2
"""A larger record has pages of its own."""
LONGEST_VALUE = 2**32 - 1


class LMDBWriter:
    """Takes records; `finish` makes them a database."""

    def __init__(self, file: BinaryIO, path: object) -> None:
        self.file, self.path = file, path
        self.pages = 2
        self.leaves = self.long_pages = self.branches = self.entries = 0
        self.last: bytes | None = None
        self._nodes: list[tuple[bytes, bytes]] = []
        self._room = SIZE - PAGE.size
        self._below: list[tuple[bytes, int]] = []
        file.write(bytes(2 * SIZE))

    def put(self, key: bytes, value: bytes) -> None:
        if not 0 < len(key) <= LONGEST_KEY:
            raise FileError(self.path, f"cannot hold a key of {len(key)} bytes: {key[:40]!r}")
        if self.last is not None and key <= self.last:
            raise FileError(self.path, f"needs ascending keys: {key!r} came after {self.last!r}")
        if len(value) > LONGEST_VALUE:
            raise FileError(self.path, f"cannot hold {len(value)} bytes under {key!r}")
        self.last = key
        self.entries += 1
        self._add(key, self._node(key, value))

    def finish(self) -> None:
        self._end_leaf()
        level, depth = self._below, int(bool(self._below))
        while len(level) > 1:
            level, depth = self._branches(level), depth + 1
        root = level[0][1] if level else EMPTY
        self.file.seek(0)
        self.file.write(self._meta(0, 0, EMPTY))
        self.file.write(self._meta(1, depth, root))

    def _node(self, key: bytes, value: bytes) -> bytes:
        low, high, flags = len(value) & 0xFFFF, len(value) >> 16, 0
        if NODE.size + len(key) + len(value) > LARGEST_NODE:
            flags, value = BIG, self._long(value).to_bytes(8, "little")
        node = NODE.pack(low, high, flags, len(key)) + key + value
        return node + bytes(len(node) % 2)

    def _long(self, value: bytes) -> int:
        """A value on pages of its own; the number of the first.  The leaf at hand comes later."""
        number, count = self.pages, -(-(PAGE.size + len(value)) // SIZE)
        self.file.write(struct.pack("<Q2xHI", number, OVERFLOW, count))
        self.file.write(value)
        self.file.write(bytes(count * SIZE - PAGE.size - len(value)))
        self.pages += count
        self.long_pages += count
        return number

    def _add(self, key: bytes, node: bytes) -> None:
        if len(node) + 2 > self._room:
            self._end_leaf()
        self._nodes.append((key, node))
        self._room -= len(node) + 2

    def _end_leaf(self) -> None:
        if self._nodes:
            self._below.append((self._nodes[0][0], self._page(LEAF, [n for _, n in self._nodes])))
            self.leaves += 1
        self._nodes, self._room = [], SIZE - PAGE.size

    def _branches(self, level: list[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
        """The pages above a level of pages; the first key of each is left out, as it is implied."""
        groups: list[list[tuple[bytes, int]]] = [[]]
        room = SIZE - PAGE.size
        for key, child in level:
            size = len(_branch(key, child)) + 2
            if size > room:
                groups.append([])
                room = SIZE - PAGE.size
            groups[-1].append((key, child))
            room -= size
        if len(groups) > 1 and len(groups[-1]) == 1:
            # LMDB does not accept a branch with one child.
            groups[-1].insert(0, groups[-2].pop())
        self.branches += len(groups)
        return [(group[0][0], self._page(BRANCH, _branch_nodes(group))) for group in groups]

    def _page(self, flags: int, nodes: list[bytes]) -> int:
        """Pointers from the front, nodes from the back."""
        ends, at = [], SIZE
        for node in nodes:
            at -= len(node)
            ends.append(at)
        lower = PAGE.size + 2 * len(nodes)
        head = PAGE.pack(self.pages, flags, lower, at) + struct.pack(f"<{len(ends)}H", *ends)
        self.file.write(head + bytes(at - lower) + b"".join(reversed(nodes)))
        self.pages += 1
        return self.pages - 1

    def _meta(self, transaction: int, depth: int, root: int) -> bytes:
        """The older of the two describes an empty database."""
        full = transaction == 1
        tree = (self.branches, self.leaves, self.long_pages, self.entries) if full else (0,) * 4
        last = self.pages - 1 if full else 1
        page = bytearray(
            META.pack(
                MAGIC,
                VERSION,
                0,
                self.pages * SIZE,
                SIZE,
                0,
                0,
                depth,
                *tree,
                root,
                last,
                transaction,
            )
        )
        struct.pack_into("<QHH", page, 0, transaction, 0, META_PAGE)
        # The tree of free pages is empty: its root, after its own pad, flags and counts.
        struct.pack_into("<IHHQQQQQ", page, 40, SIZE, INTEGER_KEYS, 0, 0, 0, 0, 0, EMPTY)
        return bytes(page.ljust(SIZE, b"\0"))


def _branch(key: bytes, child: int) -> bytes:
    node = NODE.pack(child & 0xFFFF, child >> 16 & 0xFFFF, child >> 32, len(key)) + key
    return node + bytes(len(node) % 2)


def _branch_nodes(group: list[tuple[bytes, int]]) -> list[bytes]:
    return [_branch(key if place else b"", child) for place, (key, child) in enumerate(group)]


@contextmanager
def new_lmdb(path: str) -> Iterator[LMDBWriter]:
    """A new database in the folder `path`, which appears when the block ends without error.

    An existing one is not replaced.
    """
    folder = Path(path)
    file = folder / "data.mdb"
    if file.exists() or (folder.exists() and not folder.is_dir()):
        raise FileError(path, "exists already")
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror}") from error
    try:
        with replacing(file) as draft, draft.open("wb") as out:
            writer = LMDBWriter(out, path)
            yield writer
            writer.finish()
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise
