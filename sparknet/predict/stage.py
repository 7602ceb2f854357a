"""Stages of pyspark.ml that were saved: their models, and the columns that they add."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sparknet.errors import FileError, SparkError
from sparknet.net import Net
from sparknet.net.heads import Head, HeadBlobs, Kind, find_heads, served
from sparknet.net.model import Array
from sparknet.net.model_folder import load_net, save_net
from sparknet.predict.metrics import head_of
from sparknet.predict.module_predictor import ModulePredictor
from sparknet.predict.net_predictor import NetPredictor
from sparknet.predict.prediction import Invalid
from sparknet.predict.predictor import Predictor
from sparknet.predict.request import Request
from sparknet.proto.byte_source import read_file
from sparknet.proto.suggest import one_of
from sparknet.torch.modules.saved_module import MODULE, SavedModule, write_state
from sparknet.torch.modules.torch_model import Derived

Predict = Callable[[Any, Request], tuple[dict[str, Any], Any]]
"""Gives the columns of a request to a model, and the index of their rows."""

Made = Literal["vector", "number", "class", "classes", "labels"]
"""What becomes of a blob's numbers."""
ParamValue = Callable[[str], Any]
"""The value of a Param; None where it has none."""
INVALID: dict[str, Invalid] = {"error": "raise", "keep": "null", "skip": "drop"}
"""pyspark.ml's words for what becomes of bad rows, and those of `SparkModel.transform`."""


@dataclass(frozen=True)
class StageColumn:
    """A column of a prediction."""

    name: str
    made: Made
    blob: str


class StageColumns:
    """What a net predicts, and where it is found; ``model`` is a `Predictor`."""

    def __init__(self, model: Any, heads: Sequence[Head] | None = None) -> None:
        self.model = model
        self._heads = None if heads is None else list(heads)
        self._served: dict[tuple[str, ...], tuple[Any, dict[str, HeadBlobs]]] = {}

    @property
    def all_heads(self) -> list[Head]:
        """The net's own predictions."""
        if self._heads is None:
            self._heads = find_heads(self.model.net)
        return self._heads

    def heads(self, outputs: Sequence[str] | None) -> list[Head]:
        """Return the predictions: those of ``outputs``, or all of the net's."""
        if not outputs:
            return self.all_heads
        heads_by_blob = {head.blob: head for head in self.all_heads}
        there = self.model.net.tested.net.blobs
        unknown = [name for name in outputs if name not in heads_by_blob and name in there]
        heads_by_blob |= {head.blob: head for head in find_heads(self.model.net, unknown)}
        return [heads_by_blob[name] for name in outputs if name in heads_by_blob]

    def serving(self, heads: Sequence[Head]) -> tuple[Any, dict[str, HeadBlobs]]:
        """Return the model with what the predictions need, and where they are found."""
        key = tuple(head.blob for head in heads)
        if key not in self._served:
            net, model = self.model.net, self.model
            described, places = served(net.tested.described, heads)
            if len(described.layer) > len(net.tested.described.layer):
                model = copy(self.model)
                model.net = Net(
                    described,
                    net.get_weights(),
                    precision=net.precision,
                    preprocessing=net.preprocessing,
                )
            self._served[key] = model, places
        return self._served[key]

    def columns(self, value_of: ParamValue) -> Iterator[StageColumn]:
        """Yield the columns of the predictions; those of further ones end in their blobs' names."""
        heads = self.heads(value_of("outputs"))
        _, places = self.serving(heads)
        for number, head in enumerate(heads):
            place = places[head.blob]
            suffix = f"_{head.blob}" if number else ""
            if (name := value_of("rawPredictionCol")) and place.raw and head.kind != "numbers":
                yield StageColumn(name + suffix, "vector", place.raw)
            if (name := value_of("probabilityCol")) and place.probability:
                yield StageColumn(name + suffix, "vector", place.probability)
            if name := value_of("predictionCol"):
                blob = place.place or place.raw or head.blob
                yield StageColumn(name + suffix, _prediction(head), blob)

    def blobs(self, outputs: Sequence[str] | None) -> list[str]:
        """Return the blobs that become columns."""
        if outputs is None:
            return [output.blob for output in self.model.outputs(Request())]
        return list(outputs)

    def inputs(
        self, value_of: ParamValue, is_set: Callable[[str], bool], training: bool = False
    ) -> dict[str, str]:
        """Return the net's input → column, as Params say; of the net for training, or the other
        one.
        """
        net = self.model.net
        entries = [*net.inputs] if training else [entry.name for entry in net.tested.entries]
        labels = {name for name, entry in net.inputs.items() if entry.is_label}
        heads = self.heads(value_of("outputs"))
        targets = [head.target for head in heads if head.target in entries]
        targets += [name for name in entries if name in labels and name not in targets]
        features = [name for name in entries if name not in targets]
        columns = {**self.model.columns, **(value_of("columns") or {})}
        for inputs, name in ((features, "featuresCol"), (targets, "labelCol")):
            column = value_of(name)
            if inputs and column and (is_set(name) or inputs[0] not in columns):
                columns[inputs[0]] = column
        return columns if training else {name: columns[name] for name in columns if name in entries}


def _prediction(head: Head) -> Made:
    """Return how a head's numbers become the predicted class, labels, number or numbers."""
    if head.kind == "numbers":
        return "number" if head.is_single else "vector"
    if head.is_single:
        return "class"
    return "labels" if head.kind == "labels" else "classes"


# -- modules --------------------------------------------------------------------------------


def stage_columns(model: Predictor, heads: Sequence[Head] | None = None) -> StageColumns:
    """Return what a net or a module predicts, and where it is found."""
    kind = ModuleColumns if isinstance(model, ModulePredictor) else StageColumns
    return kind(model, heads)


class ModuleColumns(StageColumns):
    """A module's first output is its prediction, unless `outputs` names others."""

    model: Any

    @property
    def all_heads(self) -> list[Head]:
        if self._heads is None:
            first = self.model.outputs(Request())[0].blob
            self._heads = [self._head(first, self.model.model.kind)]
        return self._heads

    def heads(self, outputs: Sequence[str] | None) -> list[Head]:
        if not outputs:
            return self.all_heads
        heads_by_blob = {head.blob: head for head in self.all_heads}
        return [heads_by_blob.get(name) or self._head(name, None) for name in outputs]

    def serving(self, heads: Sequence[Head]) -> tuple[Any, dict[str, HeadBlobs]]:
        key = tuple(head.blob for head in heads)
        if key not in self._served:
            model, places = copy(self.model), dict[str, HeadBlobs]()
            model.model = copy(self.model.model)
            model.model.derived = derived = dict[str, Derived]()
            for head in heads:
                places[head.blob] = _derive(head, derived)
            self._served[key] = model, places
        return self._served[key]

    def inputs(
        self, value_of: ParamValue, is_set: Callable[[str], bool], training: bool = False
    ) -> dict[str, str]:
        columns = {**self.model.columns, **(value_of("columns") or {})}
        first, column = next(iter(self.model.records)), value_of("featuresCol")
        if column and (is_set("featuresCol") or first not in columns):
            columns[first] = column
        return columns

    def _head(self, name: str, kind: Kind | None) -> Head:
        outputs = self.model.model.computed(self.model.records)
        if name not in outputs:
            raise SparkError(f"the module has no output '{name}'{one_of(name, list(outputs))}")
        record = outputs[name].shape[1:]
        kind_of_head = kind or ("classes" if prod(record) > 1 else "numbers")
        head = head_of(name, kind_of_head, record)
        # What no loss says to be logits has no probabilities.
        squashes: Any = {"classes": "softmax", "labels": "sigmoid"}
        return replace(head, scores=name, squashed_by=squashes.get(kind))


def _derive(head: Head, derived: dict[str, Derived]) -> HeadBlobs:
    """Return what is made of an output, and where it is found."""
    raw, blob = head.blob, head.blob

    def derive(what: str, *steps: Any) -> str:
        derived[f"{blob}/{what}"] = Derived(blob, steps)
        return f"{blob}/{what}"

    if head.kind == "labels" and head.is_single:
        raw = derive("scores", "pair")
        return HeadBlobs(raw, derive("probabilities", "pair", "sigmoid"), None)
    probability = None if head.squashed_by is None else derive("probabilities", head.squashed_by)
    is_placed = head.kind == "classes" and not head.is_single
    return HeadBlobs(raw, probability, derive("classes", "argmax") if is_placed else None)


# -- files --------------------------------------------------------------------------------


_LARGEST = 1 << 28


def stage_metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of a stage on this machine."""
    parts = sorted((folder / "metadata").glob("part-*"))
    try:
        if sum(part.stat().st_size for part in parts) > _LARGEST:
            raise FileError(folder, "is no saved stage: its metadata are too large")
        text = "".join(read_file(part, _LARGEST).decode("utf-8") for part in parts)
        metadata = json.loads(text) if text else None
    except (OSError, ValueError, RecursionError, FileError) as error:
        raise FileError(folder, f"is no saved stage: {error}") from error
    if not isinstance(metadata, dict):
        raise FileError(
            folder, "is no saved stage: it has no metadata, and no model.json as a saved model has"
        )
    return metadata


def save_parts(model: Predictor, folder: Path) -> dict[str, Any]:
    """Write the files of a stage's model; returns what they do not hold."""
    if isinstance(model, ModulePredictor):
        saved = model.saved()
        if saved.made_by is None:
            raise SparkError(
                f"nothing names what makes module '{saved.name}' as it is, and a saved stage is "
                "loaded by that name: give module= a class without arguments, a function or a "
                "functools.partial of one, from a file that Python can import"
            )
        write_state(folder / MODULE, model.module)
        return {"module": saved.to_dict()}
    assert isinstance(model, NetPredictor)
    return {**save_net(model.net, folder), "inputs": model.columns}


def load_parts(folder: Path, metadata: Mapping[str, Any], trusted: bool) -> Predictor:
    """Return the model that `save_parts` wrote."""
    if "module" in metadata:
        saved = SavedModule.read(metadata["module"], folder)
        return ModulePredictor.read(folder / MODULE, str(folder), saved, None, trusted)
    return NetPredictor(load_net(folder, metadata, trusted), metadata["inputs"])


# -- columns without Spark ------------------------------------------------------------------


class SavedColumns(ABC):
    """The columns that a saved stage adds."""

    def __init__(self, model: Any, metadata: Mapping[str, Any]) -> None:
        self.model = model
        self._set: dict[str, Any] = dict(metadata["paramMap"])
        self._given = {**metadata["defaultParamMap"], **self._set}
        self._invalid = INVALID[self.value_of("handleInvalid") or "error"]

    def value_of(self, name: str) -> Any:
        """Return the value of a Param; None where it has none."""
        return self._given.get(name)

    @abstractmethod
    def inputs(self, model: Any) -> dict[str, str]:
        """Return the net's inputs → the rows' columns."""

    @abstractmethod
    def columns(self, predict: Predict) -> tuple[dict[str, Any], Any]:
        """Return the columns, and the index of their rows."""


class _NetModel(SavedColumns):
    def __init__(self, model: Any, metadata: Mapping[str, Any]) -> None:
        super().__init__(model, metadata)
        self._columns = stage_columns(model, [Head.of(head) for head in metadata["heads"]])

    def inputs(self, model: Any) -> dict[str, str]:
        return self._columns.inputs(self.value_of, self._set.__contains__)

    def columns(self, predict: Predict) -> tuple[dict[str, Any], Any]:
        blobs = self._columns.blobs(self.value_of("outputs"))
        model, _ = self._columns.serving(self._columns.heads(self.value_of("outputs")))
        stage_columns_of_model = list(self._columns.columns(self.value_of))
        needed = list(dict.fromkeys([*blobs, *(column.blob for column in stage_columns_of_model)]))
        request = Request(
            outputs=needed,
            columns=self.inputs(model),
            batch=self.value_of("batch"),
            invalid=self._invalid,
        )
        blobs_of_rows, index = predict(model, request)
        prefix = self.value_of("prefix") or ""
        columns = {prefix + blob: blobs_of_rows[blob] for blob in blobs}
        for one in stage_columns_of_model:
            if one.name in columns:
                raise SparkError(f"the stage makes two columns '{one.name}': give another name")
            columns[one.name] = _column_of(one, blobs_of_rows[one.blob])
        return columns, index


class _NetFeaturizer(SavedColumns):
    def inputs(self, model: Any) -> dict[str, str]:
        columns: dict[str, str] = self.value_of("columns") or {}
        if column := self.value_of("inputCol"):
            columns = {model.net.tested.entries[0].name: column, **columns}
        return columns

    def columns(self, predict: Predict) -> tuple[dict[str, Any], Any]:
        output, model = self.value_of("output"), self.model
        columns = self.inputs(model)
        names = None if output is None else [output]
        blob = model.outputs(Request(outputs=names, columns=columns))[0].blob
        request = Request(
            outputs=[blob], columns=columns, batch=self.value_of("batch"), invalid=self._invalid
        )
        blobs, index = predict(model, request)
        return {self.value_of("outputCol"): _flat(blobs[blob])}, index


STAGES: dict[str, Callable[[Any, Mapping[str, Any]], SavedColumns]] = {
    "NetModel": _NetModel,
    "NetFeaturizer": _NetFeaturizer,
}


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1) if len(values) else values.reshape(0, 0)


def _column_of(column: StageColumn, values: Array) -> Any:
    """Return what pyspark.ml's column holds, of a blob's numbers."""
    rows = _flat(values)
    if column.made == "number":
        return rows[:, 0].astype(np.float64)
    if column.made == "class":
        places = rows.argmax(1).astype(np.float64) if rows.size else np.zeros(len(rows))
        places[np.isnan(rows).any(1)] = np.nan
        return places
    if column.made == "labels":
        return [np.flatnonzero(row > 0).astype(np.float64) for row in rows]
    return rows.astype(np.float64)
