"""examples/detect_and_match.py on Spark, against the same done picture by picture."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark")

EXAMPLE = Path(__file__).parents[2] / "examples" / "detect_and_match.py"
SHELF, ASKED = 24, 8


@pytest.fixture(scope="module")
def example() -> Any:
    from pyspark import cloudpickle

    spec = importlib.util.spec_from_file_location("detect_and_match", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["detect_and_match"] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)
    return module


def one_by_one(example: Any, weights: str, pictures: list[bytes]) -> list[Any]:
    """(picture, label, features) of each object, by pycaffe and Pillow."""
    from PIL import Image

    from sparknet import caffe

    finder = caffe.Net.from_proto(example.detector(1, training=False), caffe.TEST)
    describer = caffe.Net.from_proto(example.features(), caffe.TEST)
    for net in (finder, describer):
        net.copy_from(weights)
    out = []
    for number, content in enumerate(pictures):
        picture = np.asarray(Image.open(io.BytesIO(content)))
        finder.blobs["data"].data[0] = picture[:, :, ::-1].transpose(2, 0, 1)
        for _, label, _, *corners in finder.forward()["found"][0, 0].tolist():
            if label < 0:
                continue
            left, top, right, bottom = (round(corner * example.SIDE) for corner in corners)
            cut = picture[max(top, 0) : bottom, max(left, 0) : right].astype(np.float32)
            small = caffe.io.resize_image(cut, (example.CUT, example.CUT))
            describer.blobs["data"].data[0] = small[:, :, ::-1].transpose(2, 0, 1)
            values = describer.forward()["features"][0].copy()
            out.append((number, int(label), values))
    return out


@pytest.mark.slow
def test_the_same_one_by_one(spark: Any, example: Any, tmp_path: Path) -> None:
    weights = str(tmp_path / "ssd.caffemodel")
    example.train(weights)
    random = np.random.default_rng(3)
    scenes = [example.scene(random) for _ in range(SHELF + ASKED)]
    pictures = [example.png(picture) for picture, _ in scenes]
    rows = spark.createDataFrame(list(enumerate(pictures)), "id long, content binary")
    everything = example.objects(rows.repartition(3), weights).cache()
    alone = one_by_one(example, weights, pictures)
    truth = sum(len(boxes) for _, boxes in scenes)
    assert abs(len(alone) - truth) < 0.1 * truth

    def key(one: Any) -> Any:
        return (one[0], one[1], round(float(one[2][0]), 2), float(one[2][1]))

    found = sorted(((o.id, o.label, np.array(o.features)) for o in everything.collect()), key=key)
    alone.sort(key=key)
    assert [one[:2] for one in found] == [one[:2] for one in alone]
    for ours, theirs in zip(found, alone, strict=True):
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-3, atol=1e-3)

    shelf = [one for one in alone if one[0] < SHELF]
    long = np.stack([one[2] / np.linalg.norm(one[2]) for one in shelf])
    nearest = []
    for number, label, values in alone:
        if number >= SHELF:
            order = np.argsort(-(long @ values), kind="stable")[: example.NEAREST]
            nearest.append((label, sorted(shelf[at][1] for at in order)))
    on_shelf, asked = (everything.where(f"id {sign} {SHELF}") for sign in ("<", ">="))
    matched = example.matches(on_shelf, asked).collect()
    assert sorted((one.label, sorted(one.matches)) for one in matched) == sorted(nearest)
    right = [match == label for label, matches in nearest for match in matches]
    assert np.mean(right) > 0.9
