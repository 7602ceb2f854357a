"""LMDB databases, read and written in key order; no library, no lock.

A database is a tree of pages in one file.  LMDB itself maps that file and trusts it: a damaged
one kills the process.  Here the file is mapped as well, but every number in it is checked.
Layout: mdb.c of LMDB 0.9 (64 bit, little endian).

The file is what `mdb_load` would leave: two meta pages, then leaves and long values in the
order in which they come, then the branches.  Layout: mdb.c of LMDB 0.9 (64 bit, little endian).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError
from sparknet.native.core import Guard
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
        """Yield the records by key."""
        memory = self.memory
        for key, start, size in self.places():
            value = memory[start : start + size]
            self.check()
            yield key, value

    def places(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield the keys in order, and where in `memory` their values lie: start and size."""
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
        """Return the record with the smallest key."""
        record = next(iter(self), None)
        if record is None:
            raise FileError(self.path, "is empty")
        return record

    def _page(self, number: int) -> tuple[int, bytes, list[int]]:
        """Return the flags of a branch or leaf page, its bytes, and where its nodes begin."""
        start = self._inside(number, 0, self.tree.page_size)
        page = self.memory[start : start + self.tree.page_size]
        self.check()
        page_number, flags, lower, _ = PAGE.unpack_from(page)
        if page_number != number or flags & 0x3F not in (BRANCH, LEAF):
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
        page_number, flags, _, _ = PAGE.unpack_from(self.memory, start)
        if page_number != number or not flags & OVERFLOW:
            raise self._damaged(f"page {number} holds no long value")
        return self._inside(number, PAGE.size, size)

    def _inside(self, number: int, skip: int, size: int) -> int:
        """Return where a part of a page or of several begins, if the file reaches so far."""
        start = number * self.tree.page_size + skip
        if start + size > (self.tree.last_page + 1) * self.tree.page_size:
            raise self._damaged(f"page {number} lies after its end")
        return start

    def _damaged(self, what: str) -> FileError:
        self.check()
        return FileError(self.path, f"is damaged: {what}")


def _map(file: Path, path: str) -> mmap | bytes:
    with open_file(file) as stream:
        if file.stat().st_size == 0:
            return b""
        try:
            return mmap(stream.fileno(), 0, access=ACCESS_READ)
        except (OSError, ValueError) as error:
            raise FileError(path, f"cannot be mapped: {error}") from error


def read_tree(memory: mmap | bytes, path: str) -> Tree:
    """Return the newer of the two meta pages, if the file is as long as it says."""
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
        """Return a value on pages of its own; the number of the first.

        The leaf at hand comes later.
        """
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
        """Return the pages above a level of pages; the first key of each is implied."""
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
        nodes = ([_branch(k if i else b"", n) for i, (k, n) in enumerate(one)] for one in groups)
        return [(one[0][0], self._page(BRANCH, of)) for one, of in zip(groups, nodes, strict=True)]

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
        """Return a meta page; the older of the two describes an empty database."""
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


@contextmanager
def new_lmdb(path: str) -> Iterator[LMDBWriter]:
    """Write a database into the folder `path`, which appears if the block succeeds.

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
        with atomic_file(file) as draft, draft.open("wb") as out:
            writer = LMDBWriter(out, path)
            yield writer
            writer.finish()
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise
