"""A net as a function of columns, of SQL and of streams."""

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.spark import SparkModel
from tests.spark.conftest import CONNECT

NET = """
layer { name: "in" type: "Input" top: "a" top: "b" input_param {
  shape { dim: [4, 3] } shape { dim: [4, 2] } } }
layer { name: "both" type: "Concat" bottom: "a" bottom: "b" top: "both" }
layer { name: "ip" type: "InnerProduct" bottom: "both" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""
ROWS = 30


@pytest.fixture(scope="module")
def net():
    return Net(NET, seed=1)


@pytest.fixture(scope="module")
def frame(session):
    left, right = inputs()
    rows = [(n, x.tolist(), y.tolist(), "wide") for n, (x, y) in enumerate(zip(left, right))]  # noqa: B905
    return session.createDataFrame(rows, "n int, x array<float>, `y.z` array<double>, w string")


def inputs():
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, 3)).astype(np.float32), rng.normal(size=(ROWS, 2))


def expected(net, name):
    left, right = inputs()
    return net.forward({"a": left, "b": right}, [name])[name]


def test_a_function_of_columns(frame, net):
    function = SparkModel(net).udf(["prob"])
    made = frame.select("n", function("x", "`y.z`").alias("prob")).orderBy("n").collect()
    np.testing.assert_allclose([row.prob for row in made], expected(net, "prob"), rtol=1e-5)
    own = SparkModel(net, columns={"a": "x", "b": "y.z"}).udf(["prob", "ip"], batch=7)
    made = frame.withColumn("found", own()).orderBy("n").collect()
    np.testing.assert_allclose([row.found.ip for row in made], expected(net, "ip"), rtol=1e-4)
    np.testing.assert_allclose([row.found.prob for row in made], expected(net, "prob"), rtol=1e-5)
    nested = frame.selectExpr("n", "named_struct('x', x, 'y', `y.z`) AS rec")
    made = nested.select("n", function("rec.x", "rec.y").alias("prob")).orderBy("n").collect()
    np.testing.assert_allclose([row.prob for row in made], expected(net, "prob"), rtol=1e-5)
    with pytest.raises(SparkError, match=r"1 columns are given for the net's inputs \['a', 'b'\]"):
        function("x")
    with pytest.raises(SparkError, match="a column function has no prefix, key, best"):
        SparkModel(net).udf(["prob"], best="class")


def test_a_function_of_sql(session, frame, net):
    from pyspark.sql.functions import expr

    model = SparkModel(net)
    model.register(session, "classify", ["prob"], top=1, labels=["ant", "bee", "cow"])
    frame.createOrReplaceTempView("rows")
    query = "SELECT n, classify(x, `y.z`)[0].name AS name FROM rows WHERE n % 2 = 0 ORDER BY n"
    best = expected(net, "prob").argmax(1)
    names = [["ant", "bee", "cow"][best[n]] for n in range(0, ROWS, 2)]
    assert [row.name for row in session.sql(query).collect()] == names
    model.register(session, "scores", ["ip", "prob"])
    found = frame.select("n", expr("scores(x, `y.z`).ip[2]").alias("third")).orderBy("n").collect()
    np.testing.assert_allclose([row.third for row in found], expected(net, "ip")[:, 2], rtol=1e-4)
    with pytest.raises(SparkError, match="SQL cannot make vectors"):
        model.register(session, "vectors", ["ip"], vectors=True)


@pytest.mark.skipif(CONNECT, reason="the plan is the server's")
def test_only_what_the_net_reads_goes_through_python(frame, net):
    model = SparkModel(net, columns={"a": "x", "b": "y.z"})
    made = model.transform(frame, ["prob"], best="class")
    assert made.columns == ["n", "x", "y.z", "w", "prob", "class"]
    asked = made.where("n > 3 AND class = 1").select("n", "prob")
    plan = asked._jdf.queryExecution().executedPlan().toString()
    before, _, after = plan.partition("ArrowEvalPython")
    assert "sparknet(x" in after.splitlines()[0]
    assert plan.count("ArrowEvalPython [") == 1  # the class is not computed again for the filter
    assert "n#" in after.partition("Filter")[2]  # rows that nobody wants are left out before
    assert "w#" not in before + after.splitlines()[0]
    best = expected(net, "prob").argmax(1)
    assert sorted(row.n for row in asked.collect()) == [
        n for n in range(ROWS) if n > 3 and best[n] == 1
    ]


def test_vectors_for_pyspark_ml(frame, net):
    from pyspark.ml.linalg import DenseVector

    model = SparkModel(net, columns={"a": "x", "b": "y.z"})
    made = model.transform(frame, ["prob"], vectors=True).orderBy("n").collect()
    assert all(isinstance(row.prob, DenseVector) for row in made)
    np.testing.assert_allclose([row.prob for row in made], expected(net, "prob"), rtol=1e-5)
    wrong = frame.selectExpr("n", "if(n = 4, null, x) AS x", "`y.z`")
    made = model.transform(wrong, ["prob"], vectors=True, invalid="null").orderBy("n").collect()
    assert [row.n for row in made if row.prob is None] == [4]


def test_a_function_on_a_stream(session, frame, net, tmp_path):
    from pyspark.sql.functions import expr

    frame.select("n", "x", "`y.z`").write.parquet(str(tmp_path / "rows"))
    stored = session.read.parquet(str(tmp_path / "rows"))
    arriving = session.readStream.schema(stored.schema).parquet(str(tmp_path / "rows"))
    SparkModel(net).register(session, "of_a_stream", ["prob"])
    made = arriving.select("n", expr("of_a_stream(x, `y.z`)").alias("prob"))
    writer = made.writeStream.format("parquet").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "seen")).start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    found = session.read.parquet(str(tmp_path / "out")).orderBy("n").collect()
    np.testing.assert_allclose([row.prob for row in found], expected(net, "prob"), rtol=1e-5)
