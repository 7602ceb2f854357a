"""Train on a stream: each batch of the source continues from the weights of the batch before.

    python examples/train_on_stream.py                    # Spark's rate source
    python examples/train_on_stream.py FOLDER             # JSON files that arrive in a folder
    python examples/train_on_stream.py BROKER:9092 TOPIC  # JSON messages of Kafka

A record is {"place": [0.1, 0.7], "side": 0}.  Kafka's source is a package of Spark's own:
spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.spark import SparkModel, Trainer, get_session

WORKERS, BATCHES = 2, 4
SCHEMA = "place array<double>, side long"
NOISE = "pmod(sin(value * {}) * 43758.5453, 1)"
COLUMNS = {"data": "place", "label": "side"}

net = NetParams(
    "sides",
    RDDLayer("data", shape=[10, 2]),
    RDDLayer("label", shape=[10]),
    LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
    SoftmaxWithLoss("loss", ["ip", "label"]),
)
solver = SolverParams(net=net, base_lr=0.5, momentum=0.9, lr_policy="fixed", random_seed=1)


def arriving(spark: Any, words: list[str]) -> Any:
    """Return the stream of records."""
    source = spark.readStream
    if not words:
        return places(source.format("rate").option("rowsPerSecond", 200).load())
    if len(words) == 1:
        return source.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(words[0])
    messages = source.format("kafka").option("kafka.bootstrap.servers", words[0])
    texts = (
        messages.option("subscribe", words[1]).load().selectExpr("CAST(value AS STRING) AS text")
    )
    return texts.selectExpr(f"from_json(text, '{SCHEMA}') AS record").select("record.*")


def places(numbers: Any) -> Any:
    """Return points of the unit square, and whether they lie below its diagonal."""
    x, y = NOISE.format(12.9898), NOISE.format(78.233)
    return numbers.selectExpr(f"array({x}, {y}) AS place", f"CAST({x} > {y} AS LONG) AS side")


def newest(folder: Path) -> Path | None:
    """Return the weights of the last batch."""
    return max(folder.glob("*.caffemodel"), key=lambda path: int(path.stem), default=None)


def main(words: list[str]) -> float:
    spark = get_session(WORKERS)
    folder = Path(tempfile.mkdtemp(prefix="stream-"))

    def learn(batch: Any, number: int) -> None:
        """Train on a batch; Spark may call this twice for one that it had not noted as done."""
        done = folder / f"{number}.caffemodel"
        batch.persist()  # training reads it several times
        if number <= BATCHES and not done.exists() and not batch.isEmpty():
            trainer = Trainer(
                solver, workers=WORKERS, epochs=4, weights=newest(folder), columns=COLUMNS
            )
            trainer.fit(batch).net.save(done)
        batch.unpersist()

    writer = arriving(spark, words).writeStream.foreachBatch(learn)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    if len(words) == 1:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    while not query.awaitTermination(1) and len(list(folder.glob("*.caffemodel"))) < BATCHES:
        pass
    query.stop()
    held_out = places(spark.range(10_000_000, 10_000_400).selectExpr("id AS value"))
    last = newest(folder)
    assert last is not None
    found: Any = SparkModel(last, columns={"data": "place"}).evaluate(held_out, "side")
    print(f"batches {len(list(folder.glob('*.caffemodel')))}")
    print(f"accuracy {found.accuracy:.2%} on points that did not arrive")
    spark.stop()
    return float(found.accuracy)


if __name__ == "__main__":
    main(sys.argv[1:])
