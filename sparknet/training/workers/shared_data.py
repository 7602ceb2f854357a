"""Shares records between the worker processes of a machine, as files that they map."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import DataError, SettingError
from sparknet.loaders.blocks import Blocks, write_blocks
from sparknet.loaders.opening import open_images
from sparknet.loaders.parquet import is_table, read_table
from sparknet.loaders.records import (
    ArrayRecords,
    ClassesWarning,
    Records,
    match_classes,
    with_classes,
)
from sparknet.net import Net
from sparknet.net.entries import Entry, UnknownShape
from sparknet.net.feed import check_numbers
from sparknet.net.rows import for_inputs, frame_columns, is_frame
from sparknet.net.scratch import PRIVATE_FILE, private
from sparknet.net.weighting import label_input
from sparknet.proto.suggest import did_you_mean

BLOCKS = ".blocks"
LARGEST_PICKLE = 1 << 20
"""Readers of files up to this size are pickled; they open their files again."""


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table are a record of a net's input, and which is the label."""

    features: Sequence[str]
    label: str | None

    @classmethod
    def of(cls, settings: Any) -> TableColumns | None:
        """Return the table that settings describe, if they do."""
        features, label = getattr(settings, "features", None), getattr(settings, "label", None)
        if features is None and label is not None:
            raise SettingError(f"label='{label}' needs features, the other columns of the table")
        return None if features is None else cls(tuple(features), label)

    def records(
        self, data: Any, net: Net, what: str, more: str | None
    ) -> tuple[ArrayRecords, tuple[str, ...]]:
        """Return arrays for the net's inputs, and the names of the classes from then on."""
        learns, labels = what == "training data", net.labels
        source, target = self.inputs(net)
        columns = self._columns(data, what, more)
        for name in self.features:
            check_numbers(name, columns[name])
            _check_gaps(name, columns[name], what)
        arrays = {source: np.stack([columns[one] for one in self.features], 1).astype("f4")}
        if self.label is not None and target is not None:
            values = columns[self.label]
            gaps = [row for row, one in enumerate(values) if one is None or one != one]
            if gaps:
                raise DataError(
                    f"column '{self.label}' of the {what} has no label in row {gaps[0]}"
                )
            if values.dtype.kind in "OUS":
                names, values = np.unique(values.astype(str), return_inverse=True)
                numbers, labels = match_classes(names.tolist(), labels, what, learns)
                values = values if numbers is None else np.array(numbers)[values]
            arrays[target] = values
        return ArrayRecords(**arrays, **({} if more is None else {more: columns[more]})), labels

    def inputs(self, net: Net) -> tuple[str, str | None]:
        """Return the inputs of records and labels; the net keeps the names of the columns."""
        target = label_input(net)
        inputs = [name for name in _names(net) if name != target]
        if len(inputs) != 1 or (self.label is not None and target is None):
            raise SettingError(
                f"features is for a net with one input and a label, and its inputs are "
                f"{', '.join(_names(net))}"
            )
        net.features = {inputs[0]: tuple(self.features)}
        return inputs[0], target

    def _columns(self, data: Any, what: str, more: str | None) -> Mapping[str, Any]:
        names = [name for name in (*self.features, self.label, more) if name is not None]
        if is_table(data):
            return read_table(data, names)
        data = open_images(data, None) if _are_paths(data) else data
        columns = data if isinstance(data, Mapping) else getattr(data, "columns", None)
        if columns is None:
            raise SettingError(f"features names columns of a table, and the {what} is none")
        for name in names:
            if name not in columns:
                near = did_you_mean(name, [str(one) for one in columns])
                raise DataError(f"the {what} has no column '{name}'{near}")
        if isinstance(data, Records) and not is_frame(data):
            data = data.take(slice(0, len(data)))
        return {name: np.asarray(data[name]) for name in names}


def _check_gaps(name: str, values: Any, what: str) -> None:
    odd = np.flatnonzero(~np.isfinite(values)) if values.dtype.kind == "f" else values[:0]
    if len(odd):
        raise DataError(
            f"column '{name}' of the {what} is {values[odd[0]]} in row {odd[0]}: fill the gaps, as "
            "by frame.fillna, or leave out such rows"
        )


def open_data(
    data: Any, net: Net, table: TableColumns | None, what: str, more: str | None = None
) -> tuple[Any, tuple[str, ...]]:
    """Return data as records, with its classes numbered as the net's, and the classes' names."""
    if table is not None:
        return table.records(data, net, what, more)
    return with_classes(as_records(data, net, more), net.labels, what, what == "training data")


def as_records(
    data: Any, net: Net, more: str | None = None
) -> Records | Iterable[Mapping[str, Any]]:
    """Return a user's data as records: from Records, a path, arrays by name or in order, or
    batches.

    ``more`` is a column that is read beside those of the net.
    """
    if _are_paths(data):
        data = open_images(data, net.preprocessing)
    if is_frame(data):
        there = [str(name) for name in data.columns]
        if len(there) > 2 and not {*_names(net)} <= {*there}:
            inputs, columns = ", ".join(_names(net)), ", ".join(there)
            raise DataError(
                f"the table has the columns {columns}, and the net takes {inputs}: name the "
                "columns of a record by features=[…], and that of the labels by label="
            )
        net.check_columns(there)
        return ArrayRecords(**frame_columns(data, [*_names(net), more]))
    if isinstance(data, Records):
        return for_inputs(data, _entries(net), net.places)
    return records_of(data, lambda: _names(net), "the net's inputs")


def _entries(net: Net) -> list[Entry]:
    """Return the net's inputs; none while their shapes are not known."""
    with suppress(UnknownShape):
        return list(net.inputs.values())
    return []


def _names(net: Net) -> list[str]:
    return [entry.name for entry in _entries(net)] or net.places


def records_of(
    data: Any, order: Callable[[], Sequence[str]], what: str
) -> Records | Iterable[Mapping[str, Any]]:
    """Return the same for what takes columns of these names in this order, which messages call
    ``what``.

    Only a tuple is asked for them: data may decide what a net's inputs are.
    """
    if _are_paths(data):
        data = open_images(data, None)
    if isinstance(data, Records):
        return data
    if hasattr(data, "mapInArrow"):
        raise SettingError("this is a DataFrame of Spark: sparknet.spark.Trainer trains on it")
    if isinstance(data, Mapping):
        return ArrayRecords(**data)
    if isinstance(data, tuple):
        names = order()
        if len(data) != len(names):
            inputs = ", ".join(f"'{name}'" for name in names)
            raise DataError(f"the data is a tuple of {len(data)}, {what} are {inputs}")
        return ArrayRecords(**dict(zip(names, data, strict=True)))
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, np.ndarray)):
        return map(_batch, data)
    raise SettingError(
        f"this {type(data).__name__} is not data: give records, batches, a dict of arrays, or a "
        f"tuple of arrays for {what}"
    )


def _are_paths(data: Any) -> bool:
    """Return whether this is the path of a data set, or a list of such paths."""
    paths = data if isinstance(data, (list, tuple)) and data else [data]
    return all(isinstance(one, (str, os.PathLike)) for one in paths)


def _batch(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        for name, values in given.items():
            if not np.ndim(values):
                raise DataError(
                    f"column '{name}' of a batch is one number: give batches of several records, "
                    "or whole columns"
                )
        return given
    raise DataError(
        f"a batch is a {type(given).__name__}: give whole columns, or batches as dicts of arrays"
    )


def write_shared(records: Records | Iterable[Mapping[str, Any]], path: Path) -> str:
    """Write a file from which every process reads the records: blocks, or a pickled reader."""
    if type(records) is ArrayRecords:
        for name, values in records.arrays.items():
            check_numbers(name, values)
    reader = _pickled(records)
    if reader is None:
        path = path.with_suffix(BLOCKS)
        write_blocks(path, records, mode=PRIVATE_FILE)
    else:
        with open(path, "wb", opener=private) as file:
            file.write(reader)
    return str(path)


def open_shared(path: str) -> Records:
    """Open a file of `write_shared`."""
    if path.endswith(BLOCKS):
        return Blocks(path)
    with warnings.catch_warnings():  # who shared them has heard
        warnings.simplefilter("ignore", ClassesWarning)
        records: Records = pickle.loads(Path(path).read_bytes())
    return records


def _pickled(records: Any) -> bytes | None:
    if not isinstance(records, Records) or type(records) is ArrayRecords:
        return None
    try:
        data = pickle.dumps(records)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return data if len(data) <= LARGEST_PICKLE else None
