"""Rows that `evaluate` cannot count: raised, or left out and counted."""

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.spark import SparkModel
from sparknet.spark.pipeline import NetModel

NET = """
layer { name: "in" type: "Input" top: "x" top: "label" top: "amount"
  input_param { shape { dim: 4 dim: 2 } shape { dim: 4 } shape { dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "value" type: "InnerProduct" bottom: "x" top: "value"
  inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "l2" type: "EuclideanLoss" bottom: "value" bottom: "amount" top: "l2" }
"""
BAD = {
    "an input is null": {"x": None},
    "an input is no number": {"x": [1.0, float("nan")]},
    "an input has another length": {"x": [1.0, 2.0, 3.0]},
    "the label is null": {"label": None},
    "the label is no class": {"label": 3},
    "the truth is no number": {"amount": float("nan")},
}
SCHEMA = "x array<double>, label int, amount double"


def rows(bad):
    """Forty good rows, and the same with bad ones among them."""
    rng = np.random.default_rng(0)
    good = [
        {"x": rng.normal(size=2).tolist(), "label": int(n % 3), "amount": float(rng.normal())}
        for n in range(40)
    ]
    mixed = list(good)
    for number, name in enumerate(bad):
        mixed.insert(7 * number + 3, {**good[number], **BAD[name]})
    return good, mixed


def same(found, want, dropped):
    assert want.dropped == 0
    assert (found.rows, found.dropped) == (40, dropped)
    assert found.confusion.tolist() == want.confusion.tolist()
    (one,), (other,) = found.others.values(), want.others.values()
    assert (one.rows, one.dropped) == (40, dropped)
    assert one.rmse == pytest.approx(other.rmse)


def test_bad_rows_of_every_kind_in_a_pipeline(session):
    good, mixed = rows(tuple(BAD))
    model = SparkModel(Net(NET, seed=1))
    data = session.createDataFrame(mixed, SCHEMA).coalesce(1)
    want = model.evaluate(session.createDataFrame(good, SCHEMA))
    same(NetModel(model, handleInvalid="skip").evaluate(data), want, len(BAD))
    same(model.evaluate(data.repartition(3), invalid="drop"), want, len(BAD))
    with pytest.raises(Exception, match="column '"):
        NetModel(model).evaluate(data)


def test_no_valid_row_at_all(session):
    model = SparkModel(Net(NET, seed=1))
    bad = session.createDataFrame([{"x": [1.0, 2.0], "label": 7, "amount": 1.0}] * 5, SCHEMA)
    with pytest.raises(SparkError, match="none of the 5 rows is valid: invalid='raise' names one"):
        model.evaluate(bad, invalid="drop")
    assert model.evaluate(bad.limit(0), invalid="drop").rows == 0
    with pytest.raises(SparkError, match="invalid is 'null': it is one of raise, drop"):
        model.evaluate(bad, invalid="null")
    with pytest.raises(Exception, match="column 'label' holds 7, and there are 3 classes"):
        model.evaluate(bad)


def test_an_evaluation_of_no_rows_says_so(session):
    with pytest.warns(UserWarning, match="the data has no rows, and an evaluation of nothing"):
        found = SparkModel(Net(NET)).evaluate(session.createDataFrame([], SCHEMA))
    assert found.rows == 0
