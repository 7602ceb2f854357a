"""Records: a data set as a few named columns whose rows can be read in any order."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from sparknet.errors import (
    ArrayError,
    DataError,
    IndexOutOfRange,
    SparkNetError,
    clean,
    outside,
)

if TYPE_CHECKING:
    from typing_extensions import Self

Array = np.ndarray[Any, np.dtype[Any]]
Rows = np.ndarray[Any, np.dtype[np.int64]]
Indices = Sequence[int] | Rows | slice
Batch = dict[str, Array]
_LISTED = 8
"""The most classes that a message lists."""


@dataclass(frozen=True)
class Column:
    """What every record has under one name: values of a type, in a shape."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of one record."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


@runtime_checkable
class Records(Protocol):
    """A data set: how many records, their columns, and any of them on demand.

    It need not fit in memory.  Readers of files can be pickled: they open their files again.
    """

    @property
    def columns(self) -> Mapping[str, Column]: ...

    def __len__(self) -> int: ...

    def take(self, indices: Indices) -> Batch:
        """Rows in the order asked for; a slice may give views, so nobody writes to them.

        A reader that was told to leave out damaged records gives fewer rows than it was asked
        for; any other names the record in a FileError.
        """
        ...


def columns_told(columns: Mapping[str, Column]) -> str:
    """Return the columns as the text of an object names them."""
    return "".join(f", {name} {one.shape} {one.dtype}" for name, one in columns.items())


class Counted:
    """Records that tell how many they are, and their columns, where they are shown."""

    def __repr__(self: Records) -> str:
        try:
            columns = columns_told(self.columns)
        except SparkNetError as error:  # of an image that cannot be read
            columns = f": {error}"
        return f"<{type(self).__name__}: {len(self):,} records{columns}>"


class Opened(Counted):
    """Records of files, pickled as the call that opens them: a worker opens the files again."""

    _again: partial[Any]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        records = super().__new__(cls)
        records._again = partial(cls, *arguments, **keywords)
        return records

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, ()


class ArrayRecords:
    """Arrays of equal length, each a column."""

    def __init__(self, **arrays: Any) -> None:
        for name, values in arrays.items():
            if np.ma.is_masked(values):
                raise ArrayError(f"column '{name}' is masked: fill its gaps, or leave them out")
        self.arrays: Batch = {name: np.asarray(values) for name, values in arrays.items()}
        lengths = {name: values.shape[:1] for name, values in self.arrays.items()}
        if not lengths:
            raise ArrayError("records need at least one array")
        if () in lengths.values() or len(set(lengths.values())) > 1:
            listed = ", ".join(
                f"'{name}' has {len_[0] if len_ else 'no'} rows" for name, len_ in lengths.items()
            )
            raise ArrayError(f"arrays of records need as many rows: {listed}")
        self._length = len(next(iter(self.arrays.values())))

    def __repr__(self) -> str:
        return f"<{len(self)} records{columns_told(self.columns)}>"

    @property
    def columns(self) -> Mapping[str, Column]:
        return {name: column_of(values) for name, values in self.arrays.items()}

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Indices) -> Batch:
        rows = indices if isinstance(indices, slice) else rows_of(indices, len(self))
        return {name: values[rows] for name, values in self.arrays.items()}


class View(Counted):
    """Other records, seen otherwise."""

    records: Records

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.records.columns

    @property
    def classes(self) -> Sequence[str]:
        return class_names(self.records)

    def __len__(self) -> int:
        return len(self.records)


class Subset(View):
    """Some of the rows of other records, in any order: for example a held-out part."""

    def __init__(self, records: Records, indices: Indices) -> None:
        self.records, self.indices = records, rows_of(indices, len(records))

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, indices: Indices) -> Batch:
        return self.records.take(self.indices[rows_of(indices, len(self))])


class NamedFor(View):
    """Records whose column `data` has the name of a net's input."""

    def __init__(self, records: Records, name: str) -> None:
        self.records, self.name = records, name

    @classmethod
    def inputs(cls, records: Records, names: Collection[str]) -> Records:
        """Return a reader's records: `data` is the column of the only input that has none.

        Readers of images and LMDBs call it so, as Caffe's nets do; those of other files call it
        `input` or `x`.
        """
        columns = records.columns
        missing = [name for name in names if name not in columns]
        if len(missing) != 1 or "data" not in columns or isinstance(records, ArrayRecords):
            return records
        return records if "data" in names else cls(records, missing[0])

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self._name(name): column for name, column in self.records.columns.items()}

    def take(self, indices: Indices) -> Batch:
        return {self._name(name): rows for name, rows in self.records.take(indices).items()}

    def _name(self, name: str) -> str:
        return self.name if name == "data" else name


def class_names(records: object) -> tuple[str, ...]:
    """Return the names of the classes by number, where the records know them, as folders' do."""
    return tuple(getattr(records, "classes", ()))


class ClassesWarning(UserWarning):
    """Classes are numbered in the order of their names, as nothing else says their numbers."""


def match_classes(
    own: Sequence[str], labels: Sequence[str], what: str, learns: bool
) -> tuple[list[int] | None, tuple[str, ...]]:
    """Return the numbers of data's classes by a net's labels, and the labels from then on.

    The numbers are None where the data's own numbers are the same.  A net that ``learns`` the data
    takes its names, unless it has them all.  DataError for any other class that the net lacks.
    """
    number_of = {name: number for number, name in enumerate(labels)}
    unknown = [name for name in own if name not in number_of]
    if not own or (unknown and learns):
        return None, tuple(own or labels)
    listed = ", ".join(f"'{clean(name)}'" for name in (labels or own)[:_LISTED])
    listed += f" and {len(labels or own) - _LISTED} more" if len(labels or own) > _LISTED else ""
    if not labels:
        warnings.warn(
            f"the classes of the {what} are numbered from 0 in this order: {listed}; nothing says "
            "whether the net has learned them so",
            ClassesWarning,
            stacklevel=outside(),
        )
        return None, ()
    if unknown:
        raise DataError(
            f"the {what} has class '{clean(unknown[0])}', and the net's classes are {listed}: "
            "rename it or leave it out; where its numbers are right, empty net.labels"
        )
    numbers = [number_of[name] for name in own]
    return None if numbers == list(range(len(own))) else numbers, tuple(labels)


def with_classes(
    records: Any, labels: Sequence[str], what: str, learns: bool = False
) -> tuple[Any, tuple[str, ...]]:
    """Return data with its classes numbered by a net's labels, and the labels from then on."""
    numbers, labels = match_classes(class_names(records), labels, what, learns)
    return records if numbers is None else Renumbered(records, labels, numbers), labels


class Renumbered(View):
    """Records whose classes have the numbers of others with the same names."""

    def __init__(self, records: Records, classes: Sequence[str], numbers: Sequence[int]) -> None:
        self.records, self._classes = records, tuple(classes)
        self._numbers = np.array(numbers, np.int32)

    @property
    def classes(self) -> Sequence[str]:
        return self._classes

    def take(self, indices: Indices) -> Batch:
        rows = self.records.take(indices)
        return {**rows, "label": self._numbers[rows["label"]]}


class Chain(Counted):
    """Records of the same columns, one after the other."""

    def __init__(self, parts: Sequence[Records]) -> None:
        if not parts:
            raise ArrayError("a chain of records needs at least one part")
        self.parts = tuple(parts)
        for number, part in enumerate(self.parts):
            if dict(part.columns) != dict(self.parts[0].columns):
                raise ArrayError(
                    f"part {number} of a chain has columns {columns_text(part.columns)}, "
                    f"the first {columns_text(self.parts[0].columns)}"
                )
        self._ends = np.cumsum([len(part) for part in self.parts])
        classes = [class_names(part) for part in self.parts]
        self.classes = classes[0] if len({*classes}) == 1 else tuple(sorted({*chain(*classes)}))
        if self.classes and not all(classes):
            raise ArrayError(
                f"part {classes.index(())} of a chain has no names of classes, and others have: "
                "give records of one kind"
            )
        self.parts = tuple(with_classes(part, self.classes, "chain")[0] for part in self.parts)

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.parts[0].columns

    def __len__(self) -> int:
        return int(self._ends[-1])

    def take(self, indices: Indices) -> Batch:
        rows = rows_of(indices, len(self))
        owners = np.searchsorted(self._ends, rows, side="right")
        # Runs of rows of the same part, so that a part that leaves out a record disturbs no other.
        edges = np.flatnonzero(np.diff(owners)) + 1
        runs = np.split(rows, edges)
        batches = [self._run(run) for run in runs]
        if len(batches) == 1:
            return batches[0]
        return {name: np.concatenate([batch[name] for batch in batches]) for name in self.columns}

    def _run(self, rows: Rows) -> Batch:
        number = int(np.searchsorted(self._ends, rows[0], side="right")) if len(rows) else 0
        part = self.parts[number]
        rows = rows - (int(self._ends[number]) - len(part))
        if len(rows) and bool((np.diff(rows) == 1).all()):
            return part.take(slice(int(rows[0]), int(rows[-1]) + 1))
        return part.take(rows)


def column_of(values: Array) -> Column:
    return Column(values.dtype, tuple(values.shape[1:]))


def rows_of(indices: Indices, length: int) -> Rows:
    """Checked row numbers; negative ones are refused, as an order never makes them."""
    if isinstance(indices, slice):
        return np.arange(*indices.indices(length), dtype=np.int64)
    rows: Rows = np.asarray(indices, np.int64).reshape(-1)
    if len(rows) and (rows.min() < 0 or rows.max() >= length):
        wrong = rows[(rows < 0) | (rows >= length)][0]
        raise IndexOutOfRange(f"record {wrong} of {length}")
    return rows


def columns_text(columns: Mapping[str, Column]) -> str:
    """Columns as a message shows them."""
    return ", ".join(
        f"{name}: {column.dtype} {' x '.join(map(str, column.shape)) or 'scalar'}"
        for name, column in columns.items()
    )
