"""Datum records of an LMDB or LevelDB: one by one, in batches, and their mean image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, count, islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from sparknet import renamed
from sparknet.errors import ArrayError, FileError
from sparknet.loaders.batches import one_pass
from sparknet.loaders.image_decoding import Size, image_shape
from sparknet.loaders.image_files import LABEL, Color, PictureReader
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import (
    Array,
    Batch,
    Column,
    Indices,
    Opened,
    Records,
    Rows,
    rows_of,
)
from sparknet.native.alone import cached_property
from sparknet.native.transform import ENCODED, SCATTERED, BatchItems, RecordError
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath

LARGEST = 2**31 - 1


def parse_datum(value: bytes, source: str, key: object, kind: Any = caffe_pb2.Datum) -> Any:
    """Return the Datum, or message of another kind, in a record; ``source`` and ``key`` say where
    it came from.
    """
    datum = kind()
    try:
        datum.ParseFromString(value)
    except Exception as error:
        raise FileError(source, f"record {key!r} is no {kind.DESCRIPTOR.name}") from error
    return datum


def stored_shape(
    datum: Any, source: str, key: object, color: bool | None = None
) -> tuple[int, int, int]:
    """Channels, height and width; of an encoded image those after decoding.

    ``color`` forces an encoded image to colour or grey (Caffe: data_transformer.cpp,
    InferBlobShape).
    """
    if datum.encoded:
        channels, height, width = image_shape(datum.data, f"{source}, record {key!r}")
        return (channels if color is None else 3 if color else 1), height, width
    shape: tuple[int, int, int] = (datum.channels, datum.height, datum.width)
    check_size(datum, shape, source, key)
    return shape


def check_size(datum: Any, shape: tuple[int, int, int], source: str, key: object) -> None:
    """Refuse a record whose bytes or floats do not fit its shape."""
    channels, height, width = shape
    values = len(datum.data) or len(datum.float_data)
    expected = channels * height * width
    if min(shape) < 0 or expected > LARGEST or values != expected:
        raise FileError(
            source,
            f"record {key!r} says {channels} x {height} x {width} and holds {values} values",
        )


def datum_bytes(pixels: Any, label: int | None = None) -> bytes:
    """Return an image of channels x height x width bytes, or of other numbers, as a record."""
    channels, height, width = pixels.shape
    datum = caffe_pb2.Datum(channels=channels, height=height, width=width, label=label)
    if pixels.dtype == np.uint8:
        datum.data = pixels.tobytes()
    else:
        datum.float_data.extend(pixels.ravel().tolist())
    return datum.SerializeToString()


def encoded_bytes(image: bytes, label: int) -> bytes:
    """Return a compressed image as a record."""
    return caffe_pb2.Datum(data=image, label=label, encoded=True).SerializeToString()


class Datums(Opened):
    """data (channels x height x width bytes, or floats) and label, by key.

    Encoded images are decoded: `size`, `color` and `invalid` as in `PictureReader`.  The first use
    looks where the records are: in an LMDB that reads its index, in a LevelDB everything.
    """

    @renamed.keywords(damaged="invalid")
    def __init__(
        self,
        path: StrPath,
        *,
        size: Size | None = None,
        color: Color = None,
        invalid: Literal["raise", "drop"] = "raise",
        preprocessing: Preprocessing | None = None,
    ) -> None:
        self.path, self.reader = str(path), PictureReader(size, color, invalid, preprocessing)
        self._database = open_database(self.path)
        self._first = self._database.first()

    @property
    def failed(self) -> Mapping[str, str]:
        """Encoded images that were left out so far, and why."""
        return self.reader.failed

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """By the first record."""
        key, value = self._first
        datum = parse_datum(value, self.path, key)
        name = f"{self.path}, record {key!r}"
        if datum.encoded:
            shape = self.reader.shape(datum.data, name)
        else:
            shape = stored_shape(datum, self.path, key)
        floats = not datum.encoded and not datum.data
        return {"data": Column(np.dtype(np.float32 if floats else np.uint8), shape), "label": LABEL}

    def __len__(self) -> int:
        return len(self._places)

    def take(self, indices: Indices) -> Batch:
        rows = rows_of(indices, len(self))
        self._check()
        entries = self._scan(rows)
        column = self.columns["data"]
        images = self._decoded(rows, entries)
        places = [place for place in range(len(rows)) if images.get(place, entries) is not None]
        data = np.empty((len(places), *column.shape), column.dtype)
        for out, place in zip(data, places, strict=True):
            values = images[place] if place in images else entries.values(place)
            if values.dtype != column.dtype or values.shape != column.shape:
                raise self._unlike(int(rows[place]), values)
            out[...] = values
        self._check()
        return {"data": data, "label": entries.table["label"][places].astype(np.int32)}

    def take_labels(self, indices: Indices) -> Array:
        """Return the labels of rows, decoding no image unless damaged ones are left out."""
        if self.reader.skips:
            return self.take(indices)["label"]
        self._check()
        labels = self._scan(rows_of(indices, len(self))).table["label"]
        self._check()
        return np.asarray(labels, np.int32)

    def _check(self) -> None:
        if isinstance(self._database, LMDB):
            self._database.check()

    @cached_property
    def _places(self) -> Any:
        """LMDB: start and size of each value.  LevelDB: keys, and the tables where they lie."""
        if isinstance(self._database, LMDB):
            places = (place[1:] for place in self._database.places())
            return np.fromiter(chain.from_iterable(places), np.int64).reshape(-1, 2)
        return list(self._database.places())

    def _scan(self, rows: Rows) -> BatchItems:
        if isinstance(self._database, LMDB):
            starts, sizes = self._places[rows].T
            return scan(self.path, rows.tolist(), self._database.memory, starts, sizes)
        keys = [self._places[row][0] for row in rows]
        tables = [self._places[row][1] for row in rows]
        return scan(self.path, keys, *join(fetch(self._database, keys, tables)))

    def _decoded(self, rows: Rows, found: BatchItems) -> dict[int, Any]:
        """Decode encoded records, by their place in the batch; None for a damaged one."""
        encoded: Sequence[int] = found.of_kind(ENCODED)
        shape = self.columns["data"].shape

        def image(place: int) -> Any:
            name = f"{self.path}, record {rows[place]}"
            try:
                return self.reader.read(found.encoded(place), name, shape)  # type: ignore[arg-type]
            except FileError as error:
                self.reader.fail(error)
                return None

        return dict(zip(encoded, self.reader.decoders.map(image, encoded), strict=True))

    def _unlike(self, number: int, values: Any) -> FileError:
        column = self.columns["data"]
        kinds = [f"{kind.dtype} {' x '.join(map(str, kind.shape))}" for kind in (values, column)]
        return FileError(self.path, f"record {number} is {kinds[0]}, the first {kinds[1]}")


def open_database(path: str) -> LMDB | LevelDB:
    """Open a LevelDB or an LMDB: its files tell which one it is."""
    return LevelDB(path) if (Path(path) / "CURRENT").is_file() else LMDB(path)


Record = TypeVar("Record")


class Cursor:
    """A place in a LevelDB or LMDB; after the last record comes the first.

    With a seed to shuffle by, each round has an order of its own; the keys, not the values, are
    kept in memory for it.
    """

    def __init__(self, source: str, skip: int = 0, shuffle: int | None = None) -> None:
        self.source, self.shuffle = source, shuffle
        self.database = open_database(source)
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
        """Return the next records: their keys, and where their values lie."""
        keys, *rest = (list(column) for column in zip(*islice(self._records, many), strict=True))
        if isinstance(self.database, LMDB):
            self.database.check()
            records = scan(self.source, keys, self.database.memory, rest[0], rest[1])
            self.database.check()
            return keys, records
        values = rest[0] if self.shuffle is None else fetch(self.database, keys, rest[0])
        return keys, scan(self.source, keys, *join(values))

    def blame(self, keys: list[bytes], error: RecordError) -> FileError:
        """Return an error of one record, under its name."""
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


def fetch(database: LevelDB, keys: Sequence[bytes], tables: Sequence[int]) -> list[bytes]:
    """Return the values of keys, of which it is known in which tables they lie."""
    values: dict[bytes, bytes] = {}
    for table in set(tables):
        own = [key for key, number in zip(keys, tables, strict=True) if number == table]
        values.update(zip(own, database.fetch(own, table), strict=True))
    return [values[key] for key in keys]


def rounds(source: str, records: Callable[[], Iterable[Record]]) -> Iterator[Record]:
    """Yield the records of a database, and after the last one the first again."""
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
    """Find the values of Datum messages in one memory; `names` are for messages."""
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


def join(values: Sequence[bytes]) -> tuple[bytes, list[int], list[int]]:
    """Values as one memory, and where each of them lies: starts and sizes."""
    sizes = [len(value) for value in values]
    return b"".join(values), [0, *accumulate(sizes[:-1])], sizes


Floats = np.ndarray[Any, np.dtype[np.float32]]
AT_ONCE = 64


class Mean:
    """The sum of images so far, in double precision."""

    def __init__(self) -> None:
        self.total: Any = None
        self.count = 0

    def add(self, images: Any) -> None:
        """Images x channels x height x width."""
        shape = images.shape[1:]
        if self.total is None:
            self.total = np.zeros(shape, np.float64)
        if shape != self.total.shape:
            raise ArrayError(f"image {self.count} is {shape}, the first {self.total.shape}")
        self.total += images.sum(0, dtype=np.float64)
        self.count += len(images)

    @property
    def value(self) -> Floats:
        """The mean; that of each channel is `mean.value.mean((1, 2))`."""
        if not self.count:
            raise ArrayError("there is no image to take the mean of")
        mean: Floats = (self.total / self.count).astype(np.float32)
        return mean


def mean_of(records: Records, column: str = "data") -> Floats:
    """Return the mean of a column, batch by batch; records that are left out do not count."""
    if column not in records.columns:
        raise FileError("records", f"have no column '{column}': {', '.join(records.columns)}")
    mean = Mean()
    for batch in one_pass(records, AT_ONCE):
        mean.add(batch[column])
    return mean.value
