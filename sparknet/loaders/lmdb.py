"""LMDB databases, read in key order; no library, no writing, no lock.

A database is a tree of pages in one file.  LMDB itself maps that file and trusts it: a damaged
one kills the process.  Here the file is mapped as well, but every number in it is checked.
Layout: mdb.c of LMDB 0.9 (64 bit, little endian).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path

from sparknet.errors import FileError
from sparknet.native.guard import Guard
from sparknet.proto.byte_source import open_file

MAGIC, VERSION = 0xBEEFC0DE, 1
META = struct.Struct("<16x IIQQ I44x IHH QQQQQ QQ")
"""Header, magic, version, address, map size, page size; then the main tree: pad, flags, depth,
branch pages, leaf pages, overflow pages, entries, root; then last page, transaction."""
PAGE = struct.Struct("<Q2xHHH")
"""Page number, flags, lower and upper end of the gap between pointers and nodes."""
NODE = struct.Struct("<HHHH")
"""Size (or page) low and high, flags (or page, top), key size."""
BRANCH, LEAF, OVERFLOW = 1, 2, 4
BIG, SUBTREE, DUPLICATES = 1, 2, 4
EMPTY = 2**64 - 1
DEEPEST = 32


@dataclass(frozen=True)
class Tree:
    """What the newer meta page says."""

    page_size: int
    last_page: int
    root: int
    entries: int
    transaction: int


class LMDB:
    """A database open for reading; works on folders that nobody may write to."""

    def __init__(self, path: str) -> None:
        self.path = path
        file = Path(path) / "data.mdb" if Path(path).is_dir() else Path(path)
        if not file.is_file():
            missing = not Path(path).exists()
            raise FileError(path, "does not exist" if missing else "holds no data.mdb")
        self.memory = _map(file, path)
        self._guard = Guard(self.memory, path) if isinstance(self.memory, mmap) else None
        try:
            self.tree = read_tree(self.memory, path)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> LMDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; records that are still in use keep it mapped."""
        if self._guard is not None:
            with suppress(BufferError):
                self._guard.close()

    def check(self) -> None:
        """FileError if the file no longer has what was read of it."""
        if self._guard is not None:
            self._guard.check()

    def __len__(self) -> int:
        return self.tree.entries

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """The records by key."""
        memory = self.memory
        for key, start, size in self.places():
            value = memory[start : start + size]
            self.check()
            yield key, value

    def places(self) -> Iterator[tuple[bytes, int, int]]:
        """The keys in order, and where in `memory` their values lie: start and size."""
        visits = self.tree.last_page + 1
        waiting = [(self.tree.root, 0)] if self.tree.root != EMPTY else []
        while waiting:
            number, depth = waiting.pop()
            visits -= 1
            if visits < 0 or depth > DEEPEST:
                raise self._damaged("its pages go round in a circle")
            flags, page, nodes = self._page(number)
            if flags & LEAF:
                begin = number * self.tree.page_size
                yield from (self._record(page, begin, at) for at in nodes)
            else:
                waiting += [(self._child(page, at), depth + 1) for at in reversed(nodes)]

    def first(self) -> tuple[bytes, bytes]:
        """The record with the smallest key."""
        record = next(iter(self), None)
        if record is None:
            raise FileError(self.path, "is empty")
        return record

    def _page(self, number: int) -> tuple[int, bytes, list[int]]:
        """The flags of a branch or leaf page, its bytes, and where its nodes begin."""
        start = self._inside(number, 0, self.tree.page_size)
        page = self.memory[start : start + self.tree.page_size]
        self.check()
        found, flags, lower, _ = PAGE.unpack_from(page)
        if found != number or flags & 0x3F not in (BRANCH, LEAF):
            raise self._damaged(f"page {number} is neither a branch nor a leaf")
        pointers = lower - PAGE.size
        if pointers < 0 or pointers % 2 or lower > len(page):
            raise self._damaged(f"page {number} has {pointers} bytes of pointers")
        nodes = list(struct.unpack_from(f"<{pointers // 2}H", page, PAGE.size))
        if nodes and max(nodes) + NODE.size > len(page):
            raise self._damaged(f"page {number} has a node outside itself")
        return flags, page, nodes

    def _child(self, page: bytes, at: int) -> int:
        low, high, top, _ = NODE.unpack_from(page, at)
        return int(low | high << 16 | top << 32)

    def _record(self, page: bytes, begin: int, at: int) -> tuple[bytes, int, int]:
        low, high, flags, key_size = NODE.unpack_from(page, at)
        start = at + NODE.size + key_size
        size = low | high << 16
        if flags & (SUBTREE | DUPLICATES):
            raise FileError(self.path, "holds databases inside, or several values for one key")
        end = start + (8 if flags & BIG else size)
        if end > len(page):
            raise self._damaged("a record reaches past its page")
        key = page[at + NODE.size : start]
        if flags & BIG:
            return key, self._overflow(int.from_bytes(page[start:end], "little"), size), size
        return key, begin + start, size

    def _overflow(self, number: int, size: int) -> int:
        start = self._inside(number, 0, PAGE.size)
        found, flags, _, _ = PAGE.unpack_from(self.memory, start)
        if found != number or not flags & OVERFLOW:
            raise self._damaged(f"page {number} holds no long value")
        return self._inside(number, PAGE.size, size)

    def _inside(self, number: int, skip: int, size: int) -> int:
        """Where a part of a page or of several begins, if the file reaches so far."""
        start = number * self.tree.page_size + skip
        if start + size > (self.tree.last_page + 1) * self.tree.page_size:
            raise self._damaged(f"page {number} lies after its end")
        return start

    def _damaged(self, what: str) -> FileError:
        self.check()
        return FileError(self.path, f"is damaged: {what}")


def _map(file: Path, path: str) -> mmap | bytes:
    with open_file(file) as opened:
        if file.stat().st_size == 0:
            return b""
        try:
            return mmap(opened.fileno(), 0, access=ACCESS_READ)
        except (OSError, ValueError) as error:
            raise FileError(path, f"cannot be mapped: {error}") from error


def read_tree(memory: mmap | bytes, path: str) -> Tree:
    """The newer of the two meta pages, if the file is as long as it says."""
    size = len(memory)
    first = _meta(memory[: META.size])
    if first is None:
        raise FileError(path, "is no LMDB: it does not begin with a meta page")
    second = _meta(memory[first.page_size : first.page_size + META.size])
    tree = first if second is None or second.transaction < first.transaction else second
    needed = (tree.last_page + 1) * tree.page_size
    if needed > size or tree.page_size != first.page_size:
        raise FileError(path, f"is cut short: {needed} bytes needed, {size} there")
    if tree.entries * NODE.size > size:
        raise FileError(path, f"is damaged: {tree.entries} records in {size} bytes")
    return tree


def _meta(page: bytes) -> Tree | None:
    if len(page) < META.size:
        return None
    (magic, version, _, _, page_size, *main, last_page, transaction) = META.unpack(page)
    entries, root = main[-2:]
    power_of_two = page_size & (page_size - 1) == 0
    if magic != MAGIC or version != VERSION or not 256 <= page_size <= 1 << 16 or not power_of_two:
        return None
    return Tree(page_size, last_page, root, entries, transaction)
