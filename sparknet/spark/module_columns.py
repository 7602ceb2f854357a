"""The columns that a `NetModel` adds whose model is a module of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from typing import Any

from sparknet.errors import SparkError
from sparknet.net.heads import Head, HeadBlobs, Kind
from sparknet.predict.evaluation import head_of
from sparknet.proto.suggest import one_of
from sparknet.spark.derived import Derived
from sparknet.spark.module_model import ModuleModel
from sparknet.spark.stage_columns import Given, StageColumns


def columns_of(model: Any, heads: Sequence[Head] | None = None) -> StageColumns:
    """What a net or a module predicts, and where it is found."""
    kind = ModuleColumns if isinstance(model, ModuleModel) else StageColumns
    return kind(model, heads)


class ModuleColumns(StageColumns):
    """A module's first output is its prediction, unless `outputs` names others."""

    model: Any

    @property
    def all_heads(self) -> list[Head]:
        if self._heads is None:
            first = self.model.asked()[0].blob
            self._heads = [self._head(first, self.model.kind)]
        return self._heads

    def heads(self, outputs: Sequence[str] | None) -> list[Head]:
        if not outputs:
            return self.all_heads
        known = {head.blob: head for head in self.all_heads}
        return [known.get(name) or self._head(name, None) for name in outputs]

    def serving(self, heads: Sequence[Head]) -> tuple[Any, dict[str, HeadBlobs]]:
        key = tuple(head.blob for head in heads)
        if key not in self._served:
            model, places = copy(self.model), dict[str, HeadBlobs]()
            model.derived = {}
            for head in heads:
                places[head.blob] = _derive(head, model.derived)
            self._served[key] = model, places
        return self._served[key]

    def inputs(
        self, given: Given, is_set: Callable[[str], bool], training: bool = False
    ) -> dict[str, str]:
        columns = {**self.model.columns, **(given("columns") or {})}
        first, column = next(iter(self.model.records)), given("featuresCol")
        if column and (is_set("featuresCol") or first not in columns):
            columns[first] = column
        return columns

    def _head(self, name: str, kind: Kind | None) -> Head:
        made = self.model.computed(self.model.records)
        if name not in made:
            raise SparkError(f"the module has no output '{name}'{one_of(name, list(made))}")
        record = made[name].shape[1:]
        found = kind or ("classes" if prod(record) > 1 else "numbers")
        head = head_of(name, found, record)
        # What no loss says to be logits has no probabilities.
        squashes: Any = {"classes": "softmax", "labels": "sigmoid"}
        return replace(head, scores=name, squashed_by=squashes.get(kind))


def _derive(head: Head, derived: dict[str, Derived]) -> HeadBlobs:
    """What is made of an output, and where it is found."""
    raw, blob = head.blob, head.blob

    def made(what: str, *steps: Any) -> str:
        derived[f"{blob}/{what}"] = Derived(blob, steps)
        return f"{blob}/{what}"

    if head.kind == "labels" and head.is_single:
        raw = made("scores", "pair")
        return HeadBlobs(raw, made("probabilities", "pair", "sigmoid"), None)
    probability = None if head.squashed_by is None else made("probabilities", head.squashed_by)
    is_placed = head.kind == "classes" and not head.is_single
    return HeadBlobs(raw, probability, made("classes", "argmax") if is_placed else None)
