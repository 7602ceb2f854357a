from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparknet.errors import LayerError
from sparknet.native.transform import resize_image
from tests.layers.host.nets import images, net, passes, source


def _file(folder: Path, pixels: np.ndarray, windows: list[list[str]]) -> str:
    text = ""
    for number, (image, boxes) in enumerate(zip(pixels, windows, strict=True)):
        Image.fromarray(image).save(folder / f"{number}.png")
        height, width, channels = image.shape
        text += f"# {number}\n{number}.png\n{channels}\n{height}\n{width}\n{len(boxes)}\n"
        text += "".join(box + "\n" for box in boxes)
    (folder / "windows").write_text(text)
    return f"source: '{folder}/windows' root_folder: '{folder}/'"


def _text(options: str, transform: str) -> str:
    return source("WindowData", window_data_param=options, transform_param=transform)


def test_shares_labels_and_pixels(tmp_path):
    pixels = images(2, 12, 14, 3)
    boxes = [["3 0.9 2 1 9 8", "5 0.1 0 0 5 5", "4 0.5 0 0 1 1"], ["7 0.6 4 4 13 11"]]
    options = _file(tmp_path, pixels, boxes) + " batch_size: 8 fg_fraction: 0.25 fg_threshold: 0.6"
    made = net(_text(options + " bg_threshold: 0.5 scale: 0.5", "crop_size: 7 mean_value: 10"))
    batches = passes(made, 6)
    labels = made.blobs["label"].data
    assert labels[:6].tolist() == [0] * 6
    assert set(labels[6:]) <= {3, 7}
    background = resize_image(np.ascontiguousarray(pixels[0, :6, :6]), 7, 7)
    want = (background[..., ::-1].transpose(2, 0, 1).astype(np.float32) - 10) * np.float32(0.5)
    for batch in batches:
        for image in batch[:6]:
            np.testing.assert_array_equal(image, want)
    again = net(_text(options + " bg_threshold: 0.5 scale: 0.5", "crop_size: 7 mean_value: 10"))
    np.testing.assert_array_equal(passes(again, 6), batches)


def test_context_keeps_its_margin_and_what_lies_outside_is_empty(tmp_path):
    """A window in the corner: with half of the crop context, a quarter is outside on each side."""
    pixels = np.full((1, 20, 20, 3), 200, np.uint8)
    options = _file(tmp_path, pixels, [["1 1 0 0 7 7"]]) + " batch_size: 20 fg_fraction: 1"
    made = net(_text(options + " context_pad: 4", "crop_size: 16 mirror: true"))
    images_seen = passes(made, 2).reshape(40, 3, 16, 16)
    # 8 pixels become 8 of 16: the region is -4 … 12, a quarter of which lies outside.
    empty = images_seen == 0
    sides = {(bool(one[0, 8, 0]), bool(one[0, 8, -1])) for one in empty}
    assert sides == {(True, False), (False, True)}
    assert empty[:, :, 0, :].all()
    assert not empty[:, :, -1, 8].any()
    assert set(np.unique(images_seen)) == {0, 200}


def test_square(tmp_path):
    """A flat window grows to a square about its middle."""
    pixels = images(1, 21, 21, 3)
    options = _file(tmp_path, pixels, [["1 1 5 9 14 12"]]) + " batch_size: 1 fg_fraction: 1"
    got = passes(net(_text(options + " crop_mode: 'square'", "crop_size: 11")), 1)[0, 0]
    part = np.ascontiguousarray(pixels[0, 6:17, 5:16])
    np.testing.assert_array_equal(got, part[..., ::-1].transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# 0 0.png 3 12 14 1 0 0.9 0 0 1 1", "foreground of label 0"),
        ("# 0 0.png 3 12 14 2 1 0.9 0 0 1 1", "ends where a label is expected"),
        ("# 0 0.png 3 12 14 1 1 0.9 0 0 x 1", "has 'x' where a corner is expected"),
        ("# 1 0.png 3 12 14 0", "image 0 has the number 1"),
        ("# 0 0.png 3 12 14 99999999999", "where a windows is expected"),
        ("# 0 0.png 3 12 14 1 1 0.1 0 0 1 1", "has no foreground window for 2 of 2"),
        ("# 0 0.png 3 12 14 1 1 0.9 0 0 50 1", r"0\.png: the window \(0, 0, 50, 1\) is not in"),
        ("# 0 0.png 3 12 14 1 1 0.9 9 9 1 1", "is not in 14 x 12"),
        ("# 0 0.png 1 12 14 1 1 0.9 0 0 1 1", "says 1 channels"),
        ("# 0 no.png 3 12 14 1 1 0.9 0 0 1 1", r"no\.png: does not exist"),
    ],
)
def test_refused(text, says, tmp_path):
    options = _file(tmp_path, images(1, 12, 14, 3), [[]]) + " batch_size: 2 fg_fraction: 1"
    (tmp_path / "windows").write_text(text)
    with pytest.raises(LayerError, match=f"layer 'src': WindowData: .*{says}"):
        net(_text(options, "crop_size: 5")).forward()
