"""DenseImageData and ImageSegData: pictures whose labels are pictures."""

from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.layers.host.nets import images, net, passes, source


def listed(folder, pixels, labels):
    from PIL import Image

    lines = []
    for number, (image, marks) in enumerate(zip(pixels, labels, strict=True)):
        Image.fromarray(image[:, :, ::-1]).save(folder / f"{number}.png")
        Image.fromarray(marks).save(folder / f"{number}_marks.png")
        lines.append(f"{number}.png {number}_marks.png\n")
    (folder / "list.txt").write_text("".join(lines))
    return str(folder / "list.txt")


@pytest.fixture
def pictures(tmp_path):
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


def test_image_files_and_labels(pictures):
    path, pixels, labels = pictures
    made = net(dense(path))
    found = passes(made, 2).reshape(4, 3, 8, 10)
    np.testing.assert_array_equal(found, pixels[[0, 1, 2, 0]].transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(made.blobs["label"].data[:, 0], labels[[2, 0]])


def test_labels_are_divided(pictures):
    path, _, labels = pictures
    made = net(dense(path, "label_divide_factor: 2", 1))
    np.testing.assert_array_equal(passes(made, 1, "label")[0, 0, 0], labels[0] / 2)


def test_crop_and_mirror_go_together(pictures):
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


def test_resized_labels_stay_labels(pictures):
    path, _, labels = pictures
    made = net(dense(path, "new_height: 16 new_width: 20", 1))
    marks = passes(made, 1, "label")[0, 0, 0]
    np.testing.assert_array_equal(marks, labels[0].repeat(2, 0).repeat(2, 1))


def test_a_small_picture_is_filled_up(pictures):
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


def test_one_label_for_a_picture(tmp_path, pictures):
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
def test_lists_that_are_none(tmp_path, text, message):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(LayerError, match=message):
        net(dense(str(tmp_path / "bad.txt")))


# -- ImageLabelmapData and SegData -----------------------------------------------------------


def test_maps_of_edges(pictures, tmp_path):
    """Brighter than half is an edge; the mean is taken off."""
    _, pixels, _ = pictures
    maps = images(3, 8, 10, seed=4)
    path = listed(tmp_path, pixels, maps)
    words = f"source: '{path}' root_folder: '{tmp_path}/' batch_size: 2"
    made = net(source("ImageLabelmapData", image_data_param=words, transform_param="mean_value: 7"))
    found = passes(made, 1)[0]
    np.testing.assert_array_equal(found, pixels[:2].transpose(0, 3, 1, 2) - 7.0)
    np.testing.assert_array_equal(made.blobs["label"].data[:, 0], maps[:2] > 127)
    small = net(source("ImageLabelmapData", image_data_param=f"{words} new_height: 4 new_width: 5"))
    small.forward()
    assert small.blobs["label"].data.shape == (2, 1, 4, 5)
    assert set(np.unique(small.blobs["label"].data)) <= {0, 1}
    with pytest.raises(LayerError, match="crop_size 9 is larger than the pictures"):
        net(source("ImageLabelmapData", image_data_param=words, transform_param="crop_size: 9"))


def strided(path: str, transform: str, options: str = "") -> str:
    folder = str(Path(path).parent) + "/"
    words = f"source: '{path}' root_dir: '{folder}' {options}"
    return source("SegData", seg_data_param=words, transform_param=transform)


def test_parts_with_sides_of_a_stride(pictures):
    path, pixels, labels = pictures
    made = net(strided(path, "stride: 3 mirror: true"))
    places = set()
    for turn in range(12):
        made.forward()
        data, marks = made.blobs["data"].data[0], made.blobs["label"].data[0, 0]
        assert data.shape == (3, 6, 9)
        whole = pixels[turn % 3].transpose(2, 0, 1)
        found = [
            (top, left, mirrored)
            for top in range(3) for left in range(2) for mirrored in (1, -1)
            if (whole[:, top : top + 6, left : left + 9][:, :, ::mirrored] == data).all()
        ]  # fmt: skip
        (top, left, mirrored), = found  # fmt: skip
        part = labels[turn % 3][top : top + 6, left : left + 9]
        np.testing.assert_array_equal(marks, part[:, ::mirrored])
        places.add(found[0])
    assert len(places) > 5


def test_scaled_parts(pictures):
    path, _, labels = pictures
    made = net(strided(path, "stride: 2 scale_ratios: 0.5 scale_ratios: 2 upper_size: 12"))
    sizes = set()
    for turn in range(30):
        made.forward()
        data, marks = made.blobs["data"].data, made.blobs["label"].data
        assert data.shape[2:] == marks.shape[2:]
        assert all(side % 2 == 0 and side <= 12 for side in data.shape[2:])
        assert set(np.unique(marks)) <= set(np.unique(labels[turn % 3]))
        sizes.add(data.shape[2:])
    assert len(sizes) > 3
    with pytest.raises(LayerError, match="needs a positive stride, and scale_ratios"):
        net(strided(path, "scale_ratios: 2 scale_ratios: 1"))
    with pytest.raises(LayerError, match="smaller than the stride 99"):
        net(strided(path, "stride: 99")).forward()


def test_parts_of_several_labels(tmp_path):
    """With balance a part of one label is drawn again."""
    labels = np.zeros((1, 8, 32), np.uint8)
    labels[:, :, 20:] = 1
    path = listed(tmp_path, images(1, 8, 32, 3), labels)
    shares = []
    for options in ("", "balance: true"):
        made = net(strided(path, "stride: 8 upper_height: 8 upper_width: 8", options))
        found = passes(made, 40, "label").mean((1, 2, 3, 4))
        shares.append(np.mean((found < 0.2) | (found > 0.8)))
    # Five of 25 places are mixed, and there are ten draws.
    assert shares[0] > 0.6
    assert shares[1] < 0.3
