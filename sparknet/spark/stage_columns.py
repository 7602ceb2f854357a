"""The columns that a `NetModel` adds, whoever computes them: pyspark.ml's, or a loaded model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

from sparknet.net import Net
from sparknet.net.heads import Head, HeadBlobs, find_heads, served
from sparknet.predict.prediction import Invalid
from sparknet.spark.model import SparkModel

Made = Literal["vector", "number", "class", "classes", "labels"]
"""What becomes of a blob's numbers."""
Given = Callable[[str], Any]
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
    """What a net predicts, and where it is found."""

    def __init__(self, model: SparkModel, heads: Sequence[Head] | None = None) -> None:
        self.model = model
        self._heads = None if heads is None else list(heads)
        self._served: dict[tuple[str, ...], tuple[SparkModel, dict[str, HeadBlobs]]] = {}

    @property
    def all_heads(self) -> list[Head]:
        """The net's own predictions."""
        if self._heads is None:
            self._heads = find_heads(self.model.net)
        return self._heads

    def heads(self, outputs: Sequence[str] | None) -> list[Head]:
        """The predictions: those of ``outputs``, or all of the net's."""
        if not outputs:
            return self.all_heads
        known = {head.blob: head for head in self.all_heads}
        there = self.model.net.tested.net.blobs
        unknown = [name for name in outputs if name not in known and name in there]
        known |= {head.blob: head for head in find_heads(self.model.net, unknown)}
        return [known[name] for name in outputs if name in known]

    def serving(self, heads: Sequence[Head]) -> tuple[SparkModel, dict[str, HeadBlobs]]:
        """The model with what the predictions need, and where they are found."""
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

    def columns(self, given: Given) -> Iterator[StageColumn]:
        """The columns of the predictions; those of further ones end in their blobs' names."""
        heads = self.heads(given("outputs"))
        _, places = self.serving(heads)
        for number, head in enumerate(heads):
            found = places[head.blob]
            suffix = f"_{head.blob}" if number else ""
            if (name := given("rawPredictionCol")) and found.raw and head.kind != "numbers":
                yield StageColumn(name + suffix, "vector", found.raw)
            if (name := given("probabilityCol")) and found.probability:
                yield StageColumn(name + suffix, "vector", found.probability)
            if name := given("predictionCol"):
                blob = found.place or found.raw or head.blob
                yield StageColumn(name + suffix, _prediction(head), blob)

    def blobs(self, outputs: Sequence[str] | None) -> list[str]:
        """The blobs that become columns."""
        if outputs is None:
            return [output.blob for output in self.model.asked()]
        return list(outputs)

    def inputs(
        self, given: Given, is_set: Callable[[str], bool], training: bool = False
    ) -> dict[str, str]:
        """The net's input → column, as Params say; of the net for training, or the other one."""
        net = self.model.net
        entries = [*net.inputs] if training else [entry.name for entry in net.tested.entries]
        labels = {name for name, entry in net.inputs.items() if entry.is_label}
        heads = self.heads(given("outputs"))
        targets = [head.target for head in heads if head.target in entries]
        targets += [name for name in entries if name in labels and name not in targets]
        features = [name for name in entries if name not in targets]
        columns = {**self.model.columns, **(given("columns") or {})}
        for inputs, name in ((features, "featuresCol"), (targets, "labelCol")):
            column = given(name)
            if inputs and column and (is_set(name) or inputs[0] not in columns):
                columns[inputs[0]] = column
        return columns if training else {name: columns[name] for name in columns if name in entries}


def _prediction(head: Head) -> Made:
    """How a head's numbers become the predicted class, labels, number or numbers."""
    if head.kind == "numbers":
        return "number" if head.is_single else "vector"
    if head.is_single:
        return "class"
    return "labels" if head.kind == "labels" else "classes"
