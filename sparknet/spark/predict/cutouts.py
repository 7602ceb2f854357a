"""cut_out: the objects that were found in pictures, as pictures of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.loaders.image_decoding import decode, encode
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.predict.table import column_name, quoted, with_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CORNERS = ("xmin", "ymin", "xmax", "ymax")
Array = np.ndarray[Any, Any]


def cut_out(data: DataFrame, pictures: str, found: str, into: str = "object") -> DataFrame:
    """Return a row for each detection, whose picture is the part that the detection covers.

    ``pictures`` is a column of encoded images, ``found`` one of detections in their pixels, as
    `SparkModel.transform` adds it; both may be fields of structs.  The column ``into`` has the
    detection, in place of ``found``; the parts are PNG files, at least a pixel high and wide.
    """
    from pyspark.sql import functions as F

    data = with_fields(data, (pictures, found))
    pictures, found = (column_name(data, name) or name for name in (pictures, found))
    _check(data, pictures, found, into)
    corners = F.array(*(F.col(quoted(found))[corner] for corner in CORNERS))
    parts = _cutter(pictures)(F.col(quoted(pictures)), corners)
    both = F.arrays_zip(F.col(quoted(found)).alias("found"), parts.alias("part"))
    others = [F.col(quoted(name)) for name in data.columns if name not in (pictures, found)]
    rows = data.select(*others, F.explode(both).alias("both"))
    return rows.select(*others, F.col("both.part").alias(pictures), F.col("both.found").alias(into))


def _check(data: DataFrame, pictures: str, found: str, into: str) -> None:
    from pyspark.sql.types import ArrayType, BinaryType, StructType

    for name in (pictures, found):
        if name not in data.columns:
            near = did_you_mean(name, data.columns)
            raise SparkError(f"the data has no column '{name}' to cut objects out of{near}")
    kind = data.schema[pictures].dataType
    if not isinstance(kind, BinaryType):
        type_name = kind.simpleString()
        raise SparkError(f"column '{pictures}' is of type {type_name}: encoded images are needed")
    kind = data.schema[found].dataType
    inner = kind.elementType if isinstance(kind, ArrayType) else None
    if not isinstance(inner, StructType) or not set(CORNERS) <= set(inner.names):
        type_name = kind.simpleString()
        raise SparkError(f"column '{found}' is of type {type_name}: detections are needed")
    if into in data.columns and into not in (pictures, found):
        raise SparkError(f"the data has a column '{into}' already: give another name, or drop it")


def _cutter(name: str) -> Any:
    """Return a function of columns of pictures and of their corners, each four arrays."""
    import pandas as pd
    from pyspark.sql import functions

    def cut_parts(pictures: Any, corners: Any) -> Any:
        return pd.Series(
            [parts(*both, name) for both in zip(pictures, corners, strict=True)], dtype=object
        )

    cut_parts.__annotations__ = {"pictures": pd.Series, "corners": pd.Series, "return": pd.Series}
    return functions.pandas_udf(cut_parts, "array<binary>")


def parts(picture: bytes, corners: Any, name: str) -> list[bytes]:
    """Return the parts of an encoded image within the corners: arrays of the four sides."""
    boxes = np.stack([np.asarray(side, np.float64) for side in corners], axis=1)
    if not len(boxes):
        return []
    pixels = decode(bytes(picture), f"column '{name}'", None)
    high, wide = pixels.shape[1:]
    limits = np.array([wide, high, wide, high])
    if not np.isfinite(boxes).all():
        raise SparkError(f"column '{name}' has a detection whose corners are not numbers")
    edges = np.rint(boxes).clip(0, limits).astype(int)
    starts = np.minimum(edges[:, :2], limits[:2] - 1)
    ends = np.maximum(edges[:, 2:], starts + 1)
    return [
        encode(pixels[:, top:bottom, x:right], "png", name)
        for (x, top), (right, bottom) in zip(starts, ends, strict=True)
    ]
