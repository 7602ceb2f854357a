"""SequenceEncoder: a stage that turns strings into ids and continuation markers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.ml import Transformer

from sparknet.errors import SparkError
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.pipeline.params import FLAG, ParamSetting, StageParams, count, text, texts
from sparknet.spark.pipeline.persistence import SavedStage
from sparknet.spark.pipeline.vectors import added
from sparknet.spark.predict.table import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

    from sparknet.spark.pipeline.typed import SequenceEncoderMethods, SequenceEncoderParams
else:
    SequenceEncoderMethods = object

PADDING, UNKNOWN, FIRST = 0, 1, 2
"""The ids of what is no token and of tokens outside the vocabulary, and that of its first token."""

_WORDS = r"\s+"


class SequenceEncoder(StageParams, SavedStage, Transformer, SequenceEncoderMethods):  # type: ignore[misc]
    """A stage that adds two columns for recurrent layers: the ids of tokens, and ``cont``.

    A token's id is its place in ``vocabulary`` + 2; 1 is a token that is not in it, 0 is padding.
    Each row has ``length`` ids: later tokens are left out, and shorter rows are padded at the end,
    or at the beginning (``padding="before"``), where the last step of a net sees the last token.
    The markers are 1 where a sequence goes on, and 0 at its first token and at padding, as Caffe's
    LSTM and RNN layers read them.  Both columns are arrays of ``length`` numbers; a net whose time
    comes first takes them as they are.

    ``inputCol`` is a column of strings, split by the regular expression ``split`` (white space
    unless set; "" is between characters), or of arrays of tokens.  ``lower`` ignores case.
    """

    settings: ClassVar[Mapping[str, ParamSetting]] = {
        "vocabulary": ParamSetting("the tokens that have ids", texts),
        "length": ParamSetting("the number of ids of a row", count),
        "inputCol": ParamSetting("the column of strings, or of arrays of tokens", text),
        "outputCol": ParamSetting("the column for the ids", text),
        "contCol": ParamSetting("the column for the continuation markers", text),
        "split": ParamSetting("the regular expression between tokens; '' splits characters", text),
        "lower": ParamSetting("whether case is ignored", FLAG),
        "padding": ParamSetting("where short rows are padded: after or before", text),
    }

    def __init__(
        self,
        vocabulary: Sequence[str] | None = None,
        length: int | None = None,
        **params: Unpack[SequenceEncoderParams],
    ) -> None:
        super().__init__()
        self._setDefault(
            inputCol="text", outputCol="ids", contCol="cont", split=_WORDS, lower=False
        )
        self._setDefault(padding="after")
        self.setParams(vocabulary=vocabulary, length=length, **params)

    @property
    def size(self) -> int:
        """The number of ids: input_dim of an Embed layer."""
        return FIRST + len(self._tokens())

    @staticmethod
    def build_vocabulary(
        data: DataFrame,
        column: str,
        size: int | None = None,
        *,
        least: int = 1,
        split: str = _WORDS,
        lower: bool = False,
    ) -> list[str]:
        """Return the tokens of a column, the most frequent first: at most ``size``, each
        ``least`` times.

        Spark counts them; tokens of equal counts are in the order of their characters.
        """
        from pyspark.sql import functions

        tokens = functions.explode(_tokens_of(data, column, split, lower)).alias("token")
        counts = data.select(tokens).where("token <> ''").groupBy("token").count()
        frequent = counts.where(functions.col("count") >= least).orderBy(
            functions.desc("count"), "token"
        )
        rows = frequent if size is None else frequent.limit(size)
        return [row.token for row in rows.collect()]

    def _transform(self, dataset: DataFrame) -> DataFrame:
        from pyspark.sql import functions

        tokens, length, is_before = self._tokens(), self._length(), self._is_before()
        name = self.value_of("inputCol")
        if name not in dataset.columns:
            raise SparkError(
                f"the data has no column '{name}' to encode{did_you_mean(name, dataset.columns)}"
            )
        split = _tokens_of(dataset, name, self.value_of("split"), self.value_of("lower"))
        numbers = {
            token.lower() if self.value_of("lower") else token: FIRST + place
            for place, token in reversed(list(enumerate(tokens)))
        }
        coded = _encoder(numbers, length, is_before)(split)
        # A token's id is never that of padding.
        zero, one = functions.lit(0.0), functions.lit(1.0)

        def marker(id: Column, place: Column) -> Column:
            before = functions.when(place == 0, PADDING).otherwise(
                functions.element_at(ids, functions.greatest(place, functions.lit(1)))
            )
            return functions.when((id == PADDING) | (before == PADDING), zero).otherwise(one)

        ids = functions.col(quoted(self.value_of("outputCol")))
        columns: dict[str, Column] = {}
        added(columns, dataset, self.value_of("outputCol"), coded)
        added(columns, dataset, self.value_of("contCol"), functions.transform(ids, marker))
        frame = dataset
        for column, value in columns.items():
            frame = frame.withColumn(column, value)
        return frame

    def _tokens(self) -> list[str]:
        tokens = self.value_of("vocabulary")
        if not tokens:
            raise SparkError("SequenceEncoder has no vocabulary: SequenceEncoder([…], length)")
        return list(tokens)

    def _length(self) -> int:
        length = self.value_of("length")
        if not isinstance(length, int) or length < 1:
            raise SparkError(f"length is {length!r}: a whole number, at least 1, is needed")
        return length

    def _is_before(self) -> bool:
        padding = self.value_of("padding")
        if padding not in ("after", "before"):
            raise SparkError(f"padding is {padding!r}: after or before")
        return bool(padding == "before")


def _tokens_of(data: DataFrame, name: str, split: str, lower: bool) -> Column:
    """Return the arrays of tokens in a column."""
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType, StringType

    kind = data.schema[name].dataType
    column = functions.col(quoted(name))
    if isinstance(kind, StringType):
        try:
            re.compile(split)
        except re.error as error:
            raise SparkError(f"split is {split!r}, no regular expression: {error}") from error
        whole = functions.lower(column) if lower else column
        return functions.split(functions.trim(whole) if split == _WORDS else whole, split)
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
        return functions.transform(column, functions.lower) if lower else column
    raise SparkError(f"column '{name}' has type {kind.simpleString()}: strings are needed")


def _encoder(numbers: dict[str, int], length: int, is_before: bool) -> Callable[[Column], Column]:
    """Return a function of a column of tokens, whose value is the column of their ids."""
    import pandas as pd
    from pyspark.sql import functions

    def encoded(rows: Any) -> Any:
        padded = []
        for tokens in rows:
            there = [] if tokens is None else [token for token in tokens if token]
            ids = [numbers.get(token, UNKNOWN) for token in there[:length]]
            rest = [PADDING] * (length - len(ids))
            padded.append(rest + ids if is_before else ids + rest)
        return pd.Series(padded)

    encoded.__annotations__ = {"rows": pd.Series, "return": pd.Series}  # as PySpark reads them
    encode: Callable[[Column], Column] = functions.pandas_udf(encoded, "array<int>")
    return encode
