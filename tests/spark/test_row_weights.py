"""Weights of rows and of classes, against sklearn's weighted losses."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet.errors import SettingError, SparkError
from sparknet.spark import Trainer

ROWS = 24
DECAY = 0.05
NET = """net_param {{ name: "rows"
  layer {{ name: "data" type: "Input" top: "data" top: "label"
    input_param {{ shape {{ dim: [24, 2] }} shape {{ dim: {label} }} }} }}
  layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip" param {{ }}
    param {{ decay_mult: 0 }} inner_product_param {{ num_output: {outputs} }} }}
  layer {{ name: "loss" type: "{loss}" bottom: "ip" bottom: "label" top: "loss" }} }}
  base_lr: 0.3 momentum: 0.9 weight_decay: 0.05 lr_policy: "fixed" max_iter: 600"""


@pytest.fixture(scope="module")
def table(session):
    random = np.random.default_rng(3)
    points = random.normal(size=(ROWS, 2))
    rows = [
        (
            [float(x), float(y)],
            int(x + random.normal() * 0.7 > 0) + int(y > 1),
            float(2 * x - y + random.normal()),
            float(random.integers(0, 5)),
        )
        for x, y in points
    ]
    return session.createDataFrame(
        rows, "features array<double>, label int, y double, w double"
    ).coalesce(1)


def arrays(table):
    rows = table.collect()
    return (np.array([row[index] for row in rows]) for index in range(4))


def trained(table, loss, outputs, label="24", *, seed=0, **settings):
    solver = NET.format(loss=loss, outputs=outputs, label=label)
    columns = {"data": "features", **settings.pop("columns", {})}
    found = Trainer(solver, workers=1, columns=columns, seed=seed, **settings).fit(table)
    weight, bias = found.weights["ip"]
    return np.asarray(weight), np.asarray(bias), found


def test_softmax_as_sklearn(table):
    from sklearn.linear_model import LogisticRegression

    x, labels, _, w = arrays(table)
    classes = {0: 1.0, 1: 3.0}
    sums = w * np.where(labels == 1, 3.0, 1.0)
    judge = LogisticRegression(C=1 / (DECAY * sums.sum()), class_weight=classes, tol=1e-8)
    judge.fit(x, labels, sample_weight=w)
    weight, bias, found = trained(
        table, "SoftmaxWithLoss", 3, weight_column="w", class_weights={0: 1.0, 1: 3.0}
    )
    np.testing.assert_allclose(weight, judge.coef_, atol=2e-3)
    np.testing.assert_allclose(bias - bias.mean(), judge.intercept_, atol=4e-3)
    p = judge.predict_proba(x)[np.arange(ROWS), labels]
    loss = -(sums * np.log(p)).sum() / sums.sum()
    last = [event for event in found.history if event["event"] == "round"][-1]
    assert last["loss"] == pytest.approx(loss, abs=1e-3)
    assert "record_weight" not in found.net.inputs


def test_sigmoid_and_balanced_classes_as_sklearn(table):
    from sklearn.linear_model import LogisticRegression

    binary = table.selectExpr("features", "CAST(label > 0 AS INT) AS label")
    x, labels = (np.array(part) for part in zip(*binary.collect(), strict=True))
    judge = LogisticRegression(C=1 / (DECAY * ROWS), class_weight="balanced", tol=1e-8)
    judge.fit(x, labels)
    weight, bias, _ = trained(
        binary, "SigmoidCrossEntropyLoss", 1, "[24, 1]", class_weights="balanced"
    )
    np.testing.assert_allclose(weight, judge.coef_, atol=2e-3)
    np.testing.assert_allclose(bias, judge.intercept_, atol=2e-3)


def test_squares_in_closed_form(table):
    x, _, y, w = arrays(table)
    weight, bias, _ = trained(
        table, "EuclideanLoss", 1, "[24, 1]", columns={"label": "y"}, weight_column="w"
    )
    one = np.column_stack([x, np.ones(ROWS)])
    left = one.T @ (one * w[:, None]) / w.sum() + DECAY * np.diag([1, 1, 0])
    wanted = np.linalg.solve(left, one.T @ (w * y) / w.sum())
    np.testing.assert_allclose([*weight[0], bias[0]], wanted, atol=1e-3)


def test_several_workers_and_validation(table):
    """Rows of weight 0 teach nothing, wherever they lie; validation counts all rows alike."""
    wrong = table.selectExpr("features", "2 - label AS label", "0.0 AS w")
    right = table.selectExpr("features", "label", "1.0 AS w")
    settings = {"workers": 2, "steps": 150, "weight_column": "w", "strategy": "allreduce"}
    solver = NET.format(loss="SoftmaxWithLoss", outputs=3, label="24")
    trainer = Trainer(solver, columns={"data": "features"}, **settings)
    found = trainer.fit(right.unionByName(wrong), validation=right.drop("w"))
    alone = Trainer(solver, columns={"data": "features"}, workers=1, steps=150).fit(
        right, validation=right.drop("w")
    )
    assert found.outcome.metrics["loss"] == pytest.approx(alone.outcome.metrics["loss"], abs=0.05)
    unweighted = replace(trainer, weight_column=None).fit(
        right.unionByName(wrong), validation=right
    )
    assert unweighted.outcome.metrics["loss"] > found.outcome.metrics["loss"] + 0.1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"weight_column": "wight"}, "the data has no column 'wight' for weights"),
        (
            {"weight_column": "features"},
            "column 'features' has type array<double>: weights must be numbers",
        ),
        (
            {"weight_column": "gone"},
            "column 'gone' is null in a row: a weight must be finite and at least 0",
        ),
        ({"weight_column": "below"}, "column 'below' is -1 in a row"),
        ({"weight_column": "none"}, "the weights of the 24 training rows add up to 0"),
        ({"weight_column": 3}, "weight_column must be a name, not 3"),
        (
            {"class_weights": {0: -1}},
            "class_weights has 0: -1, which is not a label with its weight",
        ),
        ({"class_weights": {"a": 1}}, "class_weights has 'a': 1, which"),
        ({"class_weights": "even"}, "class_weights is 'even': a dict of labels"),
    ],
)
def test_what_is_no_weight(table, settings, said):
    odd = table.selectExpr(
        "*", "0.0 AS none", "IF(w > 2, NULL, 1) AS gone", "IF(w > 2, -1, 1) AS below"
    )
    with pytest.raises((SettingError, SparkError), match=said):
        trained(odd, "SoftmaxWithLoss", 3, **settings)
