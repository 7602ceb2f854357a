"""Tell the class of each pixel, and compare ways of averaging what two workers learn.

    python examples/segment.py [workers] [folder for pictures] [epochs] [seeds]
    spark-submit examples/segment.py …

A small fully convolutional net (FCN, Long et al. 2015) learns drawn scenes whose masks are a column
of bytes.  Its validation metric is the mean intersection over union of the classes.  One worker,
averaging every ten steps, dynamic averaging (as Alkhoury et al. 2021 do for roads) and one
averaging at the end see as many scenes each.  A threshold and a forest that knows outlines, without
a net, stand in the same table: on a plain background they are as good.  Each seed has scenes of its
own, which are those of all ways.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from regions import Finder, mean_iou
from scenes import NAMES, png, scene
from trials import against, head, row

from sparknet import ConvLayer, NetParams, PoolLayer, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import Deconvolution, Eltwise, ReLU
from sparknet.spark import Trainer, get_session
from sparknet.training import Averaging, DynamicAveraging

SIDE, BATCH, EPOCHS = 64, 16, 8
SCENES = {"learned": 1200, "held out": 200}
CLASSES = len(NAMES)


def conv(name: str, below: str, filters: int) -> list[Any]:
    """A convolution that keeps the size, with its ReLU."""
    return [
        ConvLayer(name, below, kernel=3, pad=1, num_filters=filters, weight_filler="msra"),
        ReLU(f"relu_{name}", name, in_place=True),
    ]


def twice(name: str, below: str) -> Any:
    """Scores in twice the size, which begin as the bilinear interpolation."""
    return Deconvolution(
        name,
        below,
        num_output=CLASSES,
        group=CLASSES,
        kernel_size=4,
        stride=2,
        pad=1,
        bias_term=False,
        weight_filler="bilinear",
    )


net = NetParams(
    "segments",
    RDDLayer("data", shape=[BATCH, 3, SIDE, SIDE]),
    RDDLayer("label", shape=[BATCH, 1, SIDE, SIDE]),
    conv("conv1", "data", 16),
    PoolLayer("pool1", "conv1", pool="max", kernel=2, stride=2),
    conv("conv2", "pool1", 32),
    PoolLayer("pool2", "conv2", pool="max", kernel=2, stride=2),
    conv("conv3", "pool2", 64),
    PoolLayer("pool3", "conv3", pool="max", kernel=2, stride=2),
    conv("conv4", "pool3", 64),
    [
        ConvLayer(f"score{depth}", f"conv{depth}", kernel=1, num_filters=CLASSES)
        for depth in (1, 2, 3, 4)
    ],
    twice("up4", "score4"),
    Eltwise("sum3", ["up4", "score3"]),
    twice("up3", "sum3"),
    Eltwise("sum2", ["up3", "score2"]),
    twice("up2", "sum2"),
    Eltwise("score", ["up2", "score1"]),
    SoftmaxWithLoss("loss", ["score", "label"]),
)


def table(spark: Any, first: int, count: int) -> Any:
    """Scenes as rows: a number, a PNG file, and the class of each pixel as a byte."""
    rows = []
    for number in range(first, first + count):
        picture, classes, _ = scene(np.random.default_rng(number), SIDE)
        rows.append((number, png(picture), classes.tobytes()))
    return spark.createDataFrame(rows, "id long, content binary, mask binary").repartition(4)


def told(trained: Any, workers: int) -> tuple[float, int, float]:
    """The mean intersection over union, how often weights were averaged, and megabytes sent."""
    rounds = [event for event in trained.history if event["event"] == "round"]
    size = trained.weights.flat.size * 4
    shared = sum(event["bytes_sent"] > size / 2 for event in rounds)
    sent = sum(event["bytes_sent"] for event in rounds) / workers / 1e6
    return float(trained.outcome.metrics["mean_iou"]), shared, sent


def main(
    workers: int = 2, folder: str | None = None, epochs: int = EPOCHS, seeds: int = 1
) -> float:
    spark = get_session(workers)
    once = 1 + epochs * SCENES["learned"] // BATCH
    rarely = max(1, once // workers // 4)  # as often as the dynamic way averages
    control = f"every {rarely} steps"
    ways = {
        "every 10 steps": Averaging(steps=10),
        control: Averaging(steps=rarely),
        "dynamic": DynamicAveraging(threshold=0.1),
        "once, at the end": Averaging(steps=once),
    }
    plain: list[float] = []
    found: dict[str, list[Any]] = {}
    for seed in range(1, seeds + 1):
        first = (seed - 1) * sum(SCENES.values())
        split, end = first + SCENES["learned"], first + sum(SCENES.values())
        plain.append(mean_iou(Finder(range(first, split), SIDE), range(split, end)))
        learned = table(spark, first, SCENES["learned"]).cache()
        held = table(spark, split, SCENES["held out"]).cache()
        solver = SolverParams(
            net=net, base_lr=0.002, type="Adam", momentum=0.9, lr_policy="fixed", random_seed=seed
        )
        alone = Trainer(
            solver,
            workers=1,
            columns={"data": "content", "label": "mask"},
            epochs=epochs,
            metrics=["mean_iou"],
            metric="mean_iou",
            seed=seed,
            mean=96,
            scale=1 / 64,
        )
        trained = alone.fit(learned, held)
        found.setdefault("one worker", []).append(told(trained, 1))
        for name, strategy in ways.items() if workers > 1 else ():
            one = replace(alone, strategy=strategy, workers=workers).fit(learned, held)
            found.setdefault(name, []).append(told(one, workers))
    print(f"{workers} workers")
    head("mean IoU", "averaged", "MB sent by each")
    row("threshold, outlines", plain)
    for name, each in found.items():
        row(name, each, ".1%", ".0f", ".1f")
    against(plain, [iou for iou, *_ in found["one worker"]])
    if workers > 1:
        rare, dynamic = ([iou for iou, *_ in found[name]] for name in (control, "dynamic"))
        print("dynamic averaging, and its control:")
        against(rare, dynamic)
    best = float(np.mean([iou for iou, *_ in found["one worker"]]))
    if folder is not None:
        import gallery

        shown = trained.model.transform(held.orderBy("id").limit(6), ["score"], mask="bytes")
        gallery.masked(Path(folder, "segments.png"), shown.collect(), SIDE)
    print(f"mean IoU {best:.1%}")
    spark.stop()
    return best


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 2, words[1] if words[1:] else None, *map(int, words[2:]))
