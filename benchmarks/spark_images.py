"""Measures JPEGs a second: SparkModel.transform on files, and the same by hand in one process.

    python -m benchmarks.spark_images [--images 2000] [--threads 2] [--times 3]

In turn: `transform` over a DataFrame of encoded photographs, as many tasks as threads; and a loop
that decodes, resizes and cuts them with Pillow, as many at a time as threads, subtracts the mean
with numpy and runs the same net on the same batches.  Both give the same scores.
"""

from __future__ import annotations

import argparse
import io
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

from sparknet.native import set_threads
from sparknet.net import Net
from sparknet.spark import SparkModel, local_session

MEAN = (104, 117, 123)
BATCH = 32
SIZES = ((375, 500), (500, 375), (333, 500), (480, 640), (600, 800))
NET = """
name: "photographs"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 32 dim: 3 dim: 224 dim: 224 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 16 kernel_size: 7 stride: 4 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param {
  pool: AVE global_pooling: true } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip" inner_product_param {
  num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


def photographs(count: int) -> list[bytes]:
    """JPEGs of several sizes: smooth shapes under a little noise."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(count):
        height, width = SIZES[number % len(SIZES)]
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3)).astype(np.uint8))
        smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.int16)
        noisy = smooth + rng.integers(-8, 9, (height, width, 1))
        file = io.BytesIO()
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "jpeg", quality=90)
        made.append(file.getvalue())
    return made


def cut(data: bytes) -> Any:
    """256 x 256 by Pillow, the centre of 224 x 224, blue first."""
    with Image.open(io.BytesIO(data)) as image:
        small = image.convert("RGB").resize((256, 256), Image.Resampling.BILINEAR)
        centre = small.crop((16, 16, 240, 240))
    return np.asarray(centre)[:, :, ::-1].transpose(2, 0, 1)


def by_hand(net: Net, images: list[bytes], threads: int) -> tuple[float, Any]:
    """Seconds, and the scores."""
    begun = time.perf_counter()
    found = []
    mean = np.array(MEAN, np.float32).reshape(3, 1, 1)
    with ThreadPoolExecutor(threads) as pool:
        for begin in range(0, len(images), BATCH):
            planes = np.stack(list(pool.map(cut, images[begin : begin + BATCH])))
            found.append(net.forward({"data": planes - mean})["prob"])
    return time.perf_counter() - begun, np.concatenate(found)


def on_spark(model: SparkModel, table: Any) -> tuple[float, Any]:
    begun = time.perf_counter()
    rows = model.transform(table, ["prob"], batch=BATCH).select("id", "prob").collect()
    spent = time.perf_counter() - begun
    return spent, np.array([row.prob for row in sorted(rows, key=lambda row: row.id)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    images = photographs(asked.images)
    set_threads(asked.threads)
    plain = Net(NET, seed=1)
    settings: dict[str, Any] = {"resize": 256, "crop": 224, "mean": MEAN}
    net = Net(NET, plain.get_weights(), interpolation="pil.bilinear", **settings)
    model = SparkModel(net, columns={"data": "content"})
    session = local_session(asked.threads, threads=1)
    try:
        rows = [(number, data) for number, data in enumerate(images)]
        table = session.createDataFrame(rows, "id long, content binary")
        table = table.repartition(asked.threads).cache()
        table.count()
        sides: dict[str, list[float]] = {"by hand": [], "transform": []}
        for turn in range(asked.times + 1):
            seconds, wanted = by_hand(plain, images, asked.threads)
            on, found = on_spark(model, table)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
            if turn:  # the first warms both up
                sides["by hand"].append(seconds)
                sides["transform"].append(on)
    finally:
        session.stop()
    rates = {name: asked.images / median(times) for name, times in sides.items()}
    for name, rate in rates.items():
        print(f"{name:10} {rate:7.0f} JPEGs a second")
    print(f"transform / by hand: {rates['transform'] / rates['by hand']:.2f}")


if __name__ == "__main__":
    main()
