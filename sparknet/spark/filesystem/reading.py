"""Readers of images, records and tables as DataFrames, and the writer of Parquet."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import FileError, SparkError
from sparknet.loaders import Records, open_records, tars
from sparknet.loaders.image_files import image_paths
from sparknet.predict.prediction import in_one_line
from sparknet.proto.byte_source import StrPath
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.filesystem.record_batches import BATCH_BYTES, RecordBatches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

STORED = ("path", "content")
"""The columns of `read_images`, as Spark's binaryFile source names them."""


def read_records(
    session: SparkSession, data: Records | StrPath, parts: int | None = None
) -> DataFrame:
    """Return the records of ``data`` (Records, or the path of a data set) as a DataFrame.

    Each of ``parts`` partitions (the cluster's default unless given) opens the files itself, so
    every executor must reach them by the same path.  `RecordBatches.schema` has the columns'
    types.
    """
    records = RecordBatches(data if isinstance(data, Records) else open_records(data))
    numbers = session.range(0, len(records.records), 1, parts)
    return numbers.mapInArrow(by_value(records.read_numbers), records.schema())


def read_images(session: SparkSession, *sources: StrPath) -> DataFrame:
    """Images as they are stored, with columns ``path`` and ``content``, as `SparkModel` takes them.

    ``sources`` are image files, folders with images and tars of images, which every executor must
    reach by the same path; or URLs that Spark can read (s3a://…/*.jpg), of files alone.  The path
    of an image in a tar is ``file.tar:name``.
    """
    paths = [os.fspath(source) for source in sources]
    if any("://" in path for path in paths):
        binary = session.read.format("binaryFile").option("recursiveFileLookup", "true")
        return _answer(lambda: binary.load(paths).select(*STORED))
    places = [place for path in paths for place in _places(path)]
    if not places:
        raise SparkError(f"there is no image in {', '.join(paths) or 'no files'}")
    rows = session.createDataFrame(places, "path string, file string, start long, size long")
    return rows.mapInArrow(by_value(_read_stored), "path string, content binary")


def _places(path: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield the name, file, beginning and size (-1: all of the file) of the images of a source."""
    absolute = str(Path(path).absolute())
    if Path(path).suffix.lower() == ".tar":
        for member in tars.members(absolute):
            yield f"{absolute}:{member.name}", absolute, member.start, member.size
        return
    if not Path(path).exists():
        raise FileError(path, "does not exist")
    for image in image_paths(Path(absolute)) if Path(path).is_dir() else [absolute]:
        yield image, image, 0, -1


def _read_stored(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    def batch_of(paths: list[str], contents: list[bytes]) -> pa.RecordBatch:
        columns = {"path": pa.array(paths), "content": pa.array(contents, pa.binary())}
        return pa.RecordBatch.from_pydict(columns)

    with in_one_line():
        for batch in batches:
            paths: list[str] = []
            contents: list[bytes] = []
            for place in batch.to_pylist():
                paths.append(place["path"])
                contents.append(_stored(place))
                if sum(map(len, contents)) >= BATCH_BYTES:
                    yield batch_of(paths, contents)
                    paths, contents = [], []
            if paths:
                yield batch_of(paths, contents)


def _stored(place: dict[str, Any]) -> bytes:
    try:
        with Path(place["file"]).open("rb") as file:
            file.seek(place["start"])
            return file.read(place["size"])
    except OSError as error:
        raise FileError(place["file"], f"cannot be read: {error.strerror}") from error


def read_parquet(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return a DataFrame of Parquet files or folders, wherever Spark can read."""
    return _answer(lambda: session.read.parquet(*paths))


def query(session: SparkSession, text: str) -> DataFrame:
    """Return the DataFrame of a SQL query."""
    return _answer(lambda: session.sql(text))


def _answer(ask: Callable[[], DataFrame]) -> DataFrame:
    from pyspark.errors import PySparkException

    level = logging.root.manager.disable
    logging.disable(logging.ERROR)  # PySpark would print the error with all of Java's stack, too
    try:
        answer = ask()
        _ = answer.columns  # Spark Connect checks it only here
    except PySparkException as error:
        raise SparkError(str(error).strip().partition("\n")[0]) from error
    finally:
        logging.disable(level)
    return answer


_OURS = "sparknet.errors."
"""What stands before our own sentences in an error of Spark."""


def write_parquet(data: DataFrame, path: str, overwrite: bool = False) -> None:
    """Write a folder of Parquet, wherever Spark can write; SparkError if that fails."""
    try:
        data.write.mode("overwrite" if overwrite else "errorifexists").parquet(path)
    except Exception as error:  # PySpark 3.5 lets Py4JJavaError through
        raise SparkError(sentence(str(error))) from error


def sentence(text: str) -> str:
    """Return the sentence of sparknet in an error of Spark, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        kind, colon, message = line.partition(": ")
        if colon and kind.startswith(_OURS):
            return message
    return lines[0] if lines else "Spark failed"
