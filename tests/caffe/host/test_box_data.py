"""BoxData: images with boxes in Datums, for YOLOv2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import LayerError
from sparknet.loaders.image import encode
from tests.caffe.host.nets import database, datum, net, source

BOXES = [[3, 0, 0.25, 0.5, 0.2, 0.4], [1, 1, 0.75, 0.25, 0.1, 0.1]]


def ramps() -> Any:
    """Red says the row, green the column."""
    rows, columns = np.mgrid[:40, :50]
    return np.stack([np.zeros((40, 50)), columns * 5, rows * 6]).astype(np.uint8)


def text(folder: Path, transform: str = "", **fields: Any) -> str:
    values = {"float_data": np.ravel(BOXES).tolist(), "encoded": True, "label": 0, **fields}
    image = encode(ramps(), "png", "x")
    path = database(folder, [datum(data=image, **values)])
    options = f"source: '{path}' batch_size: 2 backend: LMDB"
    return source("BoxData", data_param=options, transform_param=transform)


def test_boxes_of_a_test(tmp_path: Path) -> None:
    made = net(text(tmp_path, "mean_value: 9"))
    made.forward()
    np.testing.assert_array_equal(made.blobs["data"].data[1], ramps() - 9.0)
    rows = made.blobs["label"].data.reshape(2, 30, 5)
    np.testing.assert_allclose(rows[0, :2], np.array(BOXES)[:, [0, 2, 3, 4, 5]], rtol=1e-6)
    assert not rows[:, 2:].any()


def test_parts_of_training(tmp_path: Path) -> None:
    """A box's centre is where the ramps say that it is; a part keeps 70 % of each side."""
    made = net(text(tmp_path), caffe.TRAIN)
    seen = set()
    for _ in range(20):
        made.forward()
        for data, rows in zip(
            made.blobs["data"].data, made.blobs["label"].data.reshape(2, 30, 5), strict=True
        ):
            kept = rows[rows[:, 3] > 0]
            seen.add(len(kept))
            for label, x, y, wide, high in kept:
                box = next(one for one in BOXES if one[0] == label)
                at = data[:, min(int(y * 40), 39), min(int(x * 50), 49)]
                assert abs(at[1] / 5 - int(box[2] * 50)) < 1.6
                assert abs(at[2] / 6 - int(box[3] * 40)) < 1.6
                assert 1 <= wide / (int(box[4] * 50) / 50) < 1.6
                assert 1 <= high / (int(box[5] * 40) / 40) < 1.6
    assert seen == {1, 2}


@pytest.mark.parametrize(
    "fields", [{"float_data": []}, {"float_data": [1.0] * 5}, {"float_data": [float("nan")] * 6}]
)
def test_records_without_boxes(tmp_path: Path, fields: Any) -> None:
    made = net(text(tmp_path, **fields))
    with pytest.raises(LayerError, match=r"layer 'src': BoxData: .*record b'00000'"):
        made.forward()
