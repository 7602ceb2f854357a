"""NetModel: a stage that predicts with a net."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.ml import Model

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.net.heads import Head, HeadBlobs, find_heads, served
from sparknet.spark.evaluation import Evaluation
from sparknet.spark.model import SparkModel
from sparknet.spark.pipeline.net_files import load_model, save_model
from sparknet.spark.pipeline.params import COLUMNS, OUTPUT, ParamSetting, StageParams
from sparknet.spark.pipeline.persistence import SavedStage
from sparknet.spark.pipeline.summary import TrainingSummary
from sparknet.spark.pipeline.vectors import (
    PREFIX,
    Make,
    added,
    prediction,
    vector,
    with_blobs,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from sparknet.spark.pipeline.typed import NetModelMethods, NetModelParams
else:
    NetModelMethods = object


class NetModel(StageParams, SavedStage, Model, NetModelMethods):  # type: ignore[misc]
    """A stage that predicts with ``model``; the rest are Params, as of `NetEstimator`.

    The blobs of ``outputs`` become columns as by `SparkModel.transform`.  The first prediction's
    scores, probabilities and class (or number) become the columns ``rawPredictionCol``,
    ``probabilityCol`` and ``predictionCol``, where these are set; of a net with several
    predictions the columns of each further one end in its blob's name: ``prediction_age``.
    ``handleInvalid`` says what becomes of rows that cannot be read: "error" fails the job, "keep"
    leaves their predictions null, "skip" drops them.
    """

    settings: ClassVar[Mapping[str, ParamSetting]] = {**COLUMNS, **OUTPUT}

    def __init__(self, model: SparkModel, **params: Unpack[NetModelParams]) -> None:
        super().__init__()
        if not isinstance(model, SparkModel):
            raise SparkError(f"NetModel takes a SparkModel, not {_shown(model)}")
        self.model = model
        """The net, and its inputs' columns."""
        self._heads: list[Head] | None = None
        self._served: dict[tuple[str, ...], tuple[SparkModel, dict[str, HeadBlobs]]] = {}
        self._summary: TrainingSummary | None = None
        self.setParams(**params)

    @property
    def heads(self) -> list[Head]:
        """The predictions: those of ``outputs``, or all of the net's."""
        if self._heads is None:
            self._heads = find_heads(self.model.net)
        named = self.given("outputs")
        if not named:
            return self._heads
        known = {head.blob: head for head in self._heads}
        there = self.model.net.tested.net.blobs
        unknown = [name for name in named if name not in known and name in there]
        known |= {head.blob: head for head in find_heads(self.model.net, unknown)}
        return [known[name] for name in named if name in known]

    @property
    def hasSummary(self) -> bool:  # noqa: N802
        """Whether there is a summary: not of a model that was loaded."""
        return self._summary is not None

    @property
    def summary(self) -> TrainingSummary:
        """The course of the training."""
        if self._summary is None:
            raise SparkError("this model was not trained in this process: it has no summary")
        return self._summary

    # -- predicting ----------------------------------------------------------------------

    def _transform(self, dataset: DataFrame) -> DataFrame:
        self.check()
        blobs = self._blobs()
        model, places = self._serving()
        needed = dict.fromkeys(blobs)
        wanted = list(self._wanted(places))
        for _, _, blob in wanted:
            needed[blob] = None
        if not needed:
            return dataset
        made = with_blobs(
            model,
            dataset,
            list(needed),
            self.input_columns(),
            self.given("batch"),
            self.invalid(),
        )
        kinds = {field.name: field.dataType for field in made.schema.fields}
        prefix = self.given("prefix", "")
        columns: dict[str, Column] = {}
        for blob in blobs:
            added(columns, dataset, prefix + blob, _column(PREFIX + blob))
        for name, make, blob in wanted:
            column = PREFIX + blob
            added(columns, dataset, name, make(column, kinds[column]))
        return made.withColumns(columns).drop(*(PREFIX + blob for blob in needed))

    def _wanted(self, places: dict[str, HeadBlobs]) -> Iterator[tuple[str, Make, str]]:
        """Yields each column of a prediction, how it is made, and the blob that it is made of."""
        for number, head in enumerate(self.heads):
            found = places[head.blob]
            suffix = f"_{head.blob}" if number else ""
            if (name := self.given("rawPredictionCol")) and found.raw and head.kind != "numbers":
                yield name + suffix, vector, found.raw
            if (name := self.given("probabilityCol")) and found.probability:
                yield name + suffix, vector, found.probability
            if name := self.given("predictionCol"):
                blob = found.place or found.raw or head.blob
                yield name + suffix, prediction(head), blob

    def _blobs(self) -> list[str]:
        """The blobs that become columns."""
        named = self.given("outputs")
        if named is None:
            return [output.blob for output in self.model.asked()]
        return list(named)

    def _serving(self) -> tuple[SparkModel, dict[str, HeadBlobs]]:
        """The model with what the predictions need, and where they are found."""
        heads = self.heads
        key = tuple(head.blob for head in heads)
        if key not in self._served:
            net = self.model.net
            described, places = served(net.tested.described, heads)
            model = self.model
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

    def check(self) -> None:
        """SparkError for Params that fit no data."""
        named = self.given("outputs") or None
        checked = self.model.asked(
            named,
            columns=self.given("columns"),
            prefix=self.given("prefix", ""),
            batch=self.given("batch"),
        )
        asked = any(self.given(name) for name in ("predictionCol", "rawPredictionCol"))
        if asked and not self.heads:
            raise SparkError(
                f"predictionCol needs an output with one row per record: "
                f"'{checked[0].blob}' has any number"
            )

    def input_columns(self, training: bool = False) -> dict[str, str]:
        """The net's input → column, as Params say; of the net for training, or the other one."""
        net = self.model.net
        entries = [*net.inputs] if training else [entry.name for entry in net.tested.entries]
        labels = {name for name, entry in net.inputs.items() if entry.is_label}
        targets = [head.target for head in self.heads if head.target in entries]
        targets += [name for name in entries if name in labels and name not in targets]
        features = [name for name in entries if name not in targets]
        columns = {**self.model.columns, **(self.given("columns") or {})}
        for inputs, name in ((features, "featuresCol"), (targets, "labelCol")):
            column = self.given(name)
            if inputs and column and (self.isSet(self.getParam(name)) or inputs[0] not in columns):
                columns[inputs[0]] = column
        return columns if training else {name: columns[name] for name in columns if name in entries}

    def evaluate(self, dataset: DataFrame) -> Evaluation:
        """Accuracy and confusion matrix, or R², MAE and RMSE: see `SparkModel.evaluate`.  Rows that
        are not valid are left out unless ``handleInvalid`` is "error"."""
        return self.model.evaluate(
            dataset,
            heads=self.heads,
            columns=self.input_columns(True),
            batch=self.given("batch"),
            invalid="raise" if self.invalid() == "raise" else "drop",
        )

    # -- saving --------------------------------------------------------------------------

    def _save_files(self, folder: Path) -> dict[str, Any]:
        heads = self._heads if self._heads is not None else find_heads(self.model.net)
        return {**save_model(self.model, folder), "heads": [asdict(head) for head in heads]}

    @classmethod
    def _load_files(cls, folder: Path, metadata: dict[str, Any], trusted: bool) -> NetModel:
        made = cls(load_model(folder, metadata, trusted))
        made._heads = [Head.of(head) for head in metadata["heads"]]
        return made


def _column(name: str) -> Column:
    from pyspark.sql import functions

    return functions.col(f"`{name}`")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"a {type(value).__name__}"


_LONGEST = 60
