"""DetectionData and EvalData: pictures with boxes from Cascade R-CNN's window files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sparknet import caffe
from sparknet.errors import LayerError
from sparknet.forks.cascade_rcnn.hosts.detection_data import ROOM, _cut
from sparknet.forks.cascade_rcnn.readers.boxed_pictures import Picture
from tests.caffe.host.nets import net

BOXES = [
    [(2, 0, 0, 4, 6, 35, 30), (1, 0, 1, 20, 20, 23, 22)],
    [(3, 1, 0, 10, 10, 30, 50)],
    [],
]
SIZES = [(40, 60), (70, 50), (40, 60)]


def listing(folder: Path, boxes: Any = BOXES, sizes: Any = SIZES) -> tuple[str, Any]:
    """A window file, and the pictures that it names."""
    rng = np.random.default_rng(0)
    lines, pictures = [], []
    for number, (rows, (high, wide)) in enumerate(zip(boxes, sizes, strict=True)):
        # Slopes: resizing changes them little.
        ramp = np.linspace(0, 200, high)[:, None, None] + np.linspace(0, 50, wide)[:, None]
        pixels = (ramp + rng.integers(0, 5, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        pictures.append(pixels[:, :, ::-1].transpose(2, 0, 1).astype(np.float32))
        outside = ["2 2 9 9"] if number == 1 else []
        lines += [f"# {number}", f"{number}.png", f"3 {high} {wide}".replace(" ", "\n")]
        lines += [str(len(rows)), *(" ".join(map(str, row)) for row in rows)]
        lines += [str(len(outside)), *outside]
    (folder / "windows").write_text("\n".join(lines) + "\n")
    return f"source: '{folder / 'windows'}' root_folder: '{folder}/' ", pictures


def data_layer(kind: str, options: str, transform: str = "", tops: str = "data") -> str:
    names = " ".join(f"top: '{name}'" for name in tops.split())
    field = {"EvalData": "eval_data_param", "DetectionData": "detection_data_param"}[kind]
    return (
        f"layer {{ name: 'src' type: '{kind}' {names} {field} {{ {options} }} "
        f"transform_param {{ {transform} }} }}"
    )


def test_pictures_in_their_order(tmp_path: Path) -> None:
    source, pictures = listing(tmp_path)
    text = data_layer(
        "EvalData",
        source + "batch_size: 1 short_size: 64 long_size: 96",
        "mean_value: 1 mean_value: 2 mean_value: 3 scale: 0.5",
        "data boxes size",
    )
    made = net(text)
    for number in (0, 1, 2, 0):
        made.forward()
        # 64 x 96, and 90 x 64 in multiples of 32.
        size = [(64, 96), (96, 64), (64, 96)][number]
        assert made.blobs["data"].data.shape == (1, 3, *size)
        assert made.blobs["size"].data.ravel().tolist() == list(size)
        was = SIZES[number]
        by = (size[1] / was[1], size[0] / was[0]) * 2
        want = [
            [0, *(corner * b for corner, b in zip(row[3:], by, strict=True)), *row[:3]]
            for row in BOXES[number]
        ] or [[-1] * 8]
        np.testing.assert_allclose(made.blobs["boxes"].data[:, :, 0, 0], want, rtol=1e-5)
        mean = (pictures[number].mean((1, 2)) - [1, 2, 3]) / 2
        np.testing.assert_allclose(made.blobs["data"].data[0].mean((1, 2)), mean, atol=0.3)


def wanted_labels(
    boxes: Any, outside: Any, size: Any, stride: int, field: Any, least: float
) -> Any:
    """Class, centre, size and overlap of the anchor at each place, one by one."""
    high, wide = (int(side / stride + 0.5) for side in size)
    found = np.zeros((6, high, wide))
    for i, j in np.ndindex(high, wide):
        x, y = (j + 0.5) * stride, (i + 0.5) * stride
        own = (x - field[0] / 2, y - field[1] / 2, x + field[0] / 2, y + field[1] / 2)
        best, most = None, 0.0
        for row in boxes:
            common, union = shared(own, row[3:])
            if common / union > most:
                best, most = row, common / union
        hidden = sum(shared(own, box)[0] for box in outside) / size_of(own)
        found[5, i, j] = most
        if best is not None and most > least:
            found[:5, i, j] = labelled(best)
        elif hidden >= 0.4:
            found[5, i, j] = 1
    return found


def labelled(row: Any) -> list[float]:
    label, ignored, _, x1, y1, x2, y2 = row
    return [0 if ignored else label, (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1 + 1, y2 - y1 + 1]


def size_of(box: Any) -> float:
    return float((box[2] - box[0] + 1) * (box[3] - box[1] + 1))


def shared(one: Any, two: Any) -> tuple[float, float]:
    wide = min(one[2], two[2]) - max(one[0], two[0]) + 1
    high = min(one[3], two[3]) - max(one[1], two[1]) + 1
    common = max(wide, 0) * max(high, 0)
    return common, size_of(one) + size_of(two) - common


OPTIONS = (
    "stride: 8 stride: 16 field_w: 30 field_w: 50 field_h: 24 field_h: 40 output_gt_boxes: true"
)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_labels_of_anchors(tmp_path: Path, number: int) -> None:
    source, pictures = listing(tmp_path)
    text = data_layer(
        "DetectionData",
        source + f"batch_size: 1 fg_threshold: 0.4 pickup_iou_thr: 0.9 {OPTIONS}",
        tops="data one two boxes",
    )
    made = net(text)
    for _ in range(number + 1):
        made.forward()
    np.testing.assert_array_equal(made.blobs["data"].data[0], pictures[number])
    outside = [(2, 2, 9, 9)] if number == 1 else []
    for name, stride, field in (("one", 8, (30, 24)), ("two", 16, (50, 40))):
        want = wanted_labels(BOXES[number], outside, SIZES[number], stride, field, 0.4)
        np.testing.assert_allclose(made.blobs[name].data[0], want, rtol=1e-5, atol=1e-6)
    rows = [[0, *row[3:], *row[:3]] for row in BOXES[number]] or [[-1] * 8]
    np.testing.assert_array_equal(made.blobs["boxes"].data[:, :, 0, 0], rows)


def test_boxes_that_no_anchor_holds(tmp_path: Path) -> None:
    """They go to the place of their centre, on the map that fits them best."""
    source, _ = listing(
        tmp_path, [[(2, 0, 0, 17, 9, 38, 30), (1, 0, 0, 50, 30, 51, 31)]], [(40, 60)]
    )
    text = data_layer(
        "DetectionData", source + f"batch_size: 1 fg_threshold: 0.95 {OPTIONS}",
        tops="data one two boxes",
    )  # fmt: skip
    made = net(text)
    made.forward()
    one = made.blobs["one"].data[0]
    assert np.argwhere(one[0]).tolist() == [[2, 3]]
    assert one[:5, 2, 3].tolist() == [2, 27.5, 19.5, 22, 22]
    assert made.blobs["two"].data[0, 0].max() == 0


def test_a_batch_on_canvases(tmp_path: Path) -> None:
    """Small pictures lie on an empty canvas with some noise, large ones are cut around a box."""
    source, pictures = listing(tmp_path)
    text = data_layer(
        "DetectionData",
        source + f"batch_size: 3 crop_width: 56 crop_height: 56 min_gt_height: 5 {OPTIONS}",
        "mirror: true",
        tops="data one two boxes",
    )
    made = net(text, caffe.TRAIN)
    seen = set()
    for _ in range(8):
        made.forward()
        data, rows = made.blobs["data"].data, made.blobs["boxes"].data[:, :, 0, 0]
        assert data.shape == (3, 3, 56, 56)
        assert rows[:, 0].tolist() == [0, 0, 1]
        # The tiny box and those that are off the canvas are ignored.
        assert rows[1, 6] == 1
        sizes = rows[:, 3:5] - rows[:, 1:3] + 1
        assert sizes.tolist() == [[32, 25], [4, 3], [21, 41]]
        top = np.flatnonzero(data[0].any((0, 2)))
        assert len(top) == 40
        # What lies in the first box is the same, mirrored or not.
        x1, y1, x2, y2 = rows[0, 1:5].astype(int)
        if x1 >= 0 and x2 < 56:
            part = data[0, :, y1 : y2 + 1, x1 : x2 + 1]
            own = pictures[0][:, 6:31, 4:36]
            mirrored = pictures[0][:, ::-1][:, ::-1]
            assert part.shape == own.shape
            assert (part == own).all() or part[0, 0, 0] >= part[0, 0, -1], mirrored.shape
        seen.add((x1, y1))
    assert len(seen) > 3


@pytest.mark.parametrize(
    ("how", "groups"), [("random_aspect", 2), ("random_mix_aspect", 3), ("random", None)]
)
def test_orders(tmp_path: Path, how: str, groups: int | None) -> None:
    """High pictures and wide ones apart, or by turns; each comes once in a round."""
    sizes = [(30, 40), (40, 30)] * 3
    boxes = [[(number + 1, 0, 0, 1, 1, 9, 9)] for number in range(6)]
    source, _ = listing(tmp_path, boxes, sizes)
    text = data_layer(
        "DetectionData",
        source + f"batch_size: 1 output_gt_boxes: true shuffle: '{how}' mix_group_size: 2",
        tops="data boxes",
    )
    made = net(text, caffe.TRAIN)
    for _ in range(3):
        labels, wide = [], []
        for _ in range(6):
            made.forward()
            labels.append(int(made.blobs["boxes"].data.ravel()[5]))
            wide.append(made.blobs["data"].data.shape[3] == 40)
        assert sorted(labels) == [1, 2, 3, 4, 5, 6]
        changes = sum(a != b for a, b in pairwise(wide))
        assert groups is None or changes == groups - 1 + (groups == 3)


def test_sizes_by_chance(tmp_path: Path) -> None:
    """Objects get a scale from min_scale to max_scale, whatever the picture's size."""
    source, _ = listing(tmp_path, [[(1, 0, 0, 10, 10, 25, 25)]], [(40, 60)])
    scales = "min_scale: 8 max_scale: 64 multiscale_prob: 1 min_whaspect: 0.5 max_whaspect: 2"
    text = data_layer(
        "DetectionData",
        source + f"batch_size: 2 crop_width: 64 crop_height: 48 output_gt_boxes: true {scales}",
        tops="data boxes",
    )
    made = net(text, caffe.TRAIN)
    found = []
    for _ in range(30):
        made.forward()
        rows = made.blobs["boxes"].data[:, :, 0, 0]
        found += [(row[3] - row[1], row[4] - row[2]) for row in rows]
        assert np.isfinite(made.blobs["data"].data).all()
    sides = np.array(found) * 16 / 15
    scale = np.sqrt(sides.prod(1))
    assert scale.min() >= 7.9
    assert scale.max() <= 64.2
    assert scale.min() < 14 < 40 < scale.max()
    aspects = sides[:, 0] / sides[:, 1]
    assert 0.49 < aspects.min() < 0.8 < 1.3 < aspects.max() < 2.1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("batch_size: 2 short_size: 64", "needs long_size and short_size, both positive"),
        ("batch_size: 1 stride: 8", "as many of stride, field_h and field_w; there are 1, 0, 0"),
        ("batch_size: 1 output_gt_boxes: true", "one with output_gt_boxes: 2, not 1"),
        ("batch_size: 1 shuffle: 'x'", "shuffle 'x' must be one of random, random_aspect"),
        ("batch_size: 1 min_scale: 3 max_scale: 2", "positive and in order; they are 3 and 2"),
        ("batch_size: 1 resize_ratio: 1e9", "would have more than|would be resized to"),
    ],
)
def test_settings(tmp_path: Path, options: str, says: str) -> None:
    source, _ = listing(tmp_path)
    with pytest.raises(LayerError, match=f"layer 'src': DetectionData: .*({says})"):
        net(data_layer("DetectionData", source + options)).forward()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("x 0", "image 0 does not begin with '#'"),
        ("# 1", "image 0 has the number 1"),
        ("# 0 a 1 4 4 0 0", "image 0 is 1 x 4 x 4; it needs 3 colours"),
        ("# 0 a 3 4 4 1 0 0 0 1 1 2 2 0", "image 0 has a box of a class below 1"),
        ("# 0 a 3 4 4 99999999 1", "ends where a number of a box is expected"),
    ],
)
def test_window_files_that_are_none(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "windows").write_text(text)
    source = f"source: '{tmp_path / 'windows'}' batch_size: 1"
    for kind in ("EvalData", "DetectionData"):
        tops = "data boxes" if kind == "EvalData" else "data"
        with pytest.raises(LayerError, match=f"layer 'src': {kind}: .*{says}"):
            net(data_layer(kind, source, tops=tops))
    with pytest.raises(LayerError, match="the window file '/no/such' cannot be read"):
        net(data_layer("DetectionData", "source: '/no/such' batch_size: 1"))


@pytest.mark.parametrize(
    ("middle", "first", "box"),
    [((50, 40), (40, 30), [2, 1, 12, 11]), ((2, 3), (0, 0), [32, 41, 42, 51])],
)
def test_what_is_cut_around_a_place_stays_inside(
    middle: Any, first: list[int], box: list[int]
) -> None:
    """20 of 60 rows and 15 of 45 columns are left of a picture that grows six times."""
    pixels = np.arange(60 * 45, dtype=np.int32).reshape(60, 45, 1)
    boxes, none = np.array([[32.0, 41.0, 42.0, 51.0]]), np.zeros((0, 4))
    picture = Picture(pixels, boxes, none, none)
    assert _cut(picture, np.array(middle), (ROOM * 3, ROOM * 3)).tolist() == list(first)
    rows, columns = slice(first[0], first[0] + 20), slice(first[1], first[1] + 15)
    np.testing.assert_array_equal(picture.pixels, pixels[rows, columns])
    assert picture.boxes.tolist() == [box]
