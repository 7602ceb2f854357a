"""Tables: columns of a CSV or Parquet file by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, extra
from sparknet.proto.byte_source import open_file
from sparknet.proto.suggest import did_you_mean

SUFFIXES = (".csv", ".parquet")


def is_table(data: object) -> bool:
    """Return whether data is the path of a CSV or Parquet file, or a list of one."""
    if isinstance(data, (list, tuple)) and len(data) == 1:
        return is_table(data[0])
    return isinstance(data, (str, os.PathLike)) and Path(data).suffix.lower() in SUFFIXES


def read_table(data: Any, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Return these columns of a table, whole; nulls are NaN or None."""
    path = Path(data[0] if isinstance(data, (list, tuple)) else data)
    with extra("pyarrow", "parquet", "reading a table"):
        import pyarrow as pa
        from pyarrow import csv, parquet

    with open_file(path) as file:
        try:
            if path.suffix.lower() == ".csv":
                table = csv.read_csv(file)
                columns = table.column_names
            else:
                reader = parquet.ParquetFile(file)
                table, columns = reader.read(columns=list(names)), reader.schema_arrow.names
        except (pa.ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise FileError(path, f"is no table that can be read: {reason}") from error
    for name in names:
        if name not in columns:
            raise FileError(path, f"has no column '{name}'{did_you_mean(name, columns)}")
    return {name: table.column(name).to_numpy() for name in names}
