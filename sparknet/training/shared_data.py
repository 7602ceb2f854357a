"""Shares records between the worker processes of a machine, as files that they map."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import DataError, SettingError
from sparknet.loaders.blocks import Blocks, write_blocks
from sparknet.loaders.opening import open_images
from sparknet.loaders.records import ArrayRecords, ClassesWarning, Records
from sparknet.net import Net
from sparknet.net.entries import Entry, UnknownShape
from sparknet.net.feed import check_numbers
from sparknet.net.rows import for_inputs, frame_columns, is_frame
from sparknet.net.scratch import PRIVATE_FILE, private

BLOCKS = ".blocks"
LARGEST_PICKLE = 1 << 20
"""Readers of files up to this size are pickled; they open their files again."""


def as_records(
    data: Any, net: Net, more: str | None = None
) -> Records | Iterable[Mapping[str, Any]]:
    """A user's data as records: from Records, a path, arrays by name or in order, or batches.

    ``more`` is a column that is read beside those of the net.
    """
    if _are_paths(data):
        data = open_images(data, net.preprocessing)
    if is_frame(data):
        net.check_columns([str(name) for name in data.columns])
        return ArrayRecords(**frame_columns(data, [*_names(net), more]))
    if isinstance(data, Records):
        return for_inputs(data, _entries(net), net.places)
    return records_of(data, lambda: _names(net), "the net's inputs")


def _entries(net: Net) -> list[Entry]:
    """The net's inputs; none while their shapes are not known."""
    with suppress(UnknownShape):
        return list(net.inputs.values())
    return []


def _names(net: Net) -> list[str]:
    return [entry.name for entry in _entries(net)] or net.places


def records_of(
    data: Any, order: Callable[[], Sequence[str]], what: str
) -> Records | Iterable[Mapping[str, Any]]:
    """The same for what takes columns of these names in this order, which messages call ``what``.

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
            wanted = ", ".join(f"'{name}'" for name in names)
            raise DataError(f"the data is a tuple of {len(data)}, {what} are {wanted}")
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
