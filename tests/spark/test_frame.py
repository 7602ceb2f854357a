"""RDDs and DataFrames as numbered rows."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from sparknet.errors import SparkError
from sparknet.spark.frame import frame, mapped, numbered
from sparknet.spark.ingest import HELD, ROW

ENTRIES = ("data", "label")


def test_an_rdd_of_tuples(spark: Any) -> None:
    records = [(np.full((1, 2, 2), n, np.uint8), n) for n in range(5)]
    found = frame(spark.sparkContext.parallelize(records, 2), ENTRIES)
    assert found.dtypes == [("data", "binary"), ("label", "bigint")]
    assert [(bytes(row.data), row.label) for row in found.collect()] == [
        (bytes([n] * 4), n) for n in range(5)
    ]


def test_an_rdd_of_dicts_with_floats(spark: Any) -> None:
    records = [{"x": [n + 0.5, 1.0], "y": n / 2} for n in range(3)]
    found = frame(spark.sparkContext.parallelize(records, 2), ("x", "y"))
    rows = found.collect()
    assert [row.y for row in rows] == [0.0, 0.5, 1.0]
    np.testing.assert_array_equal(np.frombuffer(rows[2].x, np.float32), [2.5, 1.0])


def test_what_is_no_data() -> None:
    with pytest.raises(SparkError, match="the data is a list: an RDD or a DataFrame is needed"):
        frame([1], ENTRIES)


def test_an_rdd_of_something_else(spark: Any) -> None:
    context = spark.sparkContext
    with pytest.raises(SparkError, match=r"a record of an RDD is a int: .* \(data, label\)"):
        frame(context.parallelize([1]), ENTRIES)
    with pytest.raises(SparkError, match="'data' of a record holds a str: no numbers"):
        frame(context.parallelize([("x", 1)]), ENTRIES)
    with pytest.raises(SparkError, match="an RDD without records"):
        frame(context.parallelize([], 2), ENTRIES)


def test_columns_of_other_names(spark: Any) -> None:
    data = spark.createDataFrame([(b"1", 1)], "pixels binary, label int")
    assert mapped(data, ENTRIES, {"data": "pixels"}) == {"data": "pixels", "label": "label"}
    with pytest.raises(SparkError, match=r"no column 'data' for blob 'data': it has \['pixels'"):
        mapped(data, ENTRIES, None)
    with pytest.raises(SparkError, match=r"columns names blob 'digit', but records enter at"):
        mapped(data, ENTRIES, {"digit": "label"})


def test_skewed_partitions_become_even(spark: Any) -> None:
    skewed = spark.sparkContext.parallelize(range(1000), 3).filter(lambda n: n < 333)
    data = skewed.map(lambda n: (n,)).toDF("n int")
    held = spark.range(10).selectExpr("cast(id as int) as n")
    found = numbered(data, held, {"label": "n"}, 4)
    sizes = found.rdd.glom().map(len).collect()
    assert sum(sizes) == 343
    assert max(sizes) - min(sizes) <= 13
    rows = found.collect()
    assert sorted(row.n for row in rows if not row[HELD]) == list(range(333))
    assert sorted(row.n for row in rows if row[HELD]) == list(range(10))
    assert len({(row[HELD], row[ROW]) for row in rows}) == 343


BESIDE_CONNECT = """
from pyspark import SparkContext
from pyspark.sql import SparkSession
from sparknet.spark import Trainer
from tests.spark.digits import solver

session = SparkSession.builder.remote("local[1]").getOrCreate()
rdd = SparkContext.getOrCreate().parallelize([(b"", 1)], 1)
frame = session.sql("SELECT X'00' AS data, 1 AS label")
for data, more in ((rdd, None), (frame, rdd)):
    try:
        Trainer(solver()).fit(data, validation=more)
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_an_rdd_where_the_session_is_one_of_connect() -> None:
    """Only in a process that has both: a local server of Spark Connect within it."""
    pytest.importorskip("grpc")
    variables = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(
        [sys.executable, "-c", BESIDE_CONNECT],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    said = "SparkError the {} data is an RDD, and Spark Connect has none: give a DataFrame"
    assert ran.stdout.splitlines() == [said.format("training"), said.format("validation")]
