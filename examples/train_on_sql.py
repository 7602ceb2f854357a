"""Train on the result of a SQL query: a small net classifies wines by chemical measurements.

    python examples/train_on_sql.py
    spark-submit examples/train_on_sql.py

The table comes with scikit-learn: 178 wines, 13 measurements each.
"""

from __future__ import annotations

from typing import Any

from sparknet import (
    ActivationLayer,
    LinearLayer,
    NetParams,
    RDDLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.dsl import Accuracy
from sparknet.report import Progress
from sparknet.spark import Trainer, get_session

WORKERS = 2
MEASURED = ("alcohol", "malic_acid", "color_intensity", "hue", "proline")
LEARNED = "(number % 5 > 0)"

net = NetParams(
    "wine",
    RDDLayer("data", shape=[20, len(MEASURED)]),
    RDDLayer("label", shape=[20]),
    LinearLayer("ip1", "data", num_outputs=16, weight_filler="xavier"),
    ActivationLayer("relu1", "ip1", activation="relu", in_place=True),
    LinearLayer("ip2", "ip1", num_outputs=3, weight_filler="xavier"),
    Accuracy("accuracy", ["ip2", "label"], include="TEST"),
    SoftmaxWithLoss("loss", ["ip2", "label"]),
)
solver = SolverParams(net=net, base_lr=0.1, momentum=0.9, lr_policy="fixed", random_seed=1)


def main() -> float:
    spark = get_session(WORKERS)
    table(spark).createOrReplaceTempView("wine")
    scaled = ", ".join(map(normalised, MEASURED))
    wines = spark.sql(f"SELECT number, array({scaled}) AS features, kind FROM wine").cache()
    trainer = Trainer(
        solver,
        workers=WORKERS,
        columns={"data": "features", "label": "kind"},
        epochs=40,
        on_event=Progress(),
    )
    trained = trainer.fit(wines.where(LEARNED), wines.where(f"NOT {LEARNED}"))
    predicted = trained.model.transform(wines, columns={"data": "features"}, best="predicted")
    predicted.groupBy("kind", "predicted").count().orderBy("kind", "predicted").show()
    accuracy = trained.outcome.metrics["accuracy"]
    print(f"accuracy {accuracy:.2%} on a fifth that was held out")
    spark.stop()
    return accuracy


def normalised(name: str) -> str:
    """A column less its mean, over its deviation: those of the rows that are trained on."""
    learned = f"if({LEARNED}, {name}, NULL)"
    return f"({name} - avg({learned}) OVER ()) / std({learned}) OVER ()"


def table(spark: Any) -> Any:
    from sklearn.datasets import load_wine

    wine = load_wine()
    places = [wine.feature_names.index(name) for name in MEASURED]
    rows = [
        (number, *(float(row[place]) for place in places), int(kind))
        for number, (row, kind) in enumerate(zip(wine.data, wine.target, strict=True))
    ]
    return spark.createDataFrame(rows, ["number", *MEASURED, "kind"])


if __name__ == "__main__":
    main()
