"""Images of a few formats are opened, whatever Pillow and the file's name say."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sparknet.caffe as caffe
from sparknet.errors import FileError
from sparknet.loaders import ImageFiles
from sparknet.loaders.image_decoding import FORMATS, decode, image_shape

PIXELS = np.full((8, 9, 3), (200, 10, 20), np.uint8)


def stored(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PIXELS).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_read(kind, tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(stored(kind))
    assert image_shape(str(path))[1:] == (8, 9)
    found = decode(path.read_bytes(), "x", True)
    np.testing.assert_allclose(found.astype(int), PIXELS.transpose(2, 0, 1)[::-1], atol=6)
    np.testing.assert_allclose(caffe.io.load_image(path) * 255, PIXELS, atol=6)


@pytest.mark.parametrize("kind", ["EPS", "ICNS", "PCX", "SGI", "TGA", "JPEG2000", "DDS"])
def test_what_is_refused(kind, tmp_path):
    path = tmp_path / "1" / "a.jpg"
    path.parent.mkdir()
    path.write_bytes(stored(kind))
    says = "is no image that can be read"
    for image in (str(path), path.read_bytes()):
        with pytest.raises(FileError, match=says):
            image_shape(image, "a")
        with pytest.raises(FileError, match=says):
            decode(image, "a", None)
    with pytest.raises(FileError, match=f"a.jpg: {says}"):
        caffe.io.load_image(path)
    with pytest.raises(FileError, match=f"a.jpg: {says}"):
        ImageFiles(tmp_path).take([0])


def test_only_one_place_opens_images():
    root = Path(caffe.__file__).parents[1]
    opening = {path.name for path in root.rglob("*.py") if "Image.open(" in path.read_text()}
    assert opening == {"image_decoding.py"}
