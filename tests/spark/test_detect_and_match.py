"""examples/detect_and_match.py on Spark, against the same done picture by picture."""

import importlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark")

EXAMPLE = Path(__file__).parents[2] / "examples" / "detect_and_match.py"
SHELF, ASKED = 24, 8


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    yield importlib.import_module("detect_and_match")
    for name in ("detect_and_match", "scenes"):
        sys.modules.pop(name, None)


def prepared(example, pixels):
    """Red, green and blue of a picture as the nets take them."""
    planes = pixels[:, :, ::-1].transpose(2, 0, 1).astype(np.float32)
    return (planes - example.PIXELS["mean"]) * example.PIXELS["scale"]


def one_by_one(example, weights, pictures):
    """(picture, label, features) of each object, by pycaffe and Pillow."""
    from PIL import Image

    from sparknet import caffe

    nets = [
        caffe.Net.from_proto(one.to_proto(), caffe.TEST)
        for one in (example.detector, example.features)
    ]
    finder, describer = nets
    for net in nets:
        net.copy_from(weights)
        for name in {"data", "boxes"} & set(net.inputs):
            net.blobs[name].reshape(1, *net.blobs[name].shape[1:])
        net.reshape()
    out = []
    for number, content in enumerate(pictures):
        picture = np.asarray(Image.open(io.BytesIO(content)))
        finder.blobs["data"].data[0] = prepared(example, picture)
        finder.forward()
        for _, label, score, *corners in finder.blobs["detection_out"].data[0, 0].tolist():
            if label < 0 or not score > 0.5:
                continue
            edges = [round(corner * example.SIDE) for corner in corners]
            left, top, right, bottom = (min(max(edge, 0), example.SIDE) for edge in edges)
            cut = picture[top:bottom, left:right].astype(np.float32)
            small = caffe.io.resize_image(cut, (example.CUT, example.CUT))
            describer.blobs["data"].data[0] = prepared(example, small)
            out.append((number, int(label), describer.forward()["features"][0].copy()))
    return out


@pytest.mark.slow
def test_the_same_one_by_one(spark, example, tmp_path):
    from sparknet import Net, SolverParams
    from sparknet.spark import SparkModel

    weights = str(tmp_path / "ssd.caffemodel")
    made = list(example.rows(0, 500))
    boxes = np.full((len(made), example.MOST, 5), -1, np.float32)
    for row, (_, _, found) in zip(boxes, made, strict=True):
        row[: len(found)] = found
    settings = {"type": "Adam", "base_lr": 0.002, "momentum": 0.9, "lr_policy": "fixed"}
    solver = SolverParams(net=example.detector, random_seed=1, **settings)
    rows = {"data": [content for _, content, _ in made], "boxes": boxes}
    net = Net(solver, **example.PIXELS)
    net.set_training_data(rows)
    net.train(200)
    net.save(weights)
    scenes = list(example.rows(1000, SHELF + ASKED))
    table = spark.createDataFrame(
        [(number - 1000, content) for number, content, _ in scenes], "id long, content binary"
    )
    given = {"columns": {"data": "content"}, **example.PIXELS}
    finder = SparkModel(example.detector, weights, **given)
    describer = SparkModel(example.features, weights, resize=example.CUT, **given)
    everything = example.objects(example.sure(finder, table.repartition(3)), describer).cache()
    alone = one_by_one(example, weights, [content for _, content, _ in scenes])
    truth = sum(len(found) for *_, found in scenes)
    assert abs(len(alone) - truth) < 0.15 * truth

    def key(one):
        return (one[0], one[1], *np.round(one[2][:4], 2))

    unit = [(number, label, one / np.linalg.norm(one)) for number, label, one in alone]
    rows_found = everything.collect()
    found = [(row.id, row.object.label, np.array(row.features)) for row in rows_found]
    found.sort(key=key)
    unit.sort(key=key)
    assert [one[:2] for one in found] == [one[:2] for one in unit]
    for ours, theirs in zip(found, unit, strict=True):
        np.testing.assert_allclose(ours[2], theirs[2], rtol=2e-3, atol=2e-3)

    shelf = [one for one in unit if one[0] < SHELF]
    long = np.stack([one[2] for one in shelf])
    nearest = []
    for number, label, values in unit:
        if number >= SHELF:
            order = np.argsort(-(long @ values), kind="stable")[: example.NEAREST]
            nearest.append((label, sorted(shelf[at][1] for at in order)))
    on_shelf, asked = (everything.where(f"id {sign} {SHELF}") for sign in ("<", ">="))
    matched = example.matches(on_shelf, asked).collect()
    labels = [(one.label, sorted(match.label for match in one.found)) for one in matched]
    assert sorted(labels) == sorted(nearest)
    right = [match == label for label, matches in nearest for match in matches]
    assert np.mean(right) > 0.9
