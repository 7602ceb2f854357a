"""NetModel: a stage that predicts with a net."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.ml import Model

from sparknet.errors import SparkError
from sparknet.net.heads import Head
from sparknet.predict.metrics import Evaluation
from sparknet.predict.stage import load_parts, save_parts, stage_columns
from sparknet.spark.pipeline.params import COLUMNS, OUTPUT, ParamSetting, StageParams, brief
from sparknet.spark.pipeline.persistence import SavedStage
from sparknet.spark.pipeline.vectors import MAKERS, PREFIX, added, with_blobs
from sparknet.spark.predict.model import SparkModel
from sparknet.spark.train.result import TrainingSummary

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from sparknet.spark.pipeline.typed import NetModelMethods, NetModelParams
else:
    NetModelMethods = object


class NetModel(StageParams, SavedStage, Model, NetModelMethods):  # type: ignore[misc]
    """A stage that predicts with ``model``, a `SparkModel`; the rest are Params,
    as of `NetEstimator`.

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
            raise SparkError(f"NetModel takes a SparkModel, not {brief(model)}")
        self.model = model
        """The net or module, and its inputs' columns."""
        self._columns = stage_columns(model.predictor)
        self._summary: TrainingSummary | None = None
        self.setParams(**params)

    @property
    def heads(self) -> list[Head]:
        """The predictions: those of ``outputs``, or all of the net's."""
        return self._columns.heads(self.value_of("outputs"))

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
        blobs = self._columns.blobs(self.value_of("outputs"))
        predictor, _ = self._columns.serving(self.heads)
        model = self.model.with_predictor(predictor)
        stage_columns = list(self._columns.columns(self.value_of))
        needed = dict.fromkeys([*blobs, *(column.blob for column in stage_columns)])
        if not needed:
            return dataset
        frame = with_blobs(
            model,
            dataset,
            list(needed),
            self.input_columns(),
            self.value_of("batch"),
            self.invalid(),
        )
        kinds = {field.name: field.dataType for field in frame.schema.fields}
        prefix = self.value_of("prefix", "")
        columns: dict[str, Column] = {}
        for blob in blobs:
            added(columns, dataset, prefix + blob, _column(PREFIX + blob))
        for one in stage_columns:
            column = PREFIX + one.blob
            added(columns, dataset, one.name, MAKERS[one.made](column, kinds[column]))
        return frame.withColumns(columns).drop(*(PREFIX + blob for blob in needed))

    def check(self) -> None:
        """SparkError for Params that fit no data."""
        outputs = self.value_of("outputs") or None
        checked = self.model.result_columns(
            outputs,
            columns=self.value_of("columns"),
            prefix=self.value_of("prefix", ""),
            batch=self.value_of("batch"),
        )
        has_columns = any(self.value_of(name) for name in ("predictionCol", "rawPredictionCol"))
        if has_columns and not self.heads:
            raise SparkError(
                f"predictionCol needs an output with one row per record: "
                f"'{checked[0].blob}' has any number"
            )

    def input_columns(self, training: bool = False) -> dict[str, str]:
        """Return the net's input → column, as Params say; of the net for training, or the other
        one.
        """
        return self._columns.inputs(
            self.value_of, lambda name: self.isSet(self.getParam(name)), training
        )

    def evaluate(self, dataset: DataFrame) -> Evaluation:
        """Accuracy and confusion matrix, or R², MAE and RMSE: see `SparkModel.evaluate`.  Rows that
        are not valid are left out unless ``handleInvalid`` is "error"."""
        how: dict[str, Any] = {
            "batch": self.value_of("batch"),
            "invalid": "raise" if self.invalid() == "raise" else "drop",
            "columns": self.input_columns(True),
        }
        if self.model.module is not None:
            head, label = self.heads[0], self.value_of("labelCol") or "label"
            how |= {"output": head.blob, "kind": head.kind, "label": label}
        else:
            how["heads"] = self.heads
        evaluation: Evaluation = self.model.evaluate(dataset, **how)
        return evaluation

    # -- saving --------------------------------------------------------------------------

    def _save_files(self, folder: Path) -> dict[str, Any]:
        heads = [asdict(head) for head in self._columns.all_heads]
        return {**save_parts(self.model.predictor, folder), "heads": heads}

    @classmethod
    def _load_files(cls, folder: Path, metadata: dict[str, Any], trusted: bool) -> NetModel:
        stage = cls(SparkModel.of(load_parts(folder, metadata, trusted)))
        heads = [Head.of(head) for head in metadata["heads"]]
        stage._columns = stage_columns(stage.model.predictor, heads)
        return stage


def _column(name: str) -> Column:
    from pyspark.sql import functions

    return functions.col(f"`{name}`")
