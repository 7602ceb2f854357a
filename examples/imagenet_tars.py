"""SparkNet's ImageNet pipeline: tars of JPEGs, an AlexNet, and accuracy over time for K workers.

    python examples/imagenet_tars.py [--workers 1 2 4] [--seconds 60] [--drawn 1600] [tars …]
    spark-submit examples/imagenet_tars.py …

The steps are those of the paper (Moritz et al., arXiv 1511.06051, section 4): images become 256 x
256, the mean image is subtracted, training sees random parts of 227 x 227 and mirrors them, and
the workers average their weights after so many seconds.  The class of an image is the beginning
of its name (n01440764_10026.JPEG).  Without tars, the script draws two of ten classes.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import tempfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from sparknet import (
    LRN,
    ConvLayer,
    Dropout,
    LinearLayer,
    NetParams,
    PoolLayer,
    RDDLayer,
    ReLU,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.dsl import Accuracy
from sparknet.loaders import Subset, Tars, mean_of
from sparknet.spark import Trainer, get_session, read_images
from sparknet.training import Averaging

BATCH, SIDE, CROP, ROUND = 32, 256, 227, 2.0
LETTERS = "ABCDEFGHIJ"
PART = "crc32(encode(regexp_extract(path, '([^/:]+)$', 1), 'utf-8')) % 8 AS part"
"""An eighth of the images, part 0, is held out."""


def net(classes: int) -> NetParams:
    """AlexNet with an eighth of its channels, so that two cores train it while you watch."""
    return NetParams(
        "small_alexnet",
        RDDLayer("data", shape=[BATCH, 3, CROP, CROP]),
        RDDLayer("label", shape=[BATCH]),
        ConvLayer("conv1", "data", kernel=11, stride=4, num_filters=16, weight_filler="msra"),
        ReLU("relu1", "conv1"),
        PoolLayer("pool1", "relu1", pool="max", kernel=3, stride=2),
        LRN("norm1", "pool1", local_size=5, alpha=0.0001, beta=0.75),
        ConvLayer("conv2", "norm1", kernel=5, pad=2, num_filters=32, weight_filler="msra"),
        ReLU("relu2", "conv2"),
        PoolLayer("pool2", "relu2", pool="max", kernel=3, stride=2),
        ConvLayer("conv3", "pool2", kernel=3, pad=1, num_filters=48, weight_filler="msra"),
        ReLU("relu3", "conv3"),
        PoolLayer("pool3", "relu3", pool="max", kernel=3, stride=2),
        LinearLayer("fc6", "pool3", num_outputs=128, weight_filler="msra"),
        ReLU("relu6", "fc6"),
        Dropout("drop6", "relu6", dropout_ratio=0.5),
        LinearLayer("fc7", "drop6", num_outputs=classes, weight_filler="xavier"),
        Accuracy("accuracy", ["fc7", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["fc7", "label"]),
    )


def accuracies(trainer: Trainer, learned: Any, held_out: Any) -> list[tuple[float, float]]:
    """(seconds of training, accuracy) of each validation."""
    found, now = [(0.0, 0.0)], 0.0
    for event in trainer.fit(learned, held_out).history:
        if event["event"] == "round":
            now = event["total_seconds"]
        if event["event"] == "validation":
            found.append((now, event["metrics"]["accuracy"]))
    return found


def learned(images: Tars) -> Subset:
    """The images that are trained on, by the names that Spark divides them by."""
    names = [PurePosixPath(member.name).name for member in images.members]
    return Subset(images, [n for n, name in enumerate(names) if zlib.crc32(name.encode()) % 8])


def main(tars: list[str], counts: list[int], seconds: float) -> dict[int, Any]:
    spark = get_session(max(counts))
    images = Tars(tars, size=(SIDE, SIDE), invalid="drop")
    mean = mean_of(learned(images))
    rows = [(name, number) for number, name in enumerate(images.classes)]
    classes = spark.createDataFrame(rows, "name string, label int")
    stored = read_images(spark, *tars).selectExpr(
        "content", "regexp_extract(path, '([^/:_]+)_[^/:]*$', 1) AS name", PART
    )
    table = stored.join(classes, "name").cache()
    found = {}
    for workers in counts:
        trainer = Trainer(
            SolverParams(
                net=net(len(rows)), base_lr=0.005, momentum=0.9, lr_policy="fixed", random_seed=1
            ),
            Averaging(seconds=ROUND),
            workers,
            columns={"data": "content"},
            seconds=seconds,
            validate_every=2,
            resize=(SIDE, SIDE),
            crop=CROP,
            mirror=True,
            mean=mean,
            scale=1 / 64,
        )
        found[workers] = accuracies(trainer, table.where("part <> 0"), table.where("part = 0"))
    spark.stop()
    print(f"{len(images)} images of {len(rows)} classes; accuracy after so many seconds")
    print("".join(["seconds", *(f"{f'K = {workers}':>8}" for workers in counts)]))
    for at in np.linspace(seconds / 10, seconds, 10):
        reached = ([share for when, share in found[workers] if when <= at] for workers in counts)
        print("".join([f"{at:7.0f}", *(f"{shares[-1]:8.1%}" for shares in reached)]))
    print(f"accuracy {max(found[counts[-1]][-1][1:]):.2%}")
    return found


def drawing(letter: str, random: np.random.Generator) -> Image.Image:
    """A photograph of some size with a large letter before a noisy wall."""
    width, height, size = map(int, random.integers((280, 280, 110), (360, 360, 180)))
    noise = random.integers(0, 90, (height // 4, width // 4, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize((width, height))
    place = (int(random.integers(0, width - size)), int(random.integers(0, height - size)))
    ink = tuple(map(int, random.integers(130, 256, 3)))
    ImageDraw.Draw(image).text(place, letter, ink, ImageFont.load_default(size))
    return image


def drawings(folder: Path, count: int) -> list[str]:
    """Write two tars of JPEGs of many sizes."""
    random = np.random.default_rng(0)
    paths = [folder / "first.tar", folder / "second.tar"]
    for path in paths:
        with tarfile.open(path, "w") as tar:
            for number in range(count // 2):
                kind, data = number % len(LETTERS), io.BytesIO()
                drawing(LETTERS[kind], random).save(data, "JPEG")
                info = tarfile.TarInfo(f"n{kind:08d}_{path.stem}{number}.JPEG")
                info.size = data.tell()
                data.seek(0)
                tar.addfile(info, data)
    return [str(path) for path in paths]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("tars", nargs="*")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--drawn", type=int, default=1600, help="images, where no tars are given")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        main(given.tars or drawings(Path(made), given.drawn), given.workers, given.seconds)
