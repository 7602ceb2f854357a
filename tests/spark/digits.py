"""A small net and its data, for training in seconds."""

from functools import cache
from typing import Any

import numpy as np

from sparknet.spark import Trainer
from sparknet.training.strategies import Averaging

Array = np.ndarray[Any, Any]

NET = """
name: "Digits"
layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 20 dim: 1 dim: 6 dim: 6 } shape { dim: 20 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
"""


def solver(steps: int = 60, more: str = "", net: str = NET) -> str:
    return f"""net_param {{ {net} }} base_lr: 0.05 momentum: 0.9 lr_policy: "fixed"
        max_iter: {steps} random_seed: 3 {more}"""


@cache
def records(count: int, seed: int = 0) -> tuple[Array, Array]:
    """Noisy bars, one of four places each: bytes and labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, count)
    images = random.integers(0, 120, (count, 1, 6, 6))
    for image, label in zip(images, labels, strict=True):
        image[0, label : label + 2] += 100
    return images.astype(np.uint8), labels


def tuples(count: int, seed: int = 0) -> list[tuple[Array, int]]:
    pairs = zip(*records(count, seed), strict=True)
    return [((image / 255).astype(np.float32), int(label)) for image, label in pairs]


def pixels(spark, count, seed=0):
    """The same as a DataFrame, with names of its own: bytes, not divided by 255."""
    images, labels = records(count, seed)
    rows = [
        (image.tobytes(), int(label), number)
        for number, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    return spark.createDataFrame(rows, "pixels binary, digit int, number int")


def fitted(spark, **more):
    trainer = Trainer(solver(), workers=2, strategy=Averaging(4), **more)
    return trainer.fit(spark.sparkContext.parallelize(tuples(200), 2))


def flat(trained):
    return np.asarray(trained.weights.flat)
