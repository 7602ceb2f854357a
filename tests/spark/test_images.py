"""Images on Spark: files, raw bytes and Spark's own images score as by caffe.io."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import Net
from sparknet.errors import FileError, SpecError
from sparknet.loaders.image_arrays import ImageArrays
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.predict.input_columns import arrays, input_specs, pictures
from sparknet.spark import SparkModel, Trainer
from tests.loaders.random_images import encoded, files
from tests.net.test_images import ECHO, MEAN, by_caffe, deploy

pa = pytest.importorskip("pyarrow")
pytest.importorskip("PIL")

HOW = {"resize": (32, 32), "crop": 24, "mean": MEAN}


@pytest.fixture
def saved(tmp_path):
    from sparknet.proto import write_text

    net = Net(deploy(), seed=1)
    net.save(tmp_path / "small.caffemodel")
    write_text(tmp_path / "deploy.prototxt", net.described)
    return str(tmp_path / "deploy.prototxt"), str(tmp_path / "small.caffemodel")


def test_every_way_in_scores_as_caffe_io(session, saved, tmp_path):
    """Of all kinds and sizes, in batches that do not divide."""
    (tmp_path / "images").mkdir()
    paths = list(files(tmp_path / "images"))
    expected = by_caffe(paths, Net(*saved))
    model = SparkModel(*saved, columns={"data": "content"}, **HOW)
    table = session.read.format("binaryFile").load(str(tmp_path / "images"))
    found = model.transform(table, ["prob"], batch=7).select("path", "prob").collect()
    assert len(found) == len(paths)
    scores = {Path(row.path).name.replace("%20", " "): row.prob for row in found}
    got = np.array([scores[path.name] for path in paths])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
    bare = session.createDataFrame([(path.read_bytes(),) for path in paths], "content binary")
    rows = model.transform(bare.coalesce(1), ["prob"]).select("prob").collect()
    np.testing.assert_allclose(np.array([row.prob for row in rows]), got, rtol=0, atol=1e-6)


def test_sparks_own_images_score_as_their_files(session, saved, tmp_path):
    """Spark itself turns grey, colour and alpha into its bytes as Pillow does."""
    (tmp_path / "images").mkdir()
    paths = [
        path
        for path in files(tmp_path / "images")
        if path.stem.split()[1] in ("RGBA", "P", "turned")
    ]
    for path in set((tmp_path / "images").iterdir()) - set(paths):
        path.unlink()
    model = SparkModel(*saved, columns={"data": "image"}, **HOW)
    table = session.read.format("image").load(str(tmp_path / "images"))
    rows = model.transform(table, ["prob"]).select("image.origin", "prob").collect()
    scores = {Path(row.origin).name.replace("%20", " "): row.prob for row in rows}
    got = np.array([scores[path.name] for path in paths])
    expected = by_caffe(paths, Net(*saved))
    lossless = [path.suffix == ".png" for path in paths]
    np.testing.assert_allclose(got[lossless], expected[lossless], rtol=0, atol=1e-5)
    # Java's decoder of JPEGs differs from libjpeg in the last bit.
    np.testing.assert_allclose(got, expected, rtol=0, atol=0.02)


def test_a_saved_model_carries_its_preprocessing(session, saved, tmp_path):
    mean = np.random.default_rng(0).normal(110, 9, (3, 32, 32)).astype(np.float32)
    model = SparkModel(*saved, columns={"data": "photo"}, resize=32, mean=mean, crop=24)
    for name in ("again.caffemodel", "again.h5"):
        if name.endswith("h5"):
            pytest.importorskip("h5py")
        model.save(tmp_path / name)
        again = SparkModel(tmp_path / name)
        assert again.columns == {"data": "photo"}
        assert again.net.preprocessing == model.net.preprocessing
    other = SparkModel(tmp_path / "again.caffemodel", crop=24)
    assert other.net.preprocessing == Preprocessing(crop=(24, 24))
    images = [(number, encoded("RGB", 40, 50, number)) for number in range(3)]
    table = session.createDataFrame(images, "id long, photo binary")
    one, two = (
        [row.prob for row in each.transform(table, ["prob"]).orderBy("id").collect()]
        for each in (model, again)
    )
    assert one == two
    (tmp_path / "again.sparknet.json").write_text('{"columns": {}, "preprocessing": {"crop": 0}}')
    with pytest.raises(FileError, match=r"again\.sparknet\.json: is no description"):
        SparkModel(tmp_path / "again.caffemodel")
    with pytest.raises(SpecError, match="this Net is made already"):
        SparkModel(model.net, crop=24)


def test_a_saved_pipeline_carries_its_preprocessing(session, saved, tmp_path):
    """A featurizer that resizes and crops, read again behind its pipeline."""
    from pyspark.ml import Pipeline, PipelineModel

    from sparknet.spark.pipeline import NetFeaturizer

    model = SparkModel(*saved, **HOW)
    stage = NetFeaturizer(model, inputCol="photo", outputCol="deep", output="prob")
    images = [(number, encoded("RGB", 30 + number, 50, number)) for number in range(3)]
    table = session.createDataFrame(images, "id long, photo binary").coalesce(1)
    Pipeline(stages=[stage]).fit(table).write().save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    paths = [tmp_path / f"{number}.png" for number, _ in images]
    for path, (_, data) in zip(paths, images, strict=True):
        path.write_bytes(data)
    found = [row.deep.toArray() for row in again.transform(table).orderBy("id").collect()]
    np.testing.assert_allclose(found, by_caffe(paths, Net(*saved)), rtol=0, atol=1e-5)


def test_training_on_photographs(session, tmp_path):
    """Of several sizes, with random crops and mirrors; the model predicts from the same column."""
    rows = [
        (encoded(kind, 30 + number, 50 - number, number), number % 2)
        for number, kind in enumerate(["RGB", "L", "RGBA", "CMYK", "turned", "P"] * 2)
    ]
    table = session.createDataFrame(rows, "photo binary, label int")
    solver = f"base_lr: 0.0001 lr_policy: 'fixed' net_param {{ {ECHO % ('Data', '')} }}"
    settings = {"resize": (20, 22), "crop": 16, "mean": MEAN, "mirror": True}
    trainer = Trainer(solver, workers=2, steps=4, columns={"data": "photo"}, **settings)
    trained = trainer.fit(table, validation=table)
    assert trained.outcome.iteration == 4
    assert trained.net.preprocessing == Preprocessing(**settings)
    scores = trained.model.transform(table, ["ip"]).select("ip").collect()
    direct = trained.net.forward({"data": [photo for photo, _ in rows]}, ["ip"])["ip"]
    np.testing.assert_allclose([row.ip for row in scores], direct, rtol=1e-5, atol=1e-4)


def test_rows_have_their_array_or_their_error():
    images = ImageArrays(Preprocessing(resize=(8, 8)), 3)
    values = pa.array([encoded("RGB", 30, 40), None, b"nothing"], pa.binary())
    good, null, damaged = pictures(values, "photo", images)
    assert isinstance(good, np.ndarray)
    assert good.shape == (3, 8, 8)
    assert str(null).startswith("column 'photo' is null")
    assert str(damaged) == "column 'photo': is no image that can be read"


@pytest.mark.parametrize(
    ("mode", "dtype"), [(16, "u1"), (18, "<u2"), (21, "<f4"), (22, "<f8"), (0, "u1"), (24, "u1")]
)
def test_structs_of_all_depths(mode, dtype):
    """OpenCV's numbers of types: depth in the lower three bits, then channels less 1."""
    channels = (mode >> 3) + 1
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (2, 5, 6, channels)).astype(dtype)
    if dtype == "<u2":
        rows *= 257
    values = pa.array(
        [
            {"height": 5, "width": 6, "nChannels": channels, "mode": mode, "data": one.tobytes()}
            for one in rows
        ]
    )
    found = pictures(values[1:], "image", ImageArrays(Preprocessing(), 3))[0]
    assert isinstance(found, np.ndarray)
    wanted_ = rows[1] / (257 if dtype == "<u2" else 1)
    wanted_ = wanted_[..., :3].repeat(3 if channels == 1 else 1, 2).transpose(2, 0, 1)
    np.testing.assert_allclose(found, wanted_, rtol=1e-6)


def test_encoded_images_are_told_from_bytes_of_planes():
    """Even where their number could be that of a square image."""
    net = Net(deploy(), crop=24, seed=1)
    wants = input_specs(net.inputs.values())
    data = encoded("RGB", 30, 40)
    data += bytes(3 * 40 * 40 - len(data))  # behind the image's end
    batch = pa.RecordBatch.from_pydict({"data": pa.array([data], pa.binary())})
    assert arrays(batch, {"data": "data"}, wants)["data"].shape == (1, 3, 24, 24)
    planes = np.random.default_rng(0).integers(0, 256, (1, 3, 40, 40), np.uint8)
    batch = pa.RecordBatch.from_pydict({"data": pa.array([planes.tobytes()], pa.binary())})
    np.testing.assert_array_equal(arrays(batch, {"data": "data"}, wants)["data"], planes)
