"""Data as it comes: columns of every kind, and partitions of every size, through training."""

import io
from functools import cache
from typing import Any

import numpy as np
import pytest

from sparknet.spark import Trainer
from tests.spark.digits import records, solver, tuples

Array = np.ndarray[Any, Any]
COUNT = 60
SCALED = solver(steps=6).replace(
    'type: "Input" top: "data" top: "label"\n  input_param { shape '
    "{ dim: 20 dim: 1 dim: 6 dim: 6 } shape { dim: 20 } }",
    'type: "MemoryData" top: "data" top: "label" transform_param { scale: 0.00390625 }\n'
    "  memory_data_param { batch_size: 20 channels: 1 height: 6 width: 6 }",
)
"""Takes bytes as well as numbers 0 … 255."""


def _png(image: Array) -> bytes:
    from PIL import Image

    written = io.BytesIO()
    Image.fromarray(image[0]).save(written, "png")
    return written.getvalue()


def _image(image):
    """A row of Spark's image source."""
    _, height, width = image.shape
    return ("", height, width, 1, 0, image.tobytes())


def _vector(image):
    from pyspark.ml.linalg import Vectors

    return Vectors.dense(image.reshape(-1))


def _sparse(image):
    from pyspark.ml.linalg import Vectors

    return Vectors.sparse(image.size, list(enumerate(image.reshape(-1).astype(float))))


IMAGE = "struct<origin: string, height: int, width: int, nChannels: int, mode: int, data: binary>"
KINDS = {
    "bytes": ("binary", Array.tobytes),
    "float32 as bytes": ("binary", lambda image: image.astype(np.float32).tobytes()),
    "floats": ("array<float>", lambda image: image.reshape(-1).astype(float).tolist()),
    "lists in lists": ("array<array<double>>", lambda image: image[0].astype(float).tolist()),
    "small integers": ("array<smallint>", lambda image: image.reshape(-1).tolist()),
    "image structs": (IMAGE, _image),
    "encoded images": ("binary", _png),
    "dense vectors": (None, _vector),
    "sparse vectors": (None, _sparse),
}


def _trained(spark, kind):
    """On one worker: then the order of records is that of the rows."""
    of, made = KINDS[kind]
    images, labels = records(COUNT)
    rows = [(made(image), int(label)) for image, label in zip(images, labels, strict=True)]
    schema = ["data", "label"] if of is None else f"data {of}, label int"
    return Trainer(SCALED, workers=1).fit(spark.createDataFrame(rows, schema))


@cache
def _from_bytes(spark):
    return np.asarray(_trained(spark, "bytes").weights.flat)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "bytes"])
def test_values_are_the_same_however_they_are_kept(spark, kind):
    trained = _trained(spark, kind)
    assert _counts(trained) == [COUNT]
    np.testing.assert_array_equal(np.asarray(trained.weights.flat), _from_bytes(spark))


def _counts(trained):
    (event,) = (event for event in trained.history if event["event"] == "workers")
    return [worker["records"] for worker in event["workers"]]


def _skewed(spark, sizes):
    """An RDD with partitions of those sizes."""
    data = tuples(sum(sizes))
    ends = np.cumsum(sizes)

    def part(number, _):
        yield from data[ends[number] - sizes[number] : ends[number]]

    return spark.sparkContext.parallelize(range(len(sizes)), len(sizes)).mapPartitionsWithIndex(
        part
    )


@pytest.mark.parametrize(
    ("sizes", "workers"),
    [
        ([70], 4),  # one partition for all
        ([0, 0, 61, 0, 0, 2, 0], 3),  # nearly all in one, most of them empty
        ([1] * 9, 2),  # fewer records than a batch
        ([0, 5, 0], 4),
    ],
)
def test_no_record_is_lost(spark, sizes, workers):
    trained = Trainer(solver(steps=3), workers=workers).fit(_skewed(spark, sizes))
    counts = _counts(trained)
    assert sum(counts) == sum(sizes)
    assert len(counts) == workers
    assert max(counts) - min(counts) <= len(sizes)
    assert trained.outcome.iteration == 3
