"""ModulePredictor: a module of PyTorch that predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import DataError, SettingError, SparkError, extra
from sparknet.net.heads import Head, Kind
from sparknet.net.model import Array
from sparknet.net.model_inputs import ModelInputs
from sparknet.predict.input_columns import InputSpec, column_map
from sparknet.predict.metrics import head_of
from sparknet.predict.output_columns import Best, Output
from sparknet.predict.prediction import Prediction
from sparknet.predict.predictor import Predictor, Sizes, TableSchema
from sparknet.predict.request import Request, check_used, output_of
from sparknet.proto.byte_source import StrPath
from sparknet.proto.suggest import did_you_mean
from sparknet.torch.modules.calling import arguments, chosen_inputs
from sparknet.torch.modules.saved_module import (
    SavedModule,
    code_of,
    made_module,
    read_state,
)
from sparknet.torch.modules.torch_model import PortableTorch, TorchModel

_BATCH = 64
_LARGEST = 64 << 20
"""The limit of an Arrow batch of results in bytes."""
_FEW = 2


class ModulePredictor(Predictor):
    """A module in its mode of evaluation, with the columns of its arguments."""

    model: TorchModel

    def __init__(
        self,
        module: Any,
        columns: dict[str, str] | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        records: Mapping[str, Array] | None = None,
        kind: Kind | None = None,
    ) -> None:
        self.model = TorchModel(made_module(module))
        self.model.made_by, self.model.records, self.model.kind = code_of(module), records, kind
        self.columns, self._sizes = column_map(columns), record_sizes(shapes)

    @property
    def module(self) -> Any:
        """The module of PyTorch."""
        return self.model.module

    @property
    def name(self) -> str:
        return type(self.module).__name__

    @property
    def input_names(self) -> list[str]:
        return [*chain(*arguments(self.module))]

    @property
    def records(self) -> Mapping[str, Array]:
        """A few records by argument."""
        return self.model.first_records

    def outputs(self, request: Request, table: TableSchema | None = None) -> list[Output]:
        return _outputs(self.model.computed(self._inputs(request, table)[1]), request)

    def mapping(self, request: Request, table: TableSchema | None = None) -> dict[str, str]:
        return self._inputs(request, table)[0]

    def plan(self, request: Request, table: TableSchema | None = None) -> Prediction:
        mapping, records = self._inputs(request, table)
        tops = self.model.computed(records)
        outputs = _outputs(tops, request)
        batch = request.batch or _BATCH
        record = 4 * sum(prod(tops[one.blob].shape[1:]) for one in outputs)
        return Prediction(
            mapping=mapping,
            shapes={name: InputSpec(one.shape[1:]) for name, one in records.items()},
            outputs=outputs,
            batch=batch,
            most=max(_LARGEST // max(record, 1) // batch, 1) * batch,
            invalid=request.invalid,
            reason=request.reason,
            key=None if table is None else table.key(request),
        )

    def record_shapes(self, outputs: Sequence[Output]) -> dict[str, Sizes]:
        tops = self.model.computed(self.records)
        return {name: one.shape[1:] for name, one in tops.items() if one.ndim}

    def heads(
        self, request: Request, table: TableSchema | None = None, kind: Kind | None = None
    ) -> list[Head]:
        tops = self.model.computed(self._inputs(request, table)[1])
        name = _outputs(tops, request)[0].blob
        record = tops[name].shape[1:]
        several: Kind = "classes" if prod(record) > 1 else "numbers"
        return [head_of(name, kind or self.model.kind or several, record)]

    def portable(self) -> PortableTorch:
        return PortableTorch.of(self.model)

    def saved(self) -> SavedModule:
        """Return what a file says of the module."""
        return self.model.description(self.columns)

    def save(self, path: StrPath) -> None:
        self.model.save(path, ModelInputs(self.columns))

    @classmethod
    def read(
        cls, file: Path, where: str, saved: SavedModule, module: Any, trusted: bool
    ) -> ModulePredictor:
        """Return the model of a state dict, and of what is said of it."""
        with extra("torch", "torch", "a module of PyTorch"):
            module_read = saved.module(module, where, trusted)
        read_state(file, module_read)
        model = cls(module_read, columns=saved.columns, records=saved.records, kind=saved.kind)
        model.model.made_by = saved.made_by if module is None else code_of(module)
        return model

    def _inputs(
        self, request: Request, table: TableSchema | None
    ) -> tuple[dict[str, str], Mapping[str, Array]]:
        """Return the columns of the arguments, and a few records of them."""
        columns, records = self.columns | column_map(request.columns), self.model.records
        if table is None:
            records = self.records
            return {name: columns.get(name, name) for name in records}, records
        columns = table.names(columns, chain(*arguments(self.module)))
        mapping = chosen_inputs(self.module, table.columns, (), columns)
        table.check(mapping.values())
        if records is None or records.keys() != mapping.keys():
            records = table.first_rows(mapping, self._sizes)
        return mapping, records


def _outputs(made: Mapping[str, Array], request: Request) -> list[Output]:
    """Return the columns that are asked for."""
    count = next((one.shape[0] for one in made.values() if one.ndim), 0)
    whole = [name for name, one in made.items() if one.ndim and one.shape[0] == count]
    for name in request.outputs or ():
        if name not in whole:
            raise SparkError(
                f"the module has no output '{name}': {whole}{did_you_mean(name, whole)}"
            )
    names, labels = list(request.outputs or whole), request.names()
    if not names:
        raise SettingError("the module's outputs are no tensors with a row for each record")
    columns: list[Output] = [
        output_of(name, request.prefix + name, 0, np.shape(made[name])[1:], request, labels)
        for name in names
    ]
    check_used(columns, request)
    if request.best is not None:
        columns.append(Best(columns[0].blob, request.best))
    return columns


# -- records that say what a module is given ---------------------------------------------------


def record_sizes(shapes: Mapping[str, Sequence[int | None]] | None) -> dict[str, Sizes]:
    """Return the shapes of records, of shapes that begin with the records' axis."""
    sizes_of_arguments = {}
    for name, shape in (shapes or {}).items():
        sizes = tuple(shape)
        if len(sizes) < 2 or any(type(size) is not int or size < 1 for size in sizes[1:]):
            raise SparkError(
                f"shapes['{name}'] is {list(sizes)!r}: the axis of the records and then the sizes "
                "of one are needed, as in [None, 3, 32, 32]"
            )
        sizes_of_arguments[name] = tuple(int(size or 0) for size in sizes[1:])
    return sizes_of_arguments


def records_of(
    rows: Sequence[Any], mapping: Mapping[str, str], sizes: Mapping[str, Sizes], what: str
) -> dict[str, Array]:
    """Return a few records by argument of rows of their columns."""
    for name in sizes:
        if name not in mapping:
            raise SparkError(
                f"shapes name '{name}', which the module is not given: it is given "
                + ", ".join(f"'{one}'" for one in mapping)
            )
    if not rows:
        raise DataError(f"{what} has no records")
    whole = [row for row in rows if all(value is not None for value in row)] or rows[:1]
    whole = (list(whole) * _FEW)[:_FEW]
    places = {column: number for number, column in enumerate(dict.fromkeys(mapping.values()))}
    return {
        name: np.stack(
            [_array(row[places[column]], name, column, sizes.get(name)) for row in whole]
        )
        for name, column in mapping.items()
    }


def _array(value: Any, name: str, column: str, sizes: Sizes | None) -> Array:
    if value is None:
        raise SparkError(f"column '{column}' is null: fill such rows, or filter them out")
    if isinstance(value, (bytes, bytearray)):
        if sizes is None:
            raise SparkError(
                f"column '{column}' holds bytes: say what they are with "
                f"shapes={{'{name}': [None, 3, 32, 32]}}, say"
            )
        return np.zeros(sizes, np.uint8)
    if hasattr(value, "nChannels"):
        return np.zeros(sizes or (value.nChannels, value.height, value.width), np.uint8)
    if hasattr(value, "toArray"):
        value = value.toArray()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise SparkError(f"column '{column}' has rows of lists of several lengths") from error
    if array.dtype.kind not in "fiub":
        array = array.astype(np.float64)  # decimals
    if sizes is None:
        return array
    if array.size != int(np.prod(sizes)):
        raise SparkError(
            f"column '{column}' has {array.size} values per row, but '{name}' takes {sizes}"
        )
    return array.reshape(sizes)
