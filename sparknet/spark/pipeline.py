"""NetEstimator and NetModel: Trainer and SparkModel as stages of pyspark.ml's Pipeline.

They have a module of their own because the classes cannot be defined without pyspark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from inspect import signature
from types import NoneType
from typing import TYPE_CHECKING, Any

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param

from sparknet.errors import SparkError
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.model import SparkModel, check_keywords
from sparknet.spark.trainer import Trainer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARAMS = {
    "solver": "the net and how it learns",
    "strategy": "how the workers synchronise",
    "workers": "tasks that train together",
    "init_weights": "a caffemodel with the initial weights",
    "steps": "iterations; the solver's max_iter unless set",
    "epochs": "how often the workers together see each record",
    "seconds": "the time after which training ends",
    "patience": "validations without a better one after which training ends",
    "seed": "the seed of the shuffling of records",
}
"""Settings of Trainer that a parameter grid may vary, with their texts for explainParams."""

_OUTPUT = tuple(signature(check_keywords).parameters)
"""The keywords of `SparkModel.transform`."""
_ELSEWHERE = {
    **{field.name: "a setting of Trainer: give it to that" for field in fields(Trainer)},
    "featuresCol": "said by Trainer's columns={'data': …}",
    "labelCol": "said by Trainer's columns={'label': …}",
    "predictionCol": "called best here",
    "validationIndicatorCol": "called validation here",
}
"""Other keywords that people try, and what to use instead."""


class NetEstimator(Estimator):  # type: ignore[misc]
    """A stage that trains with ``trainer``; ``output`` are keywords for `SparkModel.transform`.

    ``validation`` names a boolean column: rows where it is true are for validation.
    """

    def __init__(self, trainer: Trainer, validation: str | None = None, **output: Any) -> None:
        super().__init__()
        if not isinstance(trainer, Trainer):
            raise SparkError(
                f"NetEstimator takes a Trainer, not {_shown(trainer)}: "
                "NetEstimator(Trainer(solver, …), …)"
            )
        if not isinstance(validation, (str, NoneType)):
            raise SparkError(f"validation is {validation!r}: the name of a column is needed")
        _check(output, "NetEstimator", ["validation"])
        self.trainer, self.validation, self.output = trainer, validation, output
        for name, said in _PARAMS.items():
            setattr(self, name, Param(self, name, said))
            self._setDefault(**{name: getattr(trainer, name)})

    def _fit(self, dataset: DataFrame) -> NetModel:
        changed = {name: self.getOrDefault(name) for name in _PARAMS if self.isSet(name)}
        trainer = replace(self.trainer, **changed)
        SparkModel(trainer.solver).asked(**self.output)  # raises now what would fail after training
        learned, held = dataset, None
        if self.validation is not None:
            if self.validation not in dataset.columns:
                raise SparkError(f"the data has no column '{self.validation}' for validation")
            self._check_nulls(dataset)
            held = dataset.where(dataset[self.validation])
            learned = dataset.where(~dataset[self.validation])
        trained = trainer.fit(learned, held)
        return NetModel(trained.model, **self.output)

    def _check_nulls(self, dataset: DataFrame) -> None:
        """SparkError if the validation column has nulls: those rows would be in neither part."""
        column = dataset[self.validation]
        if not dataset.schema[self.validation].nullable:
            return
        if count := dataset.where(column.isNull()).count():
            raise SparkError(
                f"column '{self.validation}', which says what is held out for validation, is null "
                f"in {count} rows: fill it with true or false"
            )


class NetModel(Model):  # type: ignore[misc]
    """A stage that predicts with ``model``.

    The class index (``best``) is a double, as pyspark.ml's evaluators need it.
    """

    def __init__(self, model: SparkModel, **output: Any) -> None:
        super().__init__()
        if not isinstance(model, SparkModel):
            raise SparkError(f"NetModel takes a SparkModel, not {_shown(model)}")
        _check(output, "NetModel")
        self.model, self.output = model, output

    def _transform(self, dataset: DataFrame) -> DataFrame:
        made = self.model.transform(dataset, **self.output)
        best = self.output.get("best")
        return made if best is None else made.withColumn(best, made[best].cast("double"))


def _check(output: dict[str, Any], stage: str, more: Sequence[str] = ()) -> None:
    """SparkError for a keyword that neither the stage nor `SparkModel.transform` takes."""
    known = [*more, *_OUTPUT]
    for name in output:
        if name not in known:
            said = f"'{name}' is {_ELSEWHERE[name]}; " if name in _ELSEWHERE else ""
            near = "" if said else did_you_mean(name, known)
            raise SparkError(
                f"{stage} has no keyword '{name}': {said}it takes {', '.join(known)}{near}"
            )
    check_keywords(**output)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"a {type(value).__name__}"


_LONGEST = 60
