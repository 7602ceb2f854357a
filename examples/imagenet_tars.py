"""Train on tars of JPEGs, as ImageNet comes: each executor decodes its share.

    python examples/imagenet_tars.py [tars …]
    spark-submit examples/imagenet_tars.py [tars …]

The class of an image is the beginning of its name (n01440764_10026.JPEG), or its folder in the
tar.  Without arguments, the script draws two tars of images of three classes.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from sparknet import (
    ActivationLayer,
    ConvLayer,
    LinearLayer,
    NetParams,
    PoolLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.dsl import Accuracy, MemoryData
from sparknet.loaders import Subset, Tars
from sparknet.spark import Trainer, get_session, read_records
from sparknet.summary import Progress

WORKERS, BATCH, SIZE, CROP = 2, 32, 40, 36
CROPPED = {"crop_size": CROP, "mirror": True, "mean_value": [104, 117, 123], "scale": 1 / 64}


def net(classes: int) -> NetParams:
    return NetParams(
        "tars",
        MemoryData(
            "data",
            tops=["data", "label"],
            batch_size=BATCH,
            channels=3,
            height=CROP,
            width=CROP,
            transform_param=CROPPED,
        ),
        ConvLayer("conv1", "data", kernel=5, stride=2, num_filters=16, weight_filler="msra"),
        ActivationLayer("relu1", "conv1", activation="relu", in_place=True),
        PoolLayer("pool1", "conv1", pool="max", kernel=2, stride=2),
        ConvLayer("conv2", "pool1", kernel=3, num_filters=32, weight_filler="msra"),
        ActivationLayer("relu2", "conv2", activation="relu", in_place=True),
        LinearLayer("fc", "conv2", num_outputs=classes, weight_filler="xavier"),
        Accuracy("accuracy", ["fc", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["fc", "label"]),
    )


def main(paths: list[str]) -> float:
    spark = get_session(WORKERS)
    images = Tars(paths, size=(SIZE, SIZE), damaged="skip")
    order = np.random.default_rng(0).permutation(len(images))
    held = len(images) // 8
    learned = read_records(spark, Subset(images, order[held:]), 2 * WORKERS)
    held_out = read_records(spark, Subset(images, order[:held]), WORKERS)
    solver = SolverParams(
        net=net(len(images.classes)), base_lr=0.005, momentum=0.9, lr_policy="fixed", random_seed=1
    )
    trainer = Trainer(solver, "averaging", WORKERS, epochs=8, on_event=Progress())
    trained = trainer.fit(learned, held_out)
    accuracy = trained.outcome.metrics["accuracy"]
    print(f"{len(images)} images of {len(images.classes)} classes: accuracy {accuracy:.2%}")
    spark.stop()
    return accuracy


def drawings(folder: Path) -> list[str]:
    """Write two tars of 400 JPEGs: a bright bar above, below or at the left."""
    random = np.random.default_rng(0)
    paths = [folder / "first.tar", folder / "second.tar"]
    for path in paths:
        with tarfile.open(path, "w") as tar:
            for number in range(400):
                side = number % 3
                pixels = random.integers(0, 160, (48, 56, 3), dtype=np.uint8)
                (pixels, pixels[::-1], pixels.swapaxes(0, 1))[side][:12] = 230
                data = io.BytesIO()
                Image.fromarray(pixels).save(data, "JPEG")
                info = tarfile.TarInfo(f"n{side:08d}_{path.stem}{number}.JPEG")
                info.size = data.tell()
                data.seek(0)
                tar.addfile(info, data)
    return [str(path) for path in paths]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1:])
    else:
        with tempfile.TemporaryDirectory() as made:
            main(drawings(Path(made)))
