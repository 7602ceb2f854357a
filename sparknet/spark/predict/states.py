"""transform_with_states: predictions on streams by nets that carry a state for each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.predict.loaded import LoadedModel, load
from sparknet.predict.prediction import in_one_line
from sparknet.predict.request import Request
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.predict.table import check_types, quoted
from sparknet.spark.predict.transform import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE_SCHEMA = "version int, values array<float>"
"""The schema of each state of a key, which the checkpoint keeps."""


def transform_with_states(
    data: DataFrame,
    model: Any,
    key: str,
    states: Mapping[str, str],
    *,
    order: str | None = None,
    outputs: Sequence[str] | None = None,
    version: int = 1,
) -> DataFrame:
    """Return predictions of a stream, row after row of each key, with the key's state.

    ``states`` maps an input of the net to the blob that is its value for the key's next row, such
    as ``{"h_0": "h_T", "c_0": "c_T"}``; a key's first row gets zeros.  The net's other inputs are
    columns of the data.  ``order`` names the column by which the rows of a key are sorted in each
    batch of the stream.  The result has the key, the column of the order and the ``outputs``: by
    default the net's own, but for states.  ``model`` is what `sparknet.load` takes.

    Raise ``version`` when the states of a new net mean something else: states that the checkpoint
    has under another version, or of another length, start from zeros.  It needs PySpark 4.0 and
    the state store of RocksDB.
    """
    from pyspark.sql.types import StructField, StructType

    if not hasattr(data.groupBy(), "transformWithStateInPandas"):
        raise SparkError("states for each key need PySpark 4.0 or newer")
    if "RocksDB" not in str(data.sparkSession.conf.get(PROVIDER)):
        raise SparkError(
            "states for each key need the state store of RocksDB: "
            f"spark.conf.set('{PROVIDER}', '{ROCKSDB}')"
        )
    loaded = model if isinstance(model, LoadedModel) else load(model)
    predictor = loaded.model
    for name in states:
        if name not in predictor.inputs:
            near = did_you_mean(name, list(predictor.inputs))
            raise SparkError(f"states has '{name}', which is no input of the net{near}")
    own = predictor.outputs(Request(outputs=outputs))
    names = [one.blob for one in own if outputs is not None or one.blob not in states.values()]
    mapping = predictor.mapping(Request(outputs=[*names, *states.values()]))
    columns = {name: column for name, column in mapping.items() if name not in states}
    row_names = [key] if order is None else [key, order]
    for column in (*row_names, *columns.values()):
        if column not in data.columns:
            raise SparkError(
                f"the data has no column '{column}'{did_you_mean(column, data.columns)}"
            )
    check_types(data, columns.values(), "the stream")
    fields = [data.schema[column] for column in row_names]
    fields += [StructField(one.column, spark_type(one)) for one in own if one.blob in names]
    rows = data.select(*map(quoted, dict.fromkeys([*row_names, *columns.values()])))
    processor = KeyedStates(loaded, row_names, mapping, dict(states), names, version)
    return rows.groupBy(quoted(key)).transformWithStateInPandas(
        processor, StructType(fields), "append", "none"
    )


class KeyedStates:
    """What Spark calls for the rows of a key: a StatefulProcessor."""

    def __init__(
        self,
        model: LoadedModel,
        row_names: Sequence[str],
        mapping: Mapping[str, str],
        states: Mapping[str, str],
        outputs: Sequence[str],
        version: int,
    ) -> None:
        self._model, self._row_names, self._mapping = model, row_names, mapping
        self._states, self._outputs, self._version = states, outputs, version

    def init(self, handle: Any) -> None:
        """Declare the states, one for each of the net's."""
        self._stored = {name: handle.getValueState(name, STATE_SCHEMA) for name in self._states}

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Iterable[Any], timers: Any
    ) -> Iterator[Any]:
        """Yield the predictions of a key's rows, and store the states behind the last one."""
        import pandas as pd

        table = pd.concat(list(rows), ignore_index=True)
        table = table.sort_values(self._row_names[-1], kind="stable", ignore_index=True)
        values = {name: self._state(name) for name in self._states}
        blobs = list(dict.fromkeys([*self._outputs, *self._states.values()]))
        results: dict[str, list[Any]] = {name: [] for name in self._outputs}
        with in_one_line():
            for number in range(len(table)):
                for name in self._mapping.keys() - self._states.keys():
                    values[name] = self._record(name, table[self._mapping[name]].iat[number])
                row = {self._mapping[name]: array for name, array in values.items()}
                tops = self._model.predict(row, blobs)
                for name, state in self._states.items():
                    values[name] = np.asarray(tops[state], np.float32).reshape(values[name].shape)
                for name in self._outputs:
                    results[name].append(self._cell(tops[name][0]))
        for name, state in self._stored.items():
            state.update((self._version, values[name].ravel().tolist()))
        yield table[self._row_names].assign(**results)

    def close(self) -> None:
        """Do nothing, as nothing is open."""

    def _state(self, name: str) -> Any:
        """Return a key's state as the net takes it; zeros where there is none of this version."""
        record = self._shape(name)
        stored = self._stored[name].get() if self._stored[name].exists() else None
        if stored is None or stored[0] != self._version or len(stored[1]) != prod(record):
            return np.zeros((1, *record), np.float32)
        return np.asarray(stored[1], np.float32).reshape(1, *record)

    def _record(self, name: str, cell: Any) -> Any:
        """Return a cell as a batch of one record."""
        array = np.asarray(cell, np.float32)
        record = self._shape(name)
        return array.reshape(1, *(record if array.size == prod(record) else array.shape))

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(size or 1 for size in self._model.model.inputs[name].stored)

    @staticmethod
    def _cell(values: Any) -> Any:
        return values.ravel() if np.ndim(values) else values
