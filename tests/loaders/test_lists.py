"""Files that name pictures, boxes, sizes and classes line by line, and what is checked of them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sparknet.errors import FileError, SpecError
from sparknet.layers.detection_evaluate import in_pixels, read_sizes
from sparknet.layers.labelled_pictures import read_pairs
from sparknet.loaders.image_decoding import LARGEST, check_size
from sparknet.loaders.image_files import read_labels
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.window import read_windows, warp_window


def written(folder: Path, text: str | bytes, name: str = "list") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_pairs(tmp_path):
    assert read_pairs(written(tmp_path, "a b\n\n c  d \n")) == [("a", "b"), ("c", "d")]
    assert read_pairs(written(tmp_path, "a\nb c\n"), two=False) == [("a", ""), ("b", "c")]


def test_sizes(tmp_path):
    assert read_sizes(written(tmp_path, "a 1 2\n\nb 30 40\n")) == [(1, 2), (30, 40)]


def test_names_of_classes(tmp_path):
    assert read_labels(written(tmp_path, "cat\nblue dog\n")) == ["cat", "blue dog"]
    text = 'item { name: "n1" label: 2 display_name: "dog" } item { name: "cat" label: 0 }'
    assert read_labels(written(tmp_path, text, "map.prototxt")) == ["cat", "", "dog"]


PictureReader = Callable[[str], object]


def windows(path):
    return read_windows(path, 0.5, 0.5)


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (read_pairs, "a b\nc\n", "line 2 is no pair of a picture and its labels"),
        (read_pairs, "a b c\n", "line 1 is no pair of a picture and its labels"),
        (read_pairs, "\n", "holds no picture"),
        (read_sizes, "a 1 0\n", "line 1 is no name with a height and a width"),
        (read_sizes, "a 1 2\nb 1\n", "line 2 is no name with a height and a width"),
        (read_labels, b"\xff\n", "cannot be read: is no text in UTF-8"),
        (windows, "# 1 a 3 4 5 0", "image 0 has the number 1"),
        (windows, "0 a 3 4 5 0", "image 0 does not begin with '#'"),
    ],
)
def test_lines_that_are_wrong(read, text, says, tmp_path):
    with pytest.raises(FileError, match=says):
        read(written(tmp_path, text))


def test_pairs_whose_second_word_may_be_missing(tmp_path):
    with pytest.raises(FileError, match="line 1 is no pair of a picture and its labels"):
        read_pairs(written(tmp_path, "a b c\n"), two=False)


def test_names_of_classes_that_are_not_there(tmp_path):
    with pytest.raises(FileError, match="no such file or folder"):
        read_labels(tmp_path / "none")


def test_boxes_in_pixels_end_at_the_picture():
    boxes = np.array([[-0.5, 0.0, 0.25, 1.5]])
    assert in_pixels(boxes, (40, 80), None).tolist() == [[0, 0, 20, 40]]


def test_windows_end_at_the_last_pixel():
    image = np.arange(24).reshape(4, 6)
    part = warp_window(image, (2, 1, 5, 3), 4, 0, False)[0]
    assert part.tolist() == image[1:, 2:].tolist()
    for box in ((2, 1, 6, 3), (2, 1, 5, 4), (-1, 1, 5, 3), (5, 1, 2, 3)):
        with pytest.raises(ValueError, match="is not in 6 x 4"):
            warp_window(image, box, 4, 0, False)


def test_image_files_of_too_many_pixels():
    side = 1 << 13
    check_size(SimpleNamespace(size=(LARGEST // side, side)), "a")
    picture = SimpleNamespace(size=(LARGEST // side + 1, side))
    with pytest.raises(FileError, match="a: announces 8192 x 8193 pixels, which is too large"):
        check_size(picture, "a")


def test_preprocessing_in_the_terms_of_a_classifier():
    said = Preprocessing.of_classifier(mean=[10, 20, 30], raw_scale=51, input_scale=0.5)
    assert said.scale == pytest.approx(0.1)
    np.testing.assert_allclose(said.mean, [50, 100, 150])
    with pytest.raises(SpecError, match="raw_scale is 0: every picture would be the same"):
        Preprocessing.of_classifier(raw_scale=0)


def test_images_keep_their_size_where_they_are_cropped():
    assert Preprocessing().completed((3, 7, 9)).resize == (7, 9)
    assert Preprocessing(crop=5).completed((3, 7, 9)).resize is None
    assert Preprocessing(resize=(4, 4)).completed((3, 7, 9)).resize == (4, 4)
