"""Boxes in the pixels of a record's own picture."""

from io import BytesIO

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.loaders.image_arrays import ImageArrays
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.predict.binary import Binary
from sparknet.predict.detections import BoxFrames, frame
from sparknet.spark import SparkModel


@pytest.mark.parametrize(
    ("how", "size", "net", "expected"),
    [
        ({}, (30, 40), (30, 40), (0, 0, 40, 30)),
        ({"resize": (10, 20)}, (30, 40), (10, 20), (0, 0, 40, 30)),
        ({"crop": (10, 20)}, (30, 40), (10, 20), (10, 10, 20, 10)),
        # 300 x 400 becomes 30 x 40; its middle 20 x 30 are rows 50 to 250, columns 50 to 350.
        ({"resize": (30, 40), "crop": (20, 30)}, (300, 400), (20, 30), (50, 50, 300, 200)),
        # 100 x 400 covers 20 x 20 as 20 x 80, of which the middle 20 columns are kept.
        ({"resize": 20, "resize_mode": "shorter"}, (100, 400), (20, 20), (150, 0, 100, 100)),
        # It fits into 20 x 20 as 5 x 20, between bars: 20 rows are 400 of its own.
        ({"resize": 20, "resize_mode": "fit"}, (100, 400), (20, 20), (0, -150, 400, 400)),
    ],
)
def test_where_the_nets_picture_lies(how, size, net, expected):
    np.testing.assert_allclose(frame(Preprocessing(**how), size, net), expected)


def encoded(height: int, width: int, orientation: int = 1) -> bytes:
    image = pytest.importorskip("PIL.Image")
    data = BytesIO()
    picture = image.new("RGB", (width, height))
    exif = picture.getexif()
    exif[274] = orientation
    picture.save(data, "JPEG", exif=exif)
    return data.getvalue()


def test_sizes_of_columns():
    pa = pytest.importorskip("pyarrow")
    files = pa.array([encoded(30, 40), encoded(50, 20, orientation=6), bytes(3 * 8 * 8)])
    how = Preprocessing(resize=8)
    kinds = Binary((3, None, None), ImageArrays(how, 3))
    found = BoxFrames("data", (3, 8, 8), how, kinds).frames(files)
    np.testing.assert_allclose(found, [[0, 0, 40, 30], [0, 0, 20, 50], [0, 0, 8, 8]])
    turned = Preprocessing(resize=8, upright=True)
    upright = BoxFrames("data", (3, 8, 8), turned, kinds)
    np.testing.assert_allclose(upright.frames(files)[1], [0, 0, 50, 20])
    with pytest.raises(FileError, match="is no image that can be read"):
        BoxFrames("data", (3, 8, 8), how, kinds).frames(pa.array([b"no picture"]))


DETECTOR = """
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: [1, 3, 20, 20] } } }
layer { name: "small" type: "Pooling" bottom: "data" top: "small"
  pooling_param { pool: AVE kernel_size: 10 stride: 10 } }
layer { name: "priors" type: "PriorBox" bottom: "small" bottom: "data" top: "priors"
  prior_box_param { min_size: 4 } }
layer { name: "conf" type: "Convolution" bottom: "small" top: "conf" convolution_param {
  num_output: 2 kernel_size: 1 weight_filler { type: "constant" value: 1 }
  bias_filler { type: "constant" value: 0.9 } } }
layer { name: "order" type: "Permute" bottom: "conf" top: "order"
  permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "scores" type: "Flatten" bottom: "order" top: "scores" }
layer { name: "loc" type: "Convolution" bottom: "small" top: "loc" convolution_param {
  num_output: 4 kernel_size: 1 } }
layer { name: "flat" type: "Flatten" bottom: "loc" top: "flat" }
layer { name: "found" type: "DetectionOutput" bottom: "flat" bottom: "scores" bottom: "priors"
  top: "found" detection_output_param { num_classes: 2 confidence_threshold: 0.5
  background_label_id: 0 nms_param { nms_threshold: 0.4 } } }
"""


def test_boxes_on_spark_are_in_each_pictures_pixels(session):
    """Four boxes at the centres of the quarters, a fifth of the picture in each direction."""
    sizes = [(20, 20), (100, 40), (60, 200)]
    rows = [(n, encoded(*size)) for n, size in enumerate(sizes)] + [(3, b"no picture")]
    data = session.createDataFrame(rows, "n int, content binary").coalesce(1)
    model = SparkModel(DETECTOR, columns={"data": "content"}, resize=20, random=True)
    made = model.transform(data, labels=["none", "dog"], invalid="null", batch=2).orderBy("n")
    found = [row.found for row in made.collect()]
    assert found[3] is None
    for boxes, (height, width) in zip(found, sizes, strict=False):
        assert {(box.label, box.name) for box in boxes} == {(1, "dog")}
        centres = sorted(((b.xmin + b.xmax) / 2, (b.ymin + b.ymax) / 2) for b in boxes)
        wanted = sorted((x * width, y * height) for x in (0.25, 0.75) for y in (0.25, 0.75))
        np.testing.assert_allclose(centres, wanted, rtol=1e-4)
        sides = [(b.xmax - b.xmin, b.ymax - b.ymin) for b in boxes]
        np.testing.assert_allclose(sides, [(width / 5, height / 5)] * 4, rtol=1e-4)
