"""NetFeaturizer: a stage that turns records into vectors, by a layer of a net."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.ml import Transformer

from sparknet import renamed
from sparknet.errors import SparkError
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.predict.stage import load_parts, save_parts
from sparknet.spark.pipeline.params import OUTPUT, ParamSetting, StageParams, count, mapping, text
from sparknet.spark.pipeline.persistence import SavedStage
from sparknet.spark.pipeline.vectors import PREFIX, added, vector, with_blobs
from sparknet.spark.predict.model import SparkModel, StrPath
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from sparknet.spark.pipeline.typed import NetFeaturizerMethods, NetFeaturizerParams
else:
    NetFeaturizerMethods = object


class NetFeaturizer(StageParams, SavedStage, Transformer, NetFeaturizerMethods):  # type: ignore[misc]
    """A stage that adds a blob of a net as a vector column, for pyspark.ml's learners.

    ``net`` and ``weights`` are what `SparkModel` takes, or ``net`` is a `SparkModel`; keywords that
    are no Params are passed on to it.  ``output`` names the blob: the net's prediction unless set.
    ``handleInvalid`` says what becomes of rows that cannot be read: "error" fails the job, "keep"
    leaves the vector null, "skip" drops the row.
    """

    settings: ClassVar[Mapping[str, ParamSetting]] = {
        "inputCol": ParamSetting("the column of the net's first input", text, ("featuresCol",)),
        "outputCol": ParamSetting("the column for the vectors", text),
        "output": ParamSetting("the blob that the vectors hold; the prediction unless set", text),
        "columns": ParamSetting("blob → column, for nets with several inputs", mapping),
        "batch": ParamSetting("how many rows go through the net at a time", count, ("batchSize",)),
        "handleInvalid": OUTPUT["handleInvalid"],
    }

    renamed: ClassVar[Mapping[str, str]] = {"layer": "output"}

    def __init__(
        self,
        net: SparkModel | Net | NetSource,
        weights: StrPath | WeightCollection | NDArray | None = None,
        **params: Unpack[NetFeaturizerParams],
    ) -> None:
        super().__init__()
        keywords, names = renamed.new_names(params, self.renamed, 3), self._names()
        more = {name: keywords.pop(name) for name in [*keywords] if name not in names}
        if isinstance(net, SparkModel):
            if weights is not None or more:
                what = "weights" if weights is not None else next(iter(more))
                raise SparkError(f"a SparkModel has its {what} already: give it to that")
            self.model = net
        else:
            self.model = SparkModel(net, weights, **more)
        self._setDefault(outputCol="features")
        self.setParams(**keywords)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        output = self.value_of("output")
        outputs = self.model.result_columns(
            None if output is None else [output], columns=self.value_of("columns")
        )
        if outputs[0].is_list:
            raise SparkError(
                f"'{outputs[0].blob}' has any number of rows per record, so that there is no vector"
            )
        blob = outputs[0].blob
        frame = with_blobs(
            self.model, dataset, [blob], self._columns(), self.value_of("batch"), self.invalid()
        )
        columns: dict[str, Column] = {}
        added(
            columns,
            dataset,
            self.value_of("outputCol"),
            vector(PREFIX + blob, frame.schema[PREFIX + blob].dataType),
        )
        return frame.withColumns(columns).drop(PREFIX + blob)

    def _columns(self) -> dict[str, str]:
        columns = self.value_of("columns") or {}
        first = self.model.net.tested.entries[0].name
        column = self.value_of("inputCol")
        return {first: column, **columns} if column else columns

    def _save_files(self, folder: Path) -> dict[str, Any]:
        return save_parts(self.model.predictor, folder)

    @classmethod
    def _load_files(cls, folder: Path, metadata: dict[str, Any], trusted: bool) -> NetFeaturizer:
        return cls(SparkModel.of(load_parts(folder, metadata, trusted)))
