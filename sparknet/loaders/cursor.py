"""Datum records of a database, a batch at a time; after the last comes the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, count, islice
from typing import Any, TypeVar

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.datum import check_size, parse_datum
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.native.batch_items import SCATTERED, BatchItems, RecordError

Record = TypeVar("Record")


class Cursor:
    """A place in a LevelDB or LMDB; after the last record comes the first.

    With a seed to shuffle by, each round has an order of its own; the keys, not the values, are
    kept in memory for it.
    """

    def __init__(
        self, source: str, backend: str, skip: int = 0, shuffle: int | None = None
    ) -> None:
        self.source, self.shuffle = source, shuffle
        self.database: LMDB | LevelDB = LMDB(source) if backend == "lmdb" else LevelDB(source)
        try:
            skip = skip and skip % max(len(self.database), 1) if shuffle is None else skip
            in_turn = self._in_turn() if shuffle is None else self._shuffled(shuffle)
            self._records = islice(in_turn, skip, None)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.database.close()

    def take(self, many: int) -> tuple[list[bytes], BatchItems]:
        """The next records: their keys, and where their values lie."""
        keys, *rest = (list(column) for column in zip(*islice(self._records, many), strict=True))
        if isinstance(self.database, LMDB):
            self.database.check()
            records = scan(self.source, keys, self.database.memory, rest[0], rest[1])
            self.database.check()
            return keys, records
        values = rest[0] if self.shuffle is None else fetched(self.database, keys, rest[0])
        return keys, scan(self.source, keys, *joined(values))

    def blame(self, keys: list[bytes], error: RecordError) -> FileError:
        """An error of one record, under its name."""
        return FileError(self.source, f"record {keys[error.number]!r} {error}")

    def _in_turn(self) -> Iterator[Any]:
        """LMDB: keys and the places of values in the file's memory.  LevelDB: keys and values."""
        database = self.database
        if isinstance(database, LMDB):
            return rounds(self.source, database.places)
        return rounds(self.source, lambda: database)

    def _shuffled(self, seed: int) -> Iterator[Any]:
        """LMDB: as in turn.  LevelDB: keys and the numbers of their tables."""
        places: list[Any] = list(self.database.places())
        if not places:
            raise FileError(self.source, "is empty")
        for turn in count():
            order = np.random.default_rng([seed, 1 + turn]).permutation(len(places))
            yield from (places[place] for place in order)


def fetched(database: LevelDB, keys: Sequence[bytes], tables: Sequence[int]) -> list[bytes]:
    """The values of keys, of which it is known in which tables they lie."""
    found: dict[bytes, bytes] = {}
    for table in set(tables):
        own = [key for key, number in zip(keys, tables, strict=True) if number == table]
        found.update(zip(own, database.fetch(own, table), strict=True))
    return [found[key] for key in keys]


def rounds(source: str, records: Callable[[], Iterable[Record]]) -> Iterator[Record]:
    """The records of a database, and after the last one the first again."""
    while True:
        empty = True
        for record in records():
            empty = False
            yield record
        if empty:
            raise FileError(source, "is empty")


def scan(
    source: str, names: Sequence[object], memory: Any, starts: Sequence[int], sizes: Sequence[int]
) -> BatchItems:
    """Where the values of Datum messages lie in one memory; `names` are for messages."""
    records = BatchItems(len(names))
    try:
        records.scan(memory, starts, sizes)
    except RecordError as error:
        raise FileError(source, f"record {names[error.number]!r} {error}") from error
    for number in records.of_kind(SCATTERED):
        start = int(starts[number])
        value = bytes(memory[start : start + int(sizes[number])])
        datum = parse_datum(value, source, names[number])
        shape = (datum.channels, datum.height, datum.width)
        check_size(datum, shape, source, names[number])
        records.put(number, np.array(datum.float_data, np.float32).reshape(shape))
    return records


def joined(values: Sequence[bytes]) -> tuple[bytes, list[int], list[int]]:
    """Values as one memory, and where each of them lies: starts and sizes."""
    sizes = [len(value) for value in values]
    return b"".join(values), [0, *accumulate(sizes[:-1])], sizes
