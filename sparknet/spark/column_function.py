"""Column functions: a net as a function of columns, which Spark's optimizer knows.

Only the columns that it reads travel through Python.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.predict.prediction import Prediction
from sparknet.predict.request import Ask, FunctionOptions
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.predict_task import ModelTask, frames, structs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from typing_extensions import Unpack

    from sparknet.predict.outputs import Output


class ColumnFunction:
    """A net as a function of columns, of DataFrames of the session that runs."""

    def __init__(
        self,
        ask: Ask,
        outputs: Sequence[Output],
        columns: Mapping[str, str],
        prediction: Callable[[SparkSession, Ask], ModelTask],
    ) -> None:
        if ask.vectors and (ask.reason is not None or len(outputs) > 1):
            raise SparkError("a column function makes a vector of one output, without a reason")
        if ask.prefix or ask.key is not None or ask.invalid == "drop" or ask.best is not None:
            raise SparkError("a column function has no prefix, key, best or invalid='drop'")
        self._ask, self._outputs, self._prediction = ask, outputs, prediction
        self._columns = list(columns.items())

    def __call__(self, *columns: Column | str) -> Column:
        """The column that the net makes of these; of the model's own where none are given."""
        from pyspark.sql.functions import col

        inputs = [name for name, _ in self._columns]
        if columns and len(columns) != len(inputs):
            raise SparkError(f"{len(columns)} columns are given for the net's inputs {inputs}")
        given = columns or [col(f"`{name}`") for _, name in self._columns]
        made = self._function(_session())(*given)
        return as_vector(made) if self._outputs[0].is_vector else made

    def register(self, session: SparkSession, name: str) -> None:
        if any(output.is_vector for output in self._outputs):
            raise SparkError("SQL cannot make vectors: register the function without vectors=True")
        session.udf.register(name, self._function(session))

    @property
    def _is_struct(self) -> bool:
        return len(self._outputs) > 1 or self._ask.reason is not None

    def _function(self, session: SparkSession) -> Any:
        task = self._prediction(session, self._ask)
        apart = {name: name for name in task.prediction.mapping}
        names = [output.column for output in self._outputs]
        names += [] if self._ask.reason is None else [self._ask.reason]
        task = replace(task, prediction=replace(task.prediction, mapping=apart))
        return spark_function(task, names if self._is_struct else [])


class FunctionOfColumns(ABC):
    """A model that is a function of columns and of SQL, too."""

    @abstractmethod
    def function(self, ask: Ask) -> tuple[Sequence[Output], Mapping[str, str]]:
        """The columns that are asked for, and by input those that are read unless others are
        given."""

    @abstractmethod
    def prediction(
        self, session: SparkSession, ask: Ask, data: DataFrame | None = None
    ) -> ModelTask:
        """The task for a DataFrame, or for columns of any."""

    def udf(
        self, outputs: Sequence[str] | None = None, **keywords: Unpack[FunctionOptions]
    ) -> ColumnFunction:
        """The model as a function of columns: ``data.select(model.udf(["prob"])("pixels"))``.

        It takes the columns of the inputs in their order, those of the model unless any are given.
        Of one output it makes a column as `transform` does, of several a struct of them.
        ``keywords`` are those of `transform`, but for prefix, key and invalid="drop".
        """
        ask = Ask.of("udf", outputs, keywords)
        return ColumnFunction(ask, *self.function(ask), self.prediction)

    def register(
        self,
        session: SparkSession,
        name: str,
        outputs: Sequence[str] | None = None,
        **keywords: Unpack[FunctionOptions],
    ) -> None:
        """Make `udf` a function of SQL and `expr`: ``SELECT name(pixels) FROM …``."""
        self.udf(outputs, **keywords).register(session, name)


def spark_function(task: ModelTask, names: Sequence[str]) -> Any:
    """Spark's function of the columns that a prediction reads.

    It makes a struct of the outputs under these names; without names the only output itself.
    Arrow's arrays are handed over as they are from PySpark 4.1 on, through pandas before.
    """
    from pyspark.sql import functions

    kind = _type(task.prediction, names)
    if not hasattr(functions, "arrow_udf"):
        work = by_value(partial(frames, task=task, names=tuple(names)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the missing type hints
            return functions.pandas_udf(work, kind, functions.PandasUDFType.SCALAR_ITER)
    work = by_value(partial(structs, task=task, names=tuple(names)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return functions.arrow_udf(work, kind, functions.ArrowUDFType.SCALAR_ITER)


def as_vector(made: Column) -> Column:
    """Vectors of pyspark.ml of a column of arrays; nulls stay null."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql.functions import when

    return when(made.isNotNull(), array_to_vector(made))


def _session() -> SparkSession:
    from sparknet.spark.cluster.session import running_session

    session = running_session()
    if session is None:
        raise SparkError("a column function needs a Spark session, and none runs: start one first")
    return session


def spark_type(output: Output) -> Any:
    """Return Spark's type of an output's column."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(output.arrow_type())


def _type(given: Prediction, names: Sequence[str]) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    kinds = [spark_type(output) for output in given.outputs]
    if given.reason is not None:
        kinds.append(StringType())
    if not names:
        return kinds[0]
    return StructType(
        [StructField(name, kind, True) for name, kind in zip(names, kinds, strict=True)]
    )
