"""A row that a model takes, for MLflow's signatures and for those who look at a served model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.graph.plots import png
from sparknet.spark.module_model import ModuleModel

if TYPE_CHECKING:
    import pandas as pd

    from sparknet.net import Entry
    from sparknet.spark.loaded import LoadedModel


def example_of(loaded: LoadedModel) -> pd.DataFrame:
    """A data frame of one row, with a column for each of the model's inputs."""
    import pandas as pd

    mapping = loaded.mapping()
    if isinstance(loaded.model, ModuleModel):
        records = loaded.model.records
        return pd.DataFrame({column: [_row(records[name])] for name, column in mapping.items()})
    entries = {entry.name: entry for entry in loaded.model.net.tested.entries}
    texts = loaded.model.tokens is not None
    return pd.DataFrame(
        {column: [_value(entries[name], texts)] for name, column in mapping.items()}
    )


def _row(records: Any) -> Any:
    """Of a module's argument."""
    zero = np.zeros_like(records[0])
    return zero if zero.ndim else zero.item()


def _value(entry: Entry, texts: bool) -> Any:
    if texts:
        return "a text"
    if entry.pictures is not None:
        sides = zip(entry.stored[-2:], entry.record[-2:], strict=True)
        height, width = (stored or seen for stored, seen in sides)
        return png(np.zeros((height, width, 3), np.uint8))  # a black one
    if not entry.record:
        return 0.0
    return np.zeros(entry.record)
