"""ModuleModel: a module of PyTorch that predicts columns of a DataFrame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparknet.errors import FileError, SettingError, SparkError, extra
from sparknet.net.heads import Kind
from sparknet.net.model_folder import read_folder
from sparknet.predict.columns import Wanted, named
from sparknet.predict.evaluation import Evaluation, head_of
from sparknet.predict.files import fetched, written
from sparknet.predict.outputs import Best, Output
from sparknet.predict.prediction import Invalid, Prediction
from sparknet.predict.request import Ask, check_used, output_of
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.column_function import FunctionOfColumns
from sparknet.spark.column_types import check_types, column_names
from sparknet.spark.derived import Derived, with_derived
from sparknet.spark.evaluating import evaluated
from sparknet.spark.filesystem.broadcast import send_weights
from sparknet.spark.first_rows import Array, first_rows, record_sizes
from sparknet.spark.model_source import model_folder
from sparknet.spark.predict_task import ModelTask, SentModule
from sparknet.spark.transformed import frame_session, key_of, transformed
from sparknet.spark.worker_module import computed
from sparknet.training.modules.calling import arguments, chosen_inputs
from sparknet.training.modules.flat_module import FlatModule
from sparknet.training.modules.module_files import (
    MODULE,
    SavedModule,
    StrPath,
    beside,
    code_of,
    made_module,
    read_said,
    read_state,
    save_module,
)
from sparknet.training.modules.portable import ModuleParts, PortableModule, packed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Unpack

    from sparknet.predict.request import TransformOptions

_BATCH = 64
_LARGEST = 64 << 20
"""The limit of an Arrow batch of results in bytes."""


class ModuleModel(FunctionOfColumns):
    """Predicts with a module of PyTorch: ``ModuleModel(module)``, or what `Trainer.fit` returns.

    ``module`` may be a function that makes one, whose name then goes into files.  ``columns`` maps
    the arguments of the module's forward to the data's columns.  ``shapes`` says what a column of
    bytes or of flat lists holds, as in ``{"pixels": [None, 3, 32, 32]}``.  The module computes in
    its mode of evaluation; it is not changed.
    """

    def __init__(
        self,
        module: Any,
        *,
        columns: dict[str, str] | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        records: Mapping[str, Array] | None = None,
        kind: Kind | None = None,
    ) -> None:
        """``records`` are a few records by argument; else the data's first ones are looked at.

        ``kind`` is what the numbers of the first output are, for `evaluate`: scores of classes,
        logits of labels, or numbers.
        """
        self.module = made_module(module)
        self.made_by = code_of(module)
        self.columns = named(columns)
        self._sizes, self._records, self.kind = record_sizes(shapes), records, kind
        self.derived: Mapping[str, Derived] = {}
        """What else is made of the module's outputs, by the names that those have."""

    def transform(
        self,
        data: DataFrame,
        outputs: Sequence[str] | None = None,
        *,
        columns: dict[str, str] | None = None,
        prefix: str = "",
        best: str | None = None,
        batch: int | None = None,
        invalid: Invalid = "raise",
        reason: str | None = None,
        key: str | None = None,
        top: int | None = None,
        labels: Sequence[str] | None = None,
        vectors: bool = False,
    ) -> DataFrame:
        """The data with a column for each of the module's outputs, as `SparkModel.transform` does.

        A tensor is called output, those of a tuple output_0, output_1 and so on, those of a dict, a
        dataclass or a named tuple as there.  ``best`` names a column for the index of the largest
        value of the first.
        """
        session = frame_session(data)
        ask = Ask(
            outputs=outputs,
            columns=columns,
            prefix=prefix,
            best=best,
            batch=batch,
            invalid=invalid,
            reason=reason,
            key=key,
            top=top,
            labels=labels,
            vectors=vectors,
        )
        names = (self.columns | named(columns)).values()
        return transformed(data, names, partial(self.prediction, session, ask))

    def evaluate(
        self,
        data: DataFrame,
        label: str = "label",
        *,
        output: str | None = None,
        kind: Kind | None = None,
        columns: dict[str, str] | None = None,
        batch: int | None = None,
        invalid: Literal["raise", "drop"] = "raise",
    ) -> Evaluation:
        """How well an output, the first unless named, predicts a column, as `SparkModel.evaluate`.

        ``kind`` says what its numbers are: scores of classes, logits of labels, or numbers; unless
        given, what the loss that it was trained with takes them for, else classes if there are
        several for a record.
        """
        frame_session(data)
        ask = Ask(outputs=None if output is None else [output], columns=columns)
        mapping, records = self._given(ask, data)
        made = self.computed(records)
        name = _outputs(made, ask)[0].blob
        record = made[name].shape[1:]
        values = prod(record)
        head = head_of(name, kind or self.kind or ("classes" if values > 1 else "numbers"), record)
        return evaluated(self.transform, data, head, label, mapping, batch, invalid)

    def function(self, ask: Ask) -> tuple[list[Output], dict[str, str]]:
        mapping, records = self._given(ask, None)
        return _outputs(self.computed(records), ask), mapping

    def asked(
        self, outputs: Sequence[str] | None = None, **keywords: Unpack[TransformOptions]
    ) -> list[Output]:
        """The columns that `transform` adds; raises for arguments that fit no data."""
        ask = Ask(outputs=outputs, **keywords)
        return _outputs(self.computed(self._given(ask, None)[1]), ask)

    def prediction(
        self, session: SparkSession, ask: Ask, data: DataFrame | None = None
    ) -> ModelTask:
        """The task for a DataFrame, or for columns of any."""
        given = self.plan(ask, data)
        sent = PortableModule(
            packed(ModuleParts(self.module, None, None, None)),
            {name: name for name in given.mapping},
            (),
            1,
            "average",
            None,
            "cpu",
        )
        flat = flat_copy(sent, self.module)
        weights = send_weights(session, flat.weights)
        return ModelTask(given, SentModule(sent, weights, self.derived))

    def plan(self, ask: Ask, data: DataFrame | None = None) -> Prediction:
        """The same without the files that a task fetches."""
        mapping, records = self._given(ask, data)
        made = self.computed(records)
        found = _outputs(made, ask)
        batch = ask.batch or _BATCH
        record = 4 * sum(prod(made[one.blob].shape[1:]) for one in found)
        return Prediction(
            mapping=mapping,
            shapes={name: Wanted(one.shape[1:]) for name, one in records.items()},
            outputs=found,
            batch=batch,
            most=max(_LARGEST // max(record, 1) // batch, 1) * batch,
            invalid=ask.invalid,
            reason=ask.reason,
            key=key_of(ask, data),
        )

    def computed(self, records: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of a batch by name, and what is derived from them."""
        return with_derived(computed(self.module, records), self.derived)

    # -- files ---------------------------------------------------------------------------

    @property
    def records(self) -> Mapping[str, Array]:
        """A few records by argument."""
        if self._records is None:
            raise SettingError(
                "the model has no first rows to look at: make it by Trainer.fit, or give it "
                "records={'x': …}, a few by argument"
            )
        return self._records

    def saved(self) -> SavedModule:
        """What a file says of it."""
        return SavedModule.of(self.module, self.made_by, self.columns, self.records, self.kind)

    def save(self, path: StrPath) -> None:
        """Write a folder of the module's state dict, the columns and the name of what makes the
        module; a name that ends in .safetensors makes it a file, with a .sparknet.json beside it.
        `ModuleModel.load` and `sparknet.load` read both.

        ``path`` is any path that Spark can write.
        """
        save_module(self.module, self.saved(), path, written)

    @classmethod
    def load(cls, path: StrPath, module: Any = None, *, trusted: bool | None = None) -> ModuleModel:
        """The model that `save` wrote.

        ``module`` is a module like the saved one, or a function that makes one.  Unless it is
        given, the file's own class or function is called: one that this program has imported, or
        with ``trusted`` any that Python can import.
        """
        with model_folder(path) as folder:
            if folder is not None:
                return cls.of_folder(folder, os.fspath(path), module, bool(trusted))
        said = beside(path)
        with fetched(said) as file:
            saved = read_said(Path(file), said)
        with fetched(path) as file:
            return cls.read(Path(file), os.fspath(path), saved, module, bool(trusted))

    @classmethod
    def of_folder(cls, folder: Path, where: str, module: Any, trusted: bool) -> ModuleModel:
        """The model of a folder on this machine."""
        metadata = read_folder(folder)
        if "module" not in metadata:
            raise FileError(where, "is a net: read it by SparkModel or sparknet.load")
        saved = SavedModule.read(metadata["module"], where)
        return cls.read(folder / MODULE, where, saved, module, trusted)

    @classmethod
    def read(
        cls, file: Path, where: str, saved: SavedModule, module: Any, trusted: bool
    ) -> ModuleModel:
        """The model of a state dict, and of what is said of it."""
        with extra("torch", "torch", "a module of PyTorch"):
            made = saved.module(module, where, trusted)
        read_state(file, made)
        model = cls(made, columns=saved.columns, records=saved.records, kind=saved.kind)
        model.made_by = saved.made_by if module is None else code_of(module)
        return model

    def _given(
        self, ask: Ask, data: DataFrame | None
    ) -> tuple[dict[str, str], Mapping[str, Array]]:
        """The columns of the arguments, and a few records of them."""
        given, records = self.columns | named(ask.columns), self._records
        if data is None:
            records = self.records
            return {name: given.get(name, name) for name in records}, records
        given = column_names(data, given, chain(*arguments(self.module)))
        mapping = chosen_inputs(self.module, data.columns, (), given)
        check_types(data, mapping.values(), "the data")
        if records is None or records.keys() != mapping.keys():
            records = first_rows(data, mapping, self._sizes, "the data")
        return mapping, records

    def __repr__(self) -> str:
        return f"<ModuleModel '{type(self.module).__name__}'>"


def flat_copy(sent: PortableModule, module: Any) -> FlatModule:
    """A module's values as one flat buffer; the module itself stays as it is."""
    flat = FlatModule(sent.unpacked().module, learns=False)
    flat.module.load_state_dict(module.state_dict(), strict=False)
    flat.pull()
    return flat


def _outputs(made: Mapping[str, Array], ask: Ask) -> list[Output]:
    """The columns that are asked for."""
    count = next((one.shape[0] for one in made.values() if one.ndim), 0)
    whole = [name for name, one in made.items() if one.ndim and one.shape[0] == count]
    for name in ask.outputs or ():
        if name not in whole:
            raise SparkError(
                f"the module has no output '{name}': {whole}{did_you_mean(name, whole)}"
            )
    names, labels = list(ask.outputs or whole), ask.names()
    if not names:
        raise SettingError("the module's outputs are no tensors with a row for each record")
    found: list[Output] = [
        output_of(name, ask.prefix + name, 0, np.shape(made[name])[1:], ask, labels)
        for name in names
    ]
    check_used(found, ask)
    if ask.best is not None:
        found.append(Best(found[0].blob, ask.best))
    return found
