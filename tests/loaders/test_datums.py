"""Databases of Datum as records, LMDB and LevelDB alike; one Datum; means of many."""

import io
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparknet.cli.record_files import write_database
from sparknet.errors import ArrayError, FileError
from sparknet.loaders import ArrayRecords, Column, Datums, Records, mean_of
from sparknet.loaders.datums import Mean, parse_datum, stored_shape
from sparknet.loaders.image_decoding import image_shape
from sparknet.proto import caffe_pb2
from tests.goldens import GOLDENS
from tests.loaders.databases import database

Write = Callable[[Path, Sequence[bytes]], Path]


def lmdb(path: Path, values: Sequence[bytes]) -> Path:
    write_database(str(path), ((b"%08d" % n, value) for n, value in enumerate(values)))
    return path


def leveldb(path: Path, values: Sequence[bytes]) -> Path:
    """Two tables that overlap, and a log that overwrites some of their records."""
    rows = [(b"%08d" % n, n + 1, value) for n, value in enumerate(values)]
    old = [(key, number, b"overwritten") for key, number, _ in rows[::3]]
    new = [(key, number + 100, value) for key, number, value in rows[::3]]
    gone = [(b"00000000x", 1, b"gone")]
    return database(
        path,
        [sorted(old + rows[1::3] + gone), rows[2::3] or gone],
        [*new, (b"00000000x", 300, None)],
    )


both = pytest.mark.parametrize("write", [lmdb, leveldb])


def plain(image, label):
    channels, height, width = image.shape
    datum = caffe_pb2.Datum(channels=channels, height=height, width=width, label=label)
    if image.dtype == np.uint8:
        datum.data = image.tobytes()
    else:
        datum.float_data.extend(image.ravel().tolist())
    return datum.SerializeToString()


def encoded(image, label):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return caffe_pb2.Datum(data=file.getvalue(), label=label, encoded=True).SerializeToString()


def images(count, *shape):
    return np.random.default_rng(2).integers(0, 256, (count, *shape), np.uint8)


@both
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_any_record_on_demand(tmp_path, write, dtype):
    data = images(20, 2, 3, 4).astype(dtype)
    values = [plain(image, 5 * n) for n, image in enumerate(data)]
    records = Datums(write(tmp_path / "db", values))
    assert isinstance(records, Records)
    assert len(records) == 20
    assert records.columns == {
        "data": Column(np.dtype(dtype), (2, 3, 4)),
        "label": Column(np.dtype(np.int32), ()),
    }
    for one in (records, pickle.loads(pickle.dumps(records))):
        batch = one.take([7, 0, 19, 7])
        np.testing.assert_array_equal(batch["data"], data[[7, 0, 19, 7]])
        assert batch["label"].tolist() == [35, 0, 95, 35]
    np.testing.assert_array_equal(records.take(slice(None))["data"], data)


def test_floats_that_are_not_packed(tmp_path):
    data = images(3, 1, 2, 2).astype(np.float32)
    values = []
    for image in data:
        head = caffe_pb2.Datum(channels=1, height=2, width=2).SerializeToString()
        values.append(head + b"".join(b"\x35" + value.tobytes() for value in image.ravel()))
    np.testing.assert_array_equal(Datums(lmdb(tmp_path / "db", values)).take([2])["data"], data[2:])


@both
def test_encoded_images_are_decoded(tmp_path, write):
    pixels = images(6, 4, 5, 3)
    values = [encoded(image, n) for n, image in enumerate(pixels)]
    path = write(tmp_path / "db", values)
    batch = Datums(path).take([4, 1])
    np.testing.assert_array_equal(batch["data"], pixels[[4, 1]].transpose(0, 3, 1, 2)[:, ::-1])
    assert batch["label"].tolist() == [4, 1]
    grey = Datums(path, size=(2, 3), color=False)
    assert grey.columns["data"].shape == (1, 2, 3)
    assert grey.take([0])["data"].shape == (1, 1, 2, 3)


def test_damaged_images_are_named_or_left_out(tmp_path):
    values = [encoded(image, n) for n, image in enumerate(images(4, 4, 5, 3))]
    broken = caffe_pb2.Datum(data=b"nothing", label=2, encoded=True).SerializeToString()
    path = lmdb(tmp_path / "db", [*values[:2], broken, values[3]])
    with pytest.raises(FileError, match="record 2: is no image"):
        Datums(path).take(slice(None))
    records = Datums(path, invalid="drop")
    assert records.take(slice(None))["label"].tolist() == [0, 1, 3]
    assert len(records.failed) == 1


@both
def test_records_that_do_not_fit_are_named(tmp_path, write):
    values = [plain(images(1, *shape)[0], 0) for shape in ((1, 2, 2), (1, 2, 2), (1, 3, 2))]
    with pytest.raises(FileError, match="record 2 is uint8 1 x 3 x 2, the first uint8 1 x 2 x 2"):
        Datums(write(tmp_path / "db", values)).take([0, 2])
    with pytest.raises(FileError, match="is no Datum"):
        Datums(write(tmp_path / "other", [values[0], b"\xff\xff"])).take([1])


@pytest.mark.parametrize("name", ["gray", "rgb"])
def test_databases_that_caffe_wrote(name):
    with np.load(GOLDENS / "data" / "sources.npz") as sources:
        data, labels = sources[f"{name}/data"], sources[f"{name}/label"]
    for backend in ("lmdb", "leveldb"):
        batch = Datums(GOLDENS / "data" / f"{name}_{backend}").take(slice(None))
        np.testing.assert_array_equal(batch["data"], data)
        np.testing.assert_array_equal(batch["label"], labels)


def test_what_is_no_database(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        Datums(tmp_path / "nothing")
    with pytest.raises(FileError, match=r"holds no data\.mdb"):
        Datums(tmp_path)
    with pytest.raises(FileError, match="is empty"):
        Datums(lmdb(tmp_path / "empty", []))


def test_raw():
    datum = caffe_pb2.Datum(channels=2, height=3, width=1, data=b"123456")
    assert stored_shape(datum, "db", b"k") == (2, 3, 1)
    floats = caffe_pb2.Datum(channels=1, height=1, width=2, float_data=[1, 2])
    assert stored_shape(floats, "db", b"k") == (1, 1, 2)
    again = parse_datum(datum.SerializeToString(), "db", b"k")
    assert again.data == b"123456"


@pytest.mark.parametrize(
    ("shape", "data"), [((2, 3, 1), b"12345"), ((-1, -1, 1), b"1"), ((2**31 - 1,) * 3, b"1")]
)
def test_refused(shape, data):
    channels, height, width = shape
    datum = caffe_pb2.Datum(channels=channels, height=height, width=width, data=data)
    with pytest.raises(FileError, match=f"db: record b'k' says .* holds {len(data)} values"):
        stored_shape(datum, "db", b"k")


def test_no_datum():
    with pytest.raises(FileError, match="record b'k' is no Datum"):
        parse_datum(b"\xff\xff", "db", b"k")


def _encoded(mode: str) -> bytes:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.new(mode, (7, 5)).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("L", 1), ("P", 3), ("RGBA", 4)])
def test_encoded(mode, channels):
    data = _encoded(mode)
    assert image_shape(data) == (channels, 5, 7)
    datum = caffe_pb2.Datum(encoded=True, data=data)
    assert stored_shape(datum, "db", b"k") == (channels, 5, 7)
    assert stored_shape(datum, "db", b"k", color=True) == (3, 5, 7)
    assert stored_shape(datum, "db", b"k", color=False) == (1, 5, 7)


def test_no_image():
    with pytest.raises(FileError, match="db, record b'k': is no image"):
        stored_shape(caffe_pb2.Datum(encoded=True, data=b"none"), "db", b"k")


def test_the_mean_of_many_is_exact():
    data = np.full((3000, 1, 2, 2), 255, np.uint8)
    data[::3] = 254
    want = np.float32(255 - 1 / 3)
    np.testing.assert_array_equal(mean_of(ArrayRecords(data=data)), np.full((1, 2, 2), want))
    # A float32 sum would stop growing here.
    large = np.full((70, 1, 1, 1), 2**24 + 2, np.float32)
    assert mean_of(ArrayRecords(x=large), "x").item() == 2**24 + 2


def test_what_has_no_mean():
    with pytest.raises(FileError, match="have no column 'data': x"):
        mean_of(ArrayRecords(x=[1]))
    with pytest.raises(ArrayError, match="no image"):
        mean_of(ArrayRecords(data=np.zeros((0, 3))))
    mean = Mean()
    mean.add(np.zeros((1, 3, 2, 2)))
    with pytest.raises(ArrayError, match="image 1 is"):
        mean.add(np.zeros((1, 1, 2, 2)))
