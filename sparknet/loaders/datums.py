"""The Datum records of an LMDB or LevelDB, any of them on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sparknet import renamed
from sparknet.errors import FileError, SpecError
from sparknet.loaders.cursor import joined, scan
from sparknet.loaders.datum import parse_datum, stored_shape
from sparknet.loaders.image import Size
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.loaders.pictures import LABEL, Color, PictureReader
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import Batch, Column, Indices, Opened, Rows, rows_of
from sparknet.native.alone import cached_property
from sparknet.native.batch_items import ENCODED, BatchItems
from sparknet.proto.byte_source import StrPath

BACKENDS = ("lmdb", "leveldb")


class Datums(Opened):
    """data (channels x height x width bytes, or floats) and label, by key.

    Encoded images are decoded: `size`, `color` and `invalid` as in `PictureReader`.  The first use
    looks where the records are: in an LMDB that reads its index, in a LevelDB everything.
    """

    @renamed.keywords(damaged="invalid")
    def __init__(
        self,
        path: StrPath,
        backend: str | None = None,
        *,
        size: Size | None = None,
        color: Color = None,
        invalid: Literal["raise", "drop"] = "raise",
        preprocessing: Preprocessing | None = None,
    ) -> None:
        self.path, self.reader = str(path), PictureReader(size, color, invalid, preprocessing)
        backend = backend or kind_of(self.path)
        if backend not in BACKENDS:
            raise SpecError(f"backend '{backend}' is neither lmdb nor leveldb")
        self._database = LMDB(self.path) if backend == "lmdb" else LevelDB(self.path)
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
        found = self._found(rows)
        column = self.columns["data"]
        images = self._decoded(rows, found)
        kept = [place for place in range(len(rows)) if images.get(place, found) is not None]
        data = np.empty((len(kept), *column.shape), column.dtype)
        for out, place in zip(data, kept, strict=True):
            values = images[place] if place in images else found.values(place)
            if values.dtype != column.dtype or values.shape != column.shape:
                raise self._unlike(int(rows[place]), values)
            out[...] = values
        self._check()
        return {"data": data, "label": found.table["label"][kept].astype(np.int32)}

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

    def _found(self, rows: Rows) -> BatchItems:
        if isinstance(self._database, LMDB):
            starts, sizes = self._places[rows].T
            return scan(self.path, rows.tolist(), self._database.memory, starts, sizes)
        places = [self._places[row] for row in rows]
        values: dict[bytes, bytes] = {}
        for table in {number for _, number in places}:
            keys = [key for key, number in places if number == table]
            values.update(zip(keys, self._database.fetch(keys, table), strict=True))
        keys = [key for key, _ in places]
        return scan(self.path, keys, *joined([values[key] for key in keys]))

    def _decoded(self, rows: Rows, found: BatchItems) -> dict[int, Any]:
        """The images of encoded records, by their place in the batch; None where one is damaged."""
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


def kind_of(path: str) -> str:
    """Whether a folder is an LMDB or a LevelDB, by its files."""
    return "leveldb" if (Path(path) / "CURRENT").is_file() else "lmdb"
