"""ImageGtData: pictures with boxes from MS-CNN's window files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import LayerError
from tests.caffe.host.nets import net
from tests.caffe.host.test_boxed_data import listing

ANCHORS = (
    "downsample_rate: 8 downsample_rate: 16 field_w: 30 field_w: 50 field_h: 24 field_h: 40 "
    "output_gt_boxes: true "
)
BOXES = [
    [(2, 0, 4, 6, 35, 30), (1, 1, 20, 20, 43, 39)],
    [(3, 0, 10, 10, 30, 50)],
    [],
]
SIZES = [(40, 60), (70, 50), (40, 60)]
OUTSIDE = (2, 2, 9, 9)


def data_layer(options: str, transform: str = "", tops: str = "data one two boxes") -> str:
    names = " ".join(f"top: '{name}'" for name in tops.split())
    return (
        f"layer {{ name: 'src' type: 'ImageGtData' {names} image_gt_data_param {{ {options} }} "
        f"transform_param {{ {transform} }} }}"
    )


def area(box: Any) -> float:
    return float(max(box[2] - box[0], 0) * max(box[3] - box[1], 0))


def common(one: Any, two: Any) -> float:
    low, high = np.maximum(one[:2], two[:2]), np.minimum(one[2:], two[2:])
    return area([*low, *high])


def labelled(row: Any) -> list[float]:
    label, ignored, x1, y1, x2, y2 = row
    return [0 if ignored else label, (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1]


def wanted_labels(
    boxes: Any, outside: Any, canvas: Any, stored: Any, anchors: Any, least: float
) -> list[Any]:
    """Class, centre, size and overlap of the anchor at each place, one by one; a box that no
    anchor holds goes to its centre's place on the map that fits it best."""
    maps = []
    best = [(0.2, -1)] * len(boxes)
    hits = [0] * len(boxes)
    for number, (stride, *field) in enumerate(anchors):
        high, wide = (int(side / stride + 0.5) for side in canvas)
        found = np.zeros((6, high, wide))
        for i, j in np.ndindex(high, wide):
            x, y = (j + 0.5) * stride, (i + 0.5) * stride
            own = (x - field[0] / 2, y - field[1] / 2, x + field[0] / 2, y + field[1] / 2)
            on = i < int(stored[0] / stride + 0.5) and j < int(stored[1] / stride + 0.5)
            if not on or sum(common(own, box) for box in outside) / area(own) >= 0.4:
                found[5, i, j] = 1
                continue
            shares = [
                common(own, row[2:]) / (area(own) + area(row[2:]) - common(own, row[2:]))
                for row in boxes
            ]
            for place, share in enumerate(shares):
                if share > best[place][0] or (best[place][1] < 0 and share == 0.2):
                    best[place] = (share, number)
            found[5, i, j] = max(shares, default=0)
            if found[5, i, j] > least:
                place = int(np.argmax(shares))
                found[:5, i, j] = labelled(boxes[place])
                hits[place] += 1
        maps.append(found)
    for row, hit, (_, number) in zip(boxes, hits, best, strict=True):
        if row[1] or hit or number < 0:
            continue
        stride = anchors[number][0]
        x, y = (row[2] + row[4]) / 2, (row[3] + row[5]) / 2
        if maps[number][0, int(y / stride), int(x / stride)] <= 0:
            maps[number][:5, int(y / stride), int(x / stride)] = labelled(row)
    return maps


@pytest.mark.parametrize("least", [0.4, 0.9])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_labels_of_anchors(tmp_path: Path, number: int, least: float) -> None:
    source, pictures = listing(tmp_path, BOXES, SIZES)
    high, wide = SIZES[number]
    made = net(
        data_layer(
            f"{source} batch_size: 1 fg_threshold: {least} scale: 0.5 {ANCHORS} "
            f"crop_height: {high} crop_width: {wide}",
            "mean_value: 1 mean_value: 2 mean_value: 3",
        )
    )
    for _ in range(number + 1):
        made.forward()
    mean = np.array([1, 2, 3]).reshape(3, 1, 1)
    np.testing.assert_array_equal(made.blobs["data"].data[0], (pictures[number] - mean) / 2)
    anchors = ((8, 30, 24), (16, 50, 40))
    outside = [OUTSIDE] if number == 1 else []
    want = wanted_labels(BOXES[number], outside, (high, wide), (high, wide), anchors, least)
    for name, values in zip(("one", "two"), want, strict=True):
        np.testing.assert_allclose(made.blobs[name].data[0], values, rtol=1e-5, atol=1e-6)
    rows = [[0, *row[2:], *row[:2]] for row in BOXES[number]] or [[0, 1, 1, 2, 2, 1, 1]]
    np.testing.assert_array_equal(made.blobs["boxes"].data[:, :, 0, 0], rows)


def test_regions_without_labels(tmp_path: Path) -> None:
    """No anchor in them holds a box, and its overlap is 1."""
    source, _ = listing(tmp_path, [[]], [(40, 60)])
    (tmp_path / "windows").write_text("# 0 0.png 3 40 60 1 2 0 4 6 35 30 1 0 0 80 60\n")
    made = net(data_layer(f"{source} batch_size: 1 fg_threshold: 0.1 {ANCHORS}"))
    made.forward()
    assert (made.blobs["one"].data[0, 5] == 1).all()
    assert not made.blobs["one"].data[0, :5].any()


def test_the_last_picture_says_the_size(tmp_path: Path) -> None:
    source, pictures = listing(tmp_path, BOXES[:2], SIZES[:2])
    made = net(data_layer(f"{source} batch_size: 2 {ANCHORS}"))
    assert made.blobs["data"].shape == (2, 3, 70, 50)
    assert made.blobs["one"].shape == (2, 6, 9, 6)
    made.forward()
    np.testing.assert_array_equal(made.blobs["data"].data[1], pictures[1])
    lies = np.flatnonzero(made.blobs["data"].data[0].any((0, 2)))
    assert len(lies) == 40
    top = int(lies[0] / 8 + 0.5)
    assert (made.blobs["one"].data[0, 5, :top] == 1).all()


def test_pictures_with_boxes_come_more_often(tmp_path: Path) -> None:
    source, _ = listing(tmp_path, [[(1, 1, 1, 1, 9, 9)], [(2, 0, 1, 1, 9, 9)]], [(40, 60)] * 2)
    anchor = "downsample_rate: 8 field_w: 8 field_h: 8 output_gt_boxes: true"
    for shuffle in ("", "shuffle: true"):
        text = f"{source} batch_size: 1 fg_img_multiple: 3 {anchor} {shuffle}"
        made = net(data_layer(text, tops="data one boxes"))
        labels = []
        for _ in range(8):
            made.forward()
            labels.append(int(made.blobs["boxes"].data.ravel()[5]))
        assert sorted(labels[:4]) == sorted(labels[4:]) == [1, 2, 2, 2]


def test_sizes_by_half_octaves(tmp_path: Path) -> None:
    """A box of 20 becomes 14.1, 20, 28.3 … of the scales from 16 to 64, or stays as it is."""
    source, _ = listing(tmp_path, [[(1, 0, 10, 10, 30, 30)]], [(80, 80)])
    text = (
        f"{source} batch_size: 4 crop_width: 64 crop_height: 64 do_multiple_scale: true "
        f"min_scale: 16 max_scale: 64 {ANCHORS}"
    )
    made, seen = net(data_layer(text, "mirror: true"), caffe.TRAIN), set()
    for _ in range(20):
        made.forward()
        rows = made.blobs["boxes"].data[:, :, 0, 0]
        np.testing.assert_allclose(rows[:, 3] - rows[:, 1], rows[:, 4] - rows[:, 2], rtol=1e-4)
        seen |= {round(2 * np.log2((row[3] - row[1]) / 20), 3) for row in rows}
    # 20 lies next to 16 x 2 ^ 0.5.
    assert seen == {-1, 0, 1, 2, 3}
    shaped = net(data_layer(f"{text} min_whaspect: 0.5 max_whaspect: 2"), caffe.TRAIN)
    shapes = set()
    for _ in range(20):
        shaped.forward()
        rows = shaped.blobs["boxes"].data[:, :, 0, 0]
        shapes |= {round(float((r[3] - r[1]) / (r[4] - r[2])), 2) for r in rows}
    assert len(shapes) > 8
    assert 0.49 < min(shapes) < 0.8
    assert 1.3 < max(shapes) < 2.01


ANCHOR = "downsample_rate: 8 field_w: 8 field_h: 8"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("batch_size: 1", "at least one; there are 0, 0, 0"),
        ("batch_size: 1 downsample_rate: 8", "there are 1, 0, 0"),
        (f"batch_size: 0 {ANCHOR}", "batch_size 0 must be from 1"),
        (f"batch_size: 1 {ANCHOR} coord_num: 3", "coord_num must be 4; it is 3"),
        (f"batch_size: 1 {ANCHOR} fg_img_multiple: 4000000000", "it is 4000000000"),
        (f"batch_size: 1 {ANCHOR} resize_width: 0 resize_height: 9", "must be positive"),
        (f"batch_size: 1 {ANCHOR} output_gt_boxes: true", "with output_gt_boxes: 3, not 2"),
        (
            f"batch_size: 1 {ANCHOR} do_multiple_scale: true min_scale: 3 max_scale: 2",
            "in order; they are 3 and 2",
        ),
        (f"batch_size: 1 {ANCHOR} min_whaspect: 1 max_whaspect: 1", "they are 1 and 1"),
        (
            f"batch_size: 1 {ANCHOR} crop_width: 60000 crop_height: 60000",
            "would have more than",
        ),
    ],
)
def test_settings(tmp_path: Path, options: str, says: str) -> None:
    source, _ = listing(tmp_path, BOXES, SIZES)
    with pytest.raises(LayerError, match=f"layer 'src': ImageGtData: .*{says}"):
        net(data_layer(source + options, tops="data one"))
