"""Find objects in photographs, cut them out, and look up the nearest ones of a catalogue.

    python examples/detect_and_match.py [workers] [folder for pictures] [epochs] [seeds]
    spark-submit examples/detect_and_match.py …

A small SSD learns to find circles, squares, crosses and triangles in drawn scenes, on the workers
of Spark.  It then finds them in new scenes; each is cut out and becomes features by the detector's
own first layers; and each is matched with the nearest five objects of a catalogue by the cosine of
the features.  BigDL's users built this for a shop's photographs (arXiv 1804.05839, section 5.1).
Beside the detector stand a threshold and a forest that knows outlines, which need no net.  Each
seed has scenes of its own.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from regions import Finder, mean_precision
from scenes import MOST, NAMES, png, scene
from trials import against, head, row

from sparknet import ConvLayer, NetParams, PoolLayer, RDDLayer, SolverParams
from sparknet.dsl import Flatten, ReLU
from sparknet.models import Map, ssd
from sparknet.report import Progress
from sparknet.spark import SparkModel, Trainer, cut_out, get_session

SIDE, CUT, BATCH, EPOCHS, NEAREST = 104, 40, 16, 5, 5
PIXELS: dict[str, Any] = {"mean": 96, "scale": 1 / 64}
SCENES = {"learned": 1200, "held out": 200, "on the shelf": 150, "asked for": 50}


def trunk(batch: int, side: int) -> list[Any]:
    """The layers that the detector and the features share; the last map has a place for every 8
    pixels."""
    layers: list[Any] = [RDDLayer("data", shape=[batch, 3, side, side])]
    below = "data"
    for number, filters in enumerate((16, 32, 64, 64), 1):
        conv, relu, pool = f"conv{number}", f"relu{number}", f"pool{number}"
        layers += [
            ConvLayer(conv, below, kernel=3, pad=1, num_filters=filters, weight_filler="msra"),
            ReLU(relu, conv, in_place=True),
        ]
        if number < 4:
            layers.append(PoolLayer(pool, conv, pool="max", kernel=2, stride=2))
        below = pool
    return layers


detector = NetParams(
    "shapes",
    trunk(BATCH, SIDE),
    RDDLayer("boxes", shape=[BATCH, MOST, 5]),
    ssd([Map("conv4", least=20, most=45)], len(NAMES)),
)
features = NetParams(
    "features",
    trunk(1, CUT),
    PoolLayer("pooled", "conv4", pool="max", global_pooling=True),
    Flatten("features", "pooled"),
)


def rows(first: int, count: int) -> Iterator[tuple[int, bytes, list[list[float]]]]:
    """Scenes as rows of a table: a number, a PNG file, and its boxes."""
    for number in range(first, first + count):
        picture, _, boxes = scene(np.random.default_rng(number), SIDE)
        yield number, png(picture), [list(map(float, box)) for box in boxes]


def tables(spark: Any, first: int) -> list[Any]:
    schema, made = "id long, content binary, boxes array<array<float>>", list[Any]()
    for count in SCENES.values():
        made.append(spark.createDataFrame(list(rows(first, count)), schema).repartition(4))
        first += count
    return made


def sure(finder: SparkModel, pictures: Any) -> Any:
    """The pictures with what the detector is sure of: an array of label, score and corners."""
    from pyspark.sql import functions as F

    found = finder.transform(pictures, ["detection_out"])
    likely = F.filter("detection_out", lambda one: one.score > 0.5)
    return found.select("id", "content", likely.alias("sure"))


def objects(pictures: Any, describer: SparkModel) -> Any:
    """A row for each object in the pictures: what was found, and features of length 1."""
    from pyspark.sql import functions as F

    described = describer.transform(cut_out(pictures, "content", "sure"), ["features"])
    length = F.expr("sqrt(aggregate(features, 0D, (sum, x) -> sum + x * x))")
    return described.withColumn("features", F.transform("features", lambda x: x / length))


def matches(shelf: Any, asked: Any) -> Any:
    """For each object that is asked for, its label and those of the nearest on the shelf."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    near = "aggregate(zip_with(asked, features, (x, y) -> x * y), 0D, (sum, x) -> sum + x)"
    wanted = asked.select(
        F.monotonically_increasing_id().alias("number"),
        F.struct("content", "object.label").alias("one"),
        F.col("features").alias("asked"),
    )
    pairs = wanted.crossJoin(F.broadcast(shelf)).withColumn("near", F.expr(near))
    nearest = Window.partitionBy("number").orderBy(F.desc("near"), "id")
    ranked = pairs.withColumn("rank", F.row_number().over(nearest)).where(f"rank <= {NEAREST}")
    match = F.struct("rank", "object.label", "content")
    found = ranked.groupBy("number", "one").agg(F.array_sort(F.collect_list(match)).alias("found"))
    return found.orderBy("number").select("one.*", "found")


def main(
    workers: int = 2, folder: str | None = None, epochs: int = EPOCHS, seeds: int = 1
) -> tuple[float, float]:
    spark = get_session(workers)
    nets, plain, alike = list[float](), list[float](), list[float]()
    for seed in range(1, seeds + 1):
        first = (seed - 1) * sum(SCENES.values())
        learned, held, shelf, asked = tables(spark, first)
        solver = SolverParams(
            net=detector,
            base_lr=0.002,
            type="Adam",
            momentum=0.9,
            lr_policy="fixed",
            random_seed=seed,
        )
        columns = {"data": "content"}
        trainer = Trainer(
            solver,
            "allreduce",
            workers,
            columns=columns,
            epochs=epochs,
            seed=seed,
            on_event=Progress(),
            **PIXELS,
        )
        trained = trainer.fit(learned, held)
        nets.append(trained.outcome.metrics["mean_ap"])
        with tempfile.TemporaryDirectory() as place:
            weights = str(Path(place, "shapes.caffemodel"))
            trained.net.save(weights)
            describer = SparkModel(features, weights, columns=columns, resize=CUT, **PIXELS)
            seen = [sure(trained.model, pictures).cache() for pictures in (shelf, asked)]
            answers = matches(*(objects(one, describer) for one in seen)).collect()
        right = [match.label == one.label for one in answers for match in one.found]
        alike.append(float(np.mean(right)))
        scenes = range(first, first + SCENES["learned"] + SCENES["held out"])
        finder = Finder(scenes[: SCENES["learned"]], SIDE)
        plain.append(mean_precision(finder, scenes[SCENES["learned"] :]))
    head("mean AP")
    row("threshold, outlines", plain)
    (precision,) = row("detector", nets)
    against(plain, nets)
    print(f"mean average precision {precision:.1%} on {SCENES['held out']} scenes")
    print(f"nearest {NEAREST} of the same kind, of {len(answers)} objects")
    (share,) = row("detector's first layers", alike)
    print(f"accuracy {share:.1%}")
    if folder is not None:
        import gallery

        gallery.boxed(Path(folder, "detections.png"), seen[1].limit(8).collect(), NAMES)
        gallery.matched(Path(folder, "matches.png"), answers, NAMES)
    spark.stop()
    return precision, share


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 2, words[1] if words[1:] else None, *map(int, words[2:]))
