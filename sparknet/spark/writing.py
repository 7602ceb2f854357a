"""write_parquet: a DataFrame as files, and an error of its rows as one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparknet.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OURS = "sparknet.errors."
"""What stands before our own sentences in an error of Spark."""


def write_parquet(data: DataFrame, path: str, overwrite: bool = False) -> None:
    """Write a folder of Parquet, wherever Spark can write; SparkError if that fails."""
    try:
        data.write.mode("overwrite" if overwrite else "errorifexists").parquet(path)
    except Exception as error:  # PySpark 3.5 lets Py4JJavaError through
        raise SparkError(sentence(str(error))) from error


def sentence(text: str) -> str:
    """The sentence of sparknet in an error of Spark, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        kind, colon, said = line.partition(": ")
        if colon and kind.startswith(_OURS):
            return said
    return lines[0] if lines else "Spark failed"
