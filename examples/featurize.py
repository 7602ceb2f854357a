"""Compute a net's features as a DataFrame column, and train a classifier of Spark on them.

    python examples/featurize.py [net.prototxt net.caffemodel blob images.parquet]
    spark-submit examples/featurize.py …

Without arguments, a LeNet learns the digits 0 to 4, and a logistic regression classifies its
features of the digits 5 to 9.  The Parquet file has columns 'data' and 'label'.
"""

from __future__ import annotations

import sys
from typing import Any

from digits import digits, solver
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.functions import array_to_vector

from sparknet.loaders import Chain
from sparknet.spark import SparkModel, Trainer, get_session, read_records

WORKERS = 2


def main(words: list[str]) -> float:
    spark = get_session(WORKERS)
    if words:
        model, blob, images = SparkModel(words[0], words[1]), words[2], spark.read.parquet(words[3])
    else:
        model, blob, images = *first_five(spark), others(spark)
    featurized = model.transform(images, [blob])
    table = featurized.select(array_to_vector(blob).alias("features"), "label").cache()
    learned, held_out = table.randomSplit([0.8, 0.2], seed=1)
    fitted = LogisticRegression(maxIter=20).fit(learned)
    predicted = fitted.transform(held_out)
    accuracy: float = predicted.where("prediction = label").count() / held_out.count()
    print(f"accuracy {accuracy:.2%} by {blob}")
    spark.stop()
    return accuracy


def first_five(spark: Any) -> tuple[SparkModel, str]:
    data = read_records(spark, digits()[0]).where("label < 5")
    return Trainer(solver, workers=WORKERS, steps=60).fit(data).model, "ip1"


def others(spark: Any) -> Any:
    return read_records(spark, Chain(digits())).where("label >= 5")


if __name__ == "__main__":
    main(sys.argv[1:])
