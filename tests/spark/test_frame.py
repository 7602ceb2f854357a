"""RDDs and DataFrames as numbered rows."""

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock, call

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Row

from sparknet.errors import SparkError
from sparknet.predict.input_columns import InputSpec
from sparknet.spark import Trainer
from sparknet.spark.cluster.preflight import translated
from sparknet.spark.predict.table import bound_batches
from sparknet.spark.train.frame import frame, mapped, numbered
from sparknet.spark.train.ingest import HELD, ROW
from tests.spark.digits import solver

ENTRIES = ("data", "label")


def test_an_rdd_of_tuples(spark):
    records = [(np.full((1, 2, 2), n, np.uint8), n) for n in range(5)]
    found = frame(spark.sparkContext.parallelize(records, 2), ENTRIES)
    assert found.dtypes == [("data", "binary"), ("label", "bigint")]
    assert [(bytes(row.data), row.label) for row in found.collect()] == [
        (bytes([n] * 4), n) for n in range(5)
    ]


def test_an_rdd_of_dicts_with_floats(spark):
    records = [{"x": [n + 0.5, 1.0], "y": n / 2} for n in range(3)]
    found = frame(spark.sparkContext.parallelize(records, 2), ("x", "y"))
    rows = found.collect()
    assert [row.y for row in rows] == [0.0, 0.5, 1.0]
    np.testing.assert_array_equal(np.frombuffer(rows[2].x, np.float32), [2.5, 1.0])


def test_what_is_no_data():
    with pytest.raises(SparkError, match="the data is a list: an RDD or a DataFrame of Spark is"):
        frame([1], ENTRIES)
    with pytest.raises(SparkError, match=r"the data is a numpy.ndarray: .*createDataFrame"):
        frame(np.zeros(3), ENTRIES)


def test_an_rdd_of_something_else(spark):
    context = spark.sparkContext
    with pytest.raises(SparkError, match=r"a record of an RDD is a int: .* \(data, label\)"):
        frame(context.parallelize([1]), ENTRIES)
    with pytest.raises(SparkError, match=r"a record of an RDD is a tuple of 3: .* a tuple of 2"):
        frame(context.parallelize([(1, 2, 3)]), ENTRIES)
    with pytest.raises(SparkError, match="'data' of a record holds a str, not numbers"):
        frame(context.parallelize([("x", 1)]), ENTRIES)
    with pytest.raises(SparkError, match="an RDD without records"):
        frame(context.parallelize([], 2), ENTRIES)


def test_rows_and_dicts_are_read_by_name(spark):
    row = Row(label=3, name="three", data=[1.0, 2.0])
    for record in (row, row.asDict()):
        (found,) = frame(spark.sparkContext.parallelize([record]), ENTRIES).collect()
        assert found.label == 3
        np.testing.assert_array_equal(np.frombuffer(found.data, np.float32), [1, 2])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (([1.0, 2.0, 3.0], 1), r"'data' of a record has shape \(3,\), that of the first \(2,\)"),
        (([1.0, [2.0]], 1), "'data' of a record: .*inhomogeneous"),
        (([1.0, None], 1), "'data' of a record holds a list, not numbers"),
        (([1.0, 2.0], None), "'label' of a record holds a NoneType, not numbers"),
        (([1.0, 2.0], 0.5), "'label' of a record is 0.5, that of the first was a whole number"),
        (([1.0, 2.0], "1"), "'label' of a record holds a str, not numbers"),
        ({"data": [1.0, 2.0]}, r"a record has \['data'\], the first had \['data', 'label'\]"),
    ],
    ids=str,
)
def test_a_record_unlike_the_first(spark, record, said):
    data = spark.sparkContext.parallelize([([1.0, 2.0], 1), ([0.0, 1.0], 0.0), record], 1)
    with pytest.raises(Exception, match=said) as raised:
        frame(data, ENTRIES).collect()
    assert re.match(said, str(translated(raised.value)))


def test_a_stream(spark):
    data = spark.readStream.format("rate").load()
    with pytest.raises(SparkError, match=r"the data is a stream, .* foreachBatch"):
        frame(data, ENTRIES)


def test_validation_data_of_other_types(spark):
    data, more = spark.sql("SELECT 1 AS n"), spark.sql("SELECT array(1) AS n")
    with pytest.raises(SparkError, match=r"columns \['n'\] of the validation data are of other"):
        numbered(data, more, {"label": "n"}, 2, {})
    wider = spark.sql("SELECT 1.5D AS n")
    assert numbered(data, wider, {"label": "n"}, 2, {}).dtypes[0][1] == "double"


@pytest.mark.parametrize(("shape", "kind"), [((1, 3), "array<double>"), ((5_000,), "vector")])
def test_short_vectors_travel_as_arrays(spark, shape, kind):
    from pyspark.ml.linalg import Vectors

    vectors = [Vectors.dense(1, 2, 3), None, Vectors.sparse(3, [1], [5])]
    rows = [(number, one) for number, one in enumerate(vectors)]
    data = spark.createDataFrame(rows, ["n", "v"])
    sent = numbered(data, None, {"x": "v", "label": "n"}, 2, {"x": InputSpec(shape)})
    assert sent.dtypes[0] == ("v", kind)
    found = [row.v for row in sent.orderBy("n").collect()]
    if kind == "vector":
        assert found == vectors
    else:
        assert found == [[1, 2, 3], None, [0, 5, 0]]


def test_names_that_spark_would_take_for_fields(spark):
    data = spark.sql("SELECT 1 AS `a.b`, 2 AS `c``d`")
    mapping = mapped(data, ENTRIES, {"data": "a.b", "label": "c`d"})
    assert numbered(data, data, mapping, 2, {}).columns[:2] == ["a\u2024b", "c\u2035d"]


@pytest.mark.parametrize("kind", ["binary", "int", "array<double>"])
@pytest.mark.parametrize("has_bound", [False, True])
def test_batches_of_bytes_have_a_bound(spark, kind, has_bound):
    """On PySpark 3.5 2.4 GiB of photographs failed in Java, on 4.3 those of a columnar file."""
    rows = "spark.sql.execution.arrow.maxRecordsPerBatch"
    real = spark.createDataFrame([], f"n int, x {kind}")
    conf = SimpleNamespace(
        isModifiable=lambda name: has_bound, get={rows: "10000"}.__getitem__, set=Mock()
    )
    data = SimpleNamespace(schema=real.schema, sparkSession=SimpleNamespace(conf=conf))
    with nullcontext() if has_bound or kind != "binary" else pytest.warns(UserWarning, match=rows):
        bound_batches(data, ["x"])
    columnar = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
    bound = call(columnar, "false") if has_bound else call(rows, "128")
    assert conf.set.mock_calls == ([bound] if kind == "binary" else [])


def test_this_spark_keeps_its_batches(spark):
    rows = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    if spark.conf.isModifiable("spark.sql.execution.arrow.maxBytesPerBatch"):
        bound_batches(spark.createDataFrame([], "x binary"), ["x"])
        assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == rows


def test_columns_of_other_names(spark):
    data = spark.createDataFrame([(b"1", 1)], "pixels binary, label int")
    assert mapped(data, ENTRIES, {"data": "pixels"}) == {"data": "pixels", "label": "label"}
    with pytest.raises(SparkError, match=r"no column 'data' for blob 'data': it has \['pixels'"):
        mapped(data, ENTRIES, None)
    with pytest.raises(SparkError, match=r"columns names blob 'digit', but records enter at"):
        mapped(data, ENTRIES, {"digit": "label"})


def test_what_is_misspelt(spark):
    data = spark.createDataFrame([(b"1", 1)], "data binary, Labels int")
    with pytest.raises(SparkError, match=r"no column 'label' .*; did you mean 'Labels'\?"):
        mapped(data, ENTRIES, None)
    with pytest.raises(SparkError, match=r"columns names blob 'labl', .*; did you mean 'label'\?"):
        mapped(data, ENTRIES, {"labl": "Label"})
    with pytest.raises(SparkError, match=r"columns is \['data'\]: a dict"):
        mapped(data, ENTRIES, ["data"])
    with pytest.raises(SparkError, match=r"the data has 2 columns called 'data'"):
        mapped(data.select("data", "data", "Labels"), ENTRIES, {"label": "Labels"})


@pytest.mark.parametrize(
    "made", ["'3'", "current_date()", "array('a')", "map('a', 1)", "struct(1 AS a)", "NULL"]
)
def test_kinds_that_no_net_takes_are_told_without_a_job(spark, made):
    data = spark.sql(f"SELECT array(1.0) AS data, {made} AS digit")
    kind = data.schema["digit"].dataType.simpleString()
    said = f"column 'digit' of the training data is of type {kind}, and a net takes numbers"
    with pytest.raises(SparkError, match=re.escape(said)):
        Trainer(solver(), columns={"label": "digit"}).fit(data)


def test_skewed_partitions_become_even(spark):
    skewed = spark.sparkContext.parallelize(range(1000), 3).filter(lambda n: n < 333)
    data = skewed.map(lambda n: (n,)).toDF("n int")
    held = spark.range(10).selectExpr("cast(id as int) as n")
    found = numbered(data, held, {"label": "n"}, 4, {})
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
def test_an_rdd_where_the_session_is_one_of_connect():
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
