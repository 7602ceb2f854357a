"""Fine-tune a Caffe model: layers of the same names keep its weights, the last layer is new.

    python examples/finetune.py [caffemodel]
    spark-submit examples/finetune.py [caffemodel]

Without a caffemodel, a LeNet learns the digits first, and then to tell odd from even ones.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from digits import digits, net, solver
from pyspark.sql import functions

from sparknet import SolverParams
from sparknet.proto import parse_net
from sparknet.report import Progress
from sparknet.spark import Trainer, get_session, read_records

WORKERS = 2


def main(caffemodel: str) -> float:
    spark = get_session(WORKERS)
    parity = functions.col("label") % 2
    learned, held_out = (read_records(spark, part).withColumn("label", parity) for part in digits())
    if not Path(caffemodel).exists():
        digits_known = Trainer(solver, workers=WORKERS, steps=100, on_event=Progress())
        digits_known.fit(read_records(spark, digits()[0])).net.save(caffemodel)
    tuner = Trainer(
        tuned(), "allreduce", WORKERS, weights=caffemodel, steps=60, on_event=Progress()
    )
    accuracy = tuner.fit(learned, held_out).outcome.metrics["accuracy"]
    print(f"accuracy {accuracy:.2%} of odd and even")
    spark.stop()
    return accuracy


def tuned() -> SolverParams:
    """A solver whose last layer has a new name, and new weights; the others learn slowly."""
    changed = parse_net(net.to_prototxt().replace('"ip2"', '"odd_or_even"'))
    for layer in changed.layer:
        for number in range(2 if layer.type in ("Convolution", "InnerProduct") else 0):
            if len(layer.param) <= number:
                layer.param.add()
            layer.param[number].lr_mult = 1 if layer.name == "odd_or_even" else 0.1
        if layer.name == "odd_or_even":
            layer.inner_product_param.num_output = 2
    return SolverParams(
        net_param=changed, base_lr=0.02, momentum=0.9, lr_policy="fixed", random_seed=1
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/digits.caffemodel")
