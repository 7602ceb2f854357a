"""Find objects in photographs, cut them out, and look up the nearest ones of a catalogue.

    python examples/detect_and_match.py

A small SSD learns to find circles, squares and crosses in drawn scenes.  On Spark it then finds
them in new scenes; each is cut out and becomes features by the detector's own first layers; and
each is matched with the nearest five objects of a catalogue by the cosine of the features.
BigDL's users built this for a shop's photographs (arXiv 1804.05839, section 5.1).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from sparknet import caffe
from sparknet.caffe import layers as L
from sparknet.proto import caffe_pb2
from sparknet.spark import SparkModel, get_session

SIDE, CUT, NEAREST = 96, 32, 5
NAMES = ["background", "circle", "square", "cross"]
CHANNELS = (16, 32, 64, 64)
Box = tuple[int, ...]


def scene(random: np.random.Generator) -> tuple[Any, list[Box]]:
    """A picture of one to three shapes, and their boxes (label, xmin, ymin, xmax, ymax)."""
    picture = random.integers(20, 90) + random.integers(0, 25, (SIDE, SIDE, 3))
    y, x = np.mgrid[:SIDE, :SIDE]
    boxes: list[Box] = []
    for _ in range(random.integers(1, 4)):
        radius = int(random.integers(9, 17))
        left, top = random.integers(1, SIDE - 2 * radius - 1, 2)
        box = (left, top, left + 2 * radius, top + 2 * radius)
        if any(box[0] < b[3] and b[1] < box[2] and box[1] < b[4] and b[2] < box[3] for b in boxes):
            continue
        dx, dy = abs(x - left - radius), abs(y - top - radius)
        bar = radius // 3
        square = (dx <= radius) & (dy <= radius)
        shapes = (dx**2 + dy**2 <= radius**2, square, square & ((dx <= bar) | (dy <= bar)))
        label = int(random.integers(1, 4))
        picture[shapes[label - 1]] = random.integers(120, 255, 3)
        boxes.append((label, *map(int, box)))
    return picture.astype(np.uint8), boxes


def png(picture: Any) -> bytes:
    written = io.BytesIO()
    Image.fromarray(picture).save(written, "png")
    return written.getvalue()


def trunk(net: caffe.NetSpec, batch: int, side: int) -> Any:
    """The layers that the detector and the features share."""
    net.data = L.Input(shape={"dim": [batch, 3, side, side]})
    top = net.scaled = L.Power(net.data, scale=1 / 64, shift=-1.5)
    for number, channels in enumerate(CHANNELS):
        filler = {"type": "msra"}
        top = L.Convolution(top, num_output=channels, kernel_size=3, pad=1, weight_filler=filler)
        setattr(net, f"conv{number}", top)
        top = L.ReLU(top, in_place=True)
        setattr(net, f"relu{number}", top)
        if number < 3:
            top = L.Pooling(top, kernel_size=2, stride=2)
            setattr(net, f"pool{number}", top)
    return top


def detector(batch: int, training: bool) -> caffe_pb2.NetParameter:
    """SSD with two square prior boxes at each place of a map of 12 x 12."""
    net = caffe.NetSpec()
    top = trunk(net, batch, SIDE)
    net.priors = L.PriorBox(top, net.data, min_size=[20, 30], variance=[0.1, 0.1, 0.2, 0.2])
    for name, values in (("boxes", 4), ("classes", len(NAMES))):
        filler = {"type": "xavier"}
        found = L.Convolution(
            top, num_output=2 * values, kernel_size=3, pad=1, weight_filler=filler
        )
        last = L.Permute(found, order=[0, 2, 3, 1])
        for part, layer in (("", found), ("_last", last), ("_flat", L.Flatten(last))):
            setattr(net, name + part, layer)
    classes = {"num_classes": len(NAMES), "code_type": "CENTER_SIZE"}
    if training:
        net.truth = L.Input(shape={"dim": [1, 1, 1, 8]})
        bottoms = (net.boxes_flat, net.classes_flat, net.priors, net.truth)
        net.loss = L.MultiBoxLoss(*bottoms, **classes)
        return net.to_proto()
    net.scores = L.Reshape(net.classes_flat, shape={"dim": [0, -1, len(NAMES)]})
    net.prob_flat = L.Flatten(L.Softmax(net.scores, axis=2))
    net.found = L.DetectionOutput(
        net.boxes_flat,
        net.prob_flat,
        net.priors,
        detection_output_param={
            "keep_top_k": 20,
            "confidence_threshold": 0.5,
            "nms_param": {"nms_threshold": 0.45, "top_k": 100},
            **classes,
        },
    )
    return net.to_proto()


def features() -> caffe_pb2.NetParameter:
    """The shared layers over a cut-out, and the largest value of each of their channels."""
    net = caffe.NetSpec()
    net.pooled = L.Pooling(trunk(net, 1, CUT), pool=0, global_pooling=True)
    net.features = L.Flatten(net.pooled)
    return net.to_proto()


def train(weights: str, steps: int = 200, batch: int = 16) -> None:
    """Train the detector on drawn scenes, as a pycaffe script does, and save it."""
    settings: dict[str, Any] = {
        "type": "Adam",
        "base_lr": 0.002,
        "momentum": 0.9,
        "lr_policy": "fixed",
    }
    solver = caffe_pb2.SolverParameter(max_iter=steps, random_seed=1, **settings)
    solver.net_param.CopyFrom(detector(batch, training=True))
    learner, random = caffe.get_solver(solver), np.random.default_rng(0)
    for _ in range(steps):
        scenes = [scene(random) for _ in range(batch)]
        rows = [
            (item, label, 0, *np.divide(box, SIDE), 0)
            for item, (_, boxes) in enumerate(scenes)
            for label, *box in boxes
        ]
        blobs = learner.net.blobs
        blobs["data"].data[...] = [picture[:, :, ::-1].transpose(2, 0, 1) for picture, _ in scenes]
        blobs["truth"].reshape(1, 1, len(rows), 8)
        blobs["truth"].data[...] = rows
        learner.step(1)
    learner.net.save(weights)


def cut(rows: Iterator[Any]) -> Iterator[Any]:
    """Each found object as an image of its own, by pandas."""
    for table in rows:
        table["content"] = [
            cut_out(content, found)
            for content, found in zip(table["content"], table["object"], strict=True)
        ]
        table["label"] = [found["label"] for found in table["object"]]
        yield table.drop(columns="object")


def cut_out(content: bytes, found: Any) -> bytes:
    corners = [round(found[side]) for side in ("xmin", "ymin", "xmax", "ymax")]
    with Image.open(io.BytesIO(content)) as picture:
        return png(np.asarray(picture.convert("RGB").crop(corners)))


def objects(pictures: Any, weights: str) -> Any:
    """A row for each object in the pictures: its picture's id, label, and features of length 1."""
    from pyspark.sql import functions as F

    finder = SparkModel(detector(1, training=False), weights, columns={"data": "content"})
    found = finder.transform(pictures, ["found"], labels=NAMES)
    each = found.select("id", "content", F.explode("found").alias("object"))
    cuts = each.mapInPandas(cut, "id long, content binary, label int")
    describer = SparkModel(features(), weights, columns={"data": "content"}, resize=CUT)
    described = describer.transform(cuts, ["features"]).drop("content")
    length = F.expr("sqrt(aggregate(features, 0D, (sum, x) -> sum + x * x))")
    return described.withColumn("length", length)


def matches(shelf: Any, asked: Any) -> Any:
    """For each object that is asked for, its label and those of the nearest on the shelf."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    numbered = asked.withColumn("asked", F.monotonically_increasing_id())
    pairs = numbered.alias("a").crossJoin(F.broadcast(shelf.alias("b")))
    product = "aggregate(zip_with(a.features, b.features, (x, y) -> x * y), 0D, (s, x) -> s + x)"
    near = F.expr(f"{product} / (a.length * b.length)")
    order = Window.partitionBy("asked").orderBy(F.desc("near"), "b.id")
    ranked = pairs.withColumn("near", near).withColumn("rank", F.row_number().over(order))
    best = ranked.where(F.col("rank") <= NEAREST).select(
        "asked", "a.label", F.col("b.label").alias("match")
    )
    return best.groupBy("asked", "label").agg(F.collect_list("match").alias("matches"))


def main(shelf: int = 120, asked: int = 40) -> float:
    import tempfile
    from pathlib import Path

    spark = get_session(2)
    with tempfile.TemporaryDirectory() as folder:
        weights = str(Path(folder, "ssd.caffemodel"))
        train(weights)
        random = np.random.default_rng(1)
        rows = [(number, png(scene(random)[0])) for number in range(shelf + asked)]
        pictures = spark.createDataFrame(rows, "id long, content binary").repartition(4)
        everything = objects(pictures, weights).cache()
        on_shelf, wanted = everything.where(f"id < {shelf}"), everything.where(f"id >= {shelf}")
        answers = matches(on_shelf, wanted).collect()
    right = [match == one.label for one in answers for match in one.matches]
    print(
        f"accuracy {np.mean(right):.1%}: that many of the nearest {NEAREST} of {len(answers)} "
        "objects are of their kind"
    )
    spark.stop()
    return float(np.mean(right))


if __name__ == "__main__":
    main()
