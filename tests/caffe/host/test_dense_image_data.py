"""DenseImageData and ImageSegData: pictures whose labels are pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.host.nets import images, net, passes, source


def listed(folder: Path, pixels: Any, labels: Any) -> str:
    from PIL import Image

    lines = []
    for number, (image, marks) in enumerate(zip(pixels, labels, strict=True)):
        Image.fromarray(image[:, :, ::-1]).save(folder / f"{number}.png")
        Image.fromarray(marks).save(folder / f"{number}_marks.png")
        lines.append(f"{number}.png {number}_marks.png\n")
    (folder / "list.txt").write_text("".join(lines))
    return str(folder / "list.txt")


@pytest.fixture
def pictures(tmp_path: Path) -> tuple[str, Any, Any]:
    pixels, labels = images(3, 8, 10, 3), images(3, 8, 10, seed=1) % 5
    return listed(tmp_path, pixels, labels), pixels, labels


def dense(path: str, options: str = "", batch: int = 2) -> str:
    folder = str(Path(path).parent) + "/"
    words = f"source: '{path}' root_folder: '{folder}' batch_size: {batch} {options}"
    return source("DenseImageData", dense_image_data_param=words)


def segmented(path: str, transform: str, options: str = "", tops: int = 2) -> str:
    folder = str(Path(path).parent) + "/"
    words = f"source: '{path}' root_folder: '{folder}' batch_size: 1 {options}"
    return source("ImageSegData", tops, image_data_param=words, transform_param=transform)


def test_pictures_and_labels(pictures: tuple[str, Any, Any]) -> None:
    path, pixels, labels = pictures
    made = net(dense(path))
    found = passes(made, 2).reshape(4, 3, 8, 10)
    np.testing.assert_array_equal(found, pixels[[0, 1, 2, 0]].transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(made.blobs["label"].data[:, 0], labels[[2, 0]])


def test_labels_are_divided(pictures: tuple[str, Any, Any]) -> None:
    path, _, labels = pictures
    made = net(dense(path, "label_divide_factor: 2", 1))
    np.testing.assert_array_equal(passes(made, 1, "label")[0, 0, 0], labels[0] / 2)


def test_crop_and_mirror_go_together(pictures: tuple[str, Any, Any]) -> None:
    """Each pixel of a crop has the label that it has in the whole picture."""
    path, pixels, labels = pictures
    made = net(dense(path, "crop_height: 4 crop_width: 5 mirror: true", 1), phase=0)
    places = set()
    for number in range(24):
        made.forward()
        image, marks = made.blobs["data"].data[0], made.blobs["label"].data[0, 0]
        whole, all_marks = pixels[number % 3].transpose(2, 0, 1), labels[number % 3]
        hits = [
            (y, x, turn)
            for y in range(5)
            for x in range(6)
            for turn in (1, -1)
            if np.array_equal(whole[:, y : y + 4, x : x + 5][:, :, ::turn], image)
        ]
        assert len(hits) == 1
        y, x, turn = hits[0]
        np.testing.assert_array_equal(all_marks[y : y + 4, x : x + 5][:, ::turn], marks)
        places.add(hits[0])
    assert len(places) > 12


def test_resized_labels_stay_labels(pictures: tuple[str, Any, Any]) -> None:
    path, _, labels = pictures
    made = net(dense(path, "new_height: 16 new_width: 20", 1))
    marks = passes(made, 1, "label")[0, 0, 0]
    np.testing.assert_array_equal(marks, labels[0].repeat(2, 0).repeat(2, 1))


def test_a_small_picture_is_filled_up(pictures: tuple[str, Any, Any]) -> None:
    path, pixels, labels = pictures
    text = segmented(
        path, "crop_size: 12 mean_value: 7 scale: 2", "label_type: PIXEL ignore_label: 250"
    )
    made = net(text.replace("top: 'label'", "top: 'label' top: 'dim'"))
    made.forward()
    image, marks = made.blobs["data"].data[0], made.blobs["label"].data[0, 0]
    np.testing.assert_array_equal(image[:, :8, :10], (pixels[0].transpose(2, 0, 1) - 7.0) * 2)
    assert not image[:, 8:].any()
    assert not image[:, :, 10:].any()
    np.testing.assert_array_equal(marks[:8, :10], labels[0])
    assert (marks[8:] == 250).all()
    assert made.blobs["dim"].data.ravel().tolist() == [8, 10]


def test_one_label_for_a_picture(tmp_path: Path, pictures: tuple[str, Any, Any]) -> None:
    (tmp_path / "numbers.txt").write_text("0.png 4\n1.png 2\n")
    made = net(segmented(str(tmp_path / "numbers.txt"), "crop_size: 6"))
    assert passes(made, 2, "label")[:, 0, 0, 0, 0].tolist() == [4, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.png\n", "line 1 is no pair"),
        ("", "holds no picture"),
        ("no.png no.png", "cannot be read"),
    ],
)
def test_lists_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(LayerError, match=message):
        net(dense(str(tmp_path / "bad.txt")))
