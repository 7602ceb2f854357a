import io

import pytest

from sparknet.errors import FileError
from sparknet.loaders.datums import parse_datum, stored_shape
from sparknet.loaders.image import image_shape
from sparknet.proto import caffe_pb2


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
