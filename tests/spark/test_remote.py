"""Models on file systems that only Spark reaches."""

import threading
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet.errors import FileError, SparkError
from sparknet.net import Net
from sparknet.net.files import fetched, output_file
from sparknet.spark import SparkModel, Trainer
from tests.spark.digits import records, solver, tuples


@pytest.fixture
def far(spark, tmp_path):
    """A URL that no open() understands: a mount table of Hadoop's, onto a folder."""
    mount = f"fs.viewfs.mounttable.{tmp_path.name}.link./models"
    spark.conf.set(mount, tmp_path.as_uri())
    yield f"viewfs://{tmp_path.name}/models"
    spark.conf.unset(mount)


def test_a_model_goes_there_and_back(far, tmp_path):
    net = Net(solver())
    for _ in range(2):  # over an older one
        SparkModel(net).save(f"{far}/digits.caffemodel")
    found = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc")}
    assert found == {"digits.caffemodel", "digits.prototxt", "digits.sparknet.json"}
    images = {"data": records(7)[0]}
    expected = net.forward(images, ["ip"])["ip"]
    for model in (
        SparkModel(f"{far}/digits.caffemodel"),
        SparkModel(f"{far}/digits.prototxt", f"{far}/digits.caffemodel"),
        SparkModel((tmp_path / "digits.caffemodel").as_uri()),
    ):
        np.testing.assert_array_equal(model.net.forward(images, ["ip"])["ip"], expected)


def test_a_file_url_is_a_local_path(tmp_path):
    """Without a session."""
    place = tmp_path / "with space"
    place.mkdir()
    SparkModel(Net(solver())).save(f"{place.as_uri()}/digits.h5")
    there = {path.name for path in place.iterdir()}
    assert there == {"digits.h5", "digits.prototxt", "digits.sparknet.json"}
    assert SparkModel(f"{place.as_uri()}/digits.h5").net.inputs.keys() == {"data", "label"}


def test_training_begins_with_weights_from_there(spark, far):
    net = Net(solver())
    SparkModel(net).save(f"{far}/digits.caffemodel")
    data = spark.sparkContext.parallelize(tuples(40), 1)
    begun = Trainer(solver(), workers=1, steps=0, weights=f"{far}/digits.caffemodel").fit(data)
    assert begun.weights.allclose(net.get_weights(), 0, 0)


def test_what_is_wrong_there_is_told_by_its_url(far, tmp_path):
    with pytest.raises(FileError, match=f"^{far}/none.caffemodel: .*does not exist"):
        SparkModel(f"{far}/none.caffemodel")
    (tmp_path / "cut.caffemodel").write_bytes(b"nothing")
    with pytest.raises(FileError, match=f"^{far}/cut.caffemodel: ") as raised:
        SparkModel(f"{far}/cut.caffemodel")
    assert raised.value.path == f"{far}/cut.caffemodel"
    missing = r'nosuch://there/x\.(h5|prototxt): No FileSystem for scheme "nosuch"'
    with pytest.raises(FileError, match=missing):
        SparkModel(Net(solver())).save("nosuch://there/x.h5")


def test_what_fails_leaves_the_older_file(far, tmp_path):
    (tmp_path / "x").write_text("older")

    def fail() -> None:
        with output_file(f"{far}/x") as file:
            file.write_text("newer")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


def test_any_thread_finds_the_session(far, tmp_path):
    (tmp_path / "x").write_text("here")
    read: list[str] = []

    def look() -> None:
        with fetched(f"{far}/x") as copy:
            read.append(Path(copy).read_text())

    other = threading.Thread(target=look)
    other.start()
    other.join()
    assert read == ["here"]


def test_without_a_session(monkeypatch):
    monkeypatch.setattr("sparknet.spark.cluster.session.running_session", lambda: None)
    with pytest.raises(
        SparkError, match=r"^hdfs://there/x\.sparknet\.json is reached .*no session"
    ):
        SparkModel("hdfs://there/x.h5")


def test_texts_and_objects_are_no_urls():
    for source in ("name: 'http://x' layer { }", "a/b.prototxt", None, 3):
        with fetched(source) as found:
            assert found is source
