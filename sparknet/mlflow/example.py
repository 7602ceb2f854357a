"""A row that a model takes, for MLflow's signatures and for those who look at a served model."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from sparknet.net import Entry
    from sparknet.spark.loaded import LoadedModel


def example_of(loaded: LoadedModel) -> pd.DataFrame:
    """A data frame of one row, with a column for each of the model's inputs."""
    import pandas as pd

    mapping = loaded.mapping()
    entries = {entry.name: entry for entry in loaded.model.net.tested.entries}
    texts = loaded.model.tokens is not None
    return pd.DataFrame(
        {column: [_value(entries[name], texts)] for name, column in mapping.items()}
    )


def _value(entry: Entry, texts: bool) -> Any:
    if texts:
        return "a text"
    if entry.pictures is not None:
        sides = zip(entry.stored[-2:], entry.record[-2:], strict=True)
        return _png(*(stored or seen for stored, seen in sides))
    if not entry.record:
        return 0.0
    return np.zeros(entry.record)


def _png(height: int, width: int) -> bytes:
    """A black picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(height * (1 + 3 * width)))
    parts = chunk(b"IHDR", head), chunk(b"IDAT", rows), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
