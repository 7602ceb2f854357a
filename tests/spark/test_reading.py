"""Data sets of files as DataFrames."""

import numpy as np

from sparknet.loaders import ArrayRecords
from sparknet.loaders.blocks import write_blocks
from sparknet.spark import read_records
from tests.spark.digits import records

COUNT = 250


def test_records_of_a_file_in_parallel(spark, tmp_path):
    images, labels = records(COUNT)
    numbers = np.arange(COUNT)
    held = ArrayRecords(data=images, label=labels, number=numbers, weight=numbers / 7)
    write_blocks(tmp_path / "digits.blocks", held)
    frame = read_records(spark, tmp_path / "digits.blocks", 3)
    assert frame.dtypes == [
        ("data", "binary"),
        ("label", "bigint"),
        ("number", "bigint"),
        ("weight", "double"),
    ]
    rows = sorted(frame.collect(), key=lambda row: row.number)
    assert [row.number for row in rows] == list(range(COUNT))
    assert [row.label for row in rows] == labels.tolist()
    assert [row.weight for row in rows] == (numbers / 7).tolist()
    assert all(row.data == image.tobytes() for row, image in zip(rows, images, strict=True))


def test_arrays_of_floats(spark):
    values = np.random.default_rng(0).normal(size=(20, 2, 3))
    frame = read_records(spark, ArrayRecords(data=values))
    found = np.stack([np.frombuffer(row.data, np.float32) for row in frame.collect()])
    order = np.lexsort(found.T)
    wanted = values.astype(np.float32).reshape(20, 6)
    np.testing.assert_array_equal(found[order], wanted[np.lexsort(wanted.T)])
