"""Somebody who trains on a DataFrame of Spark and looks at the result."""

from pathlib import Path

from sparknet import InnerProduct, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.spark import SparkTrained, Trainer, get_session, read_records
from sparknet.training import Averaging
from sparknet.training.events import Event

session = get_session(2, config={"spark.sql.shuffle.partitions": 4})
digits = NetParams(
    "digits",
    RDDLayer("data", shape=[64, 784]),
    RDDLayer("label", shape=[64]),
    InnerProduct("ip", "data", num_output=10, weight_filler={"type": "xavier"}),
    SoftmaxWithLoss("loss", ["ip", "label"]),
)
solver = SolverParams(net=digits, base_lr=0.1, lr_policy="fixed", momentum=0.9)


def tell(event: Event) -> None:
    if event["event"] == "validation":
        print(event["metrics"])


trainer = Trainer(
    solver,
    strategy=Averaging(steps=10),
    workers=4,
    epochs=3,
    metrics=["confusion"],
    precision="bf16",
    class_weights={0: 2.0, 1: 1.0},
    invalid="drop",
    snapshots=Path("snapshots"),
    on_event=tell,
)
rows = session.read.parquet("train.parquet")
held = read_records(session, "test_lmdb")
trained: SparkTrained = trainer.fit(rows, held, resume=True)
iterations: int = trained.outcome.iteration
places, losses = trained.history.loss
best: float = min(losses)
trained.history.to_pandas("validation").to_csv("validation.csv")
scores = trained.model.evaluate(held, label="label", invalid="drop")
print(scores.rows, scores.dropped)
trained.model.save("digits.caffemodel")
