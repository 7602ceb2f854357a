"""Names of columns as Spark takes them: fields of structs, other cases, dots and namesakes."""

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.spark import SparkModel, Trainer

NET = """net_param { name: "sides"
  layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [4, 3] } } }
  layer { name: "label" type: "Input" top: "label" input_param { shape { dim: [4] } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" } }
  base_lr: 0.1 lr_policy: "fixed" random_seed: 1"""
SUM = """layer { name: "x" type: "Input" top: "x" input_param { shape { dim: [4, 1] } } }
  layer { name: "y" type: "Input" top: "y" input_param { shape { dim: [4, 1] } } }
  layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "y" top: "sum"
    eltwise_param { coeff: 1 coeff: 2 } }"""
FEAT = "array(id / 7, 2.0D, 3.0D)"


@pytest.fixture(scope="module")
def rows(session):
    """Two columns have one name and two differ in a dot; the net reads neither."""
    return session.range(0, 12, 1, 2).selectExpr(
        "id",
        f"named_struct('Feat', {FEAT}, 'label', id % 3) AS rec",
        f"{FEAT} AS X",
        "id % 3 AS Label",
        "1 AS more",
        "2 AS more",
        "array(1.0D) AS `a.b`",
        "array(10.0D) AS a_b",
    )


@pytest.mark.parametrize("columns", [None, {"x": "x"}, {"x": "rec.Feat"}, {"x": "REC.feat"}])
@pytest.mark.parametrize("invalid", ["raise", "drop"])
def test_predicting(rows, columns, invalid):
    net = Net(NET)
    made = SparkModel(net).transform(rows, columns=columns, invalid=invalid, best="class")
    assert made.columns == [*rows.columns, "ip", "class"]
    found = {row.id: row for row in made.select("id", "ip", "class").collect()}
    inputs = np.array([[number / 7, 2, 3] for number in range(12)], np.float32)
    wanted = net.forward({"x": inputs}, ["ip"])["ip"]
    np.testing.assert_allclose([found[id].ip for id in range(12)], wanted, rtol=1e-5)
    assert [found[id]["class"] for id in range(12)] == wanted.argmax(1).tolist()


def test_training_and_evaluating(rows):
    named = {"x": "rec.feat", "label": "rec.LABEL"}
    weights = [
        np.asarray(
            Trainer(NET, workers=1, steps=3, columns=columns)
            .fit(rows, validation=rows.drop("more").withColumnRenamed("Label", "LABEL"))
            .weights.flat
        )
        for columns in (None, named)
    ]
    np.testing.assert_array_equal(*weights)
    model = SparkModel(Net(NET))
    plain, fields = model.evaluate(rows), model.evaluate(rows, "rec.label", columns=named)
    np.testing.assert_array_equal(plain.confusion, fields.confusion)
    assert plain.rows == plain.confusion.sum() == 12


def test_a_dot_and_an_underscore(rows):
    model = SparkModel(Net(SUM), columns={"x": "a.b", "y": "a_b"})
    for invalid in ("raise", "drop"):
        made = model.transform(rows, invalid=invalid)
        assert {row["sum"] for row in made.select("sum").collect()} == {21.0}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"x": "rec.fear"}, "the data has no column 'rec.fear' for the net's input 'x'"),
        ({"x": "rec.Feat.y"}, "the data has no column 'rec.Feat.y' for"),
        ({"x": "more"}, "the data has 2 columns called 'more': rename or drop"),
    ],
)
def test_no_such_column(rows, columns, said):
    with pytest.raises(SparkError, match=said):
        SparkModel(Net(NET)).transform(rows, columns=columns)


def test_where_spark_is_case_sensitive(session, rows):
    model = SparkModel(Net(NET))
    session.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SparkError, match=r"no column 'x' .*; did you mean 'X'"):
            model.transform(rows)
        alone = rows.selectExpr("X AS x", "'text' AS X")
        assert model.transform(alone).columns == ["x", "X", "ip"]
    finally:
        session.conf.unset("spark.sql.caseSensitive")
    with pytest.raises(SparkError, match="the data has 2 columns called 'x': rename or drop"):
        model.transform(alone)
