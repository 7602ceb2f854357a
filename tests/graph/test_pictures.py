"""Nets and arrays as pictures, against plain loops."""

import io
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sparknet import Net, NetParams, caffe
from sparknet.errors import ArrayError, FileError
from sparknet.graph.tiles import tiles

SVG = "{http://www.w3.org/2000/svg}"
TEXT = """
name: "a<b"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [2, 3, 8, 8] } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 5 kernel_size: 3 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "left" type: "Pooling" bottom: "conv" top: "left" pooling_param { kernel_size: 2 } }
layer { name: "right" type: "Pooling" bottom: "conv" top: "right" pooling_param { kernel_size: 2 } }
layer { name: "sum" type: "Eltwise" bottom: "left" bottom: "right" top: "sum" }
"""


def looped(planes, times):
    """Planes of rows of (r, g, b) by plain loops: the least is black, the largest white."""
    low, high = planes.min(), planes.max()
    columns = math.ceil(math.sqrt(len(planes)))
    rows = math.ceil(len(planes) / columns)
    height, width = planes.shape[1] * times, planes.shape[2] * times
    gap = 1 + times // 4
    shape = (rows * (height + gap) - gap, columns * (width + gap) - gap, 3)
    picture = np.full(shape, 255, np.uint8)
    for number, plane in enumerate(planes):
        for y in range(height):
            for x in range(width):
                for color in range(3):
                    value = float(plane[y // times, x // times, color])
                    down = number // columns * (height + gap) + y
                    across = number % columns * (width + gap) + x
                    share = (value - float(low)) / (float(high) - float(low))
                    picture[down, across, color] = round(255 * share)
    return picture


def pixels(data):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(data)))


def net(tmp_path: Path) -> caffe.Net:
    path = tmp_path / "net.prototxt"
    path.write_text(TEXT)
    return caffe.Net(str(path), caffe.TEST)


def test_filters_are_tiles_in_colour(tmp_path):
    weights = net(tmp_path).params["conv"][0]
    weights.data[...] = np.random.default_rng(3).normal(size=(5, 3, 3, 3))
    drawn = weights.plot(tmp_path / "filters.png")
    turned = weights.data[:, ::-1].transpose(0, 2, 3, 1)  # Caffe's channels are blue, green, red
    expected = looped(turned, 480 // 9)
    assert (drawn.pixels == expected).all()
    assert (pixels((tmp_path / "filters.png").read_bytes()) == expected).all()
    assert (pixels(drawn._repr_png_()) == expected).all()
    rgb = weights.plot(channels="rgb").pixels
    assert (rgb == looped(weights.data.transpose(0, 2, 3, 1), 480 // 9)).all()
    assert repr(drawn) == "<Picture of 5 x 3 x 3 x 3 values as 5 tiles, 505 x 332 pixels>"


def test_activations_are_grey_tiles(tmp_path):
    made = net(tmp_path)
    made.forward(data=np.random.default_rng(4).normal(size=(2, 3, 8, 8)))
    made.blobs["conv"].diff[...] = np.arange(2 * 5 * 6 * 6).reshape(2, 5, 6, 6)
    for values, drawn in (
        (made.blobs["conv"].data, made.blobs["conv"].plot(most=7)),
        (made.blobs["conv"].diff, made.blobs["conv"].plot(most=7, diff=True)),
    ):
        planes = values.reshape(10, 6, 6)[:7, ..., np.newaxis].repeat(3, axis=3)
        assert (drawn.pixels == looped(planes, 480 // 18)).all()
        assert "as 7 of 10 tiles" in repr(drawn)


def test_other_arrays():
    row = tiles([0, 1, 2, np.nan, np.inf]).pixels[0, ::96]
    assert row.tolist() == [[0] * 3, [128] * 3, [255] * 3, [255, 0, 255], [255, 0, 255]]
    assert (tiles(np.full((2, 2), 7)).pixels == 0).all()
    assert tiles(5).pixels.shape == (480, 480, 3)
    wide = np.arange(3 * 2049).reshape(3, 2049) % 256
    assert (tiles(wide).pixels[..., 0] == wide[:, ::3]).all()
    extremes = np.array([[-3e38, 0, 3e38]], np.float32)
    assert tiles(extremes).pixels[0, ::160, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize(
    ("values", "more", "said"),
    [
        (np.zeros((0, 3)), {}, "nothing to draw in an array of 0 x 3 float64"),
        (["a"], {}, "nothing to draw in an array of 1 <U1"),
        ([1], {"most": 0}, "most is 0: a whole number of tiles is needed"),
        ([1], {"channels": "gbr"}, "channels is 'gbr': 'bgr' or 'rgb' is needed"),
    ],
)
def test_what_cannot_be_tiles(values, more, said):
    with pytest.raises(ArrayError, match=said):
        tiles(values, **more)


def test_a_picture_has_its_formats(tmp_path):
    with pytest.raises(FileError, match=r"ends in \.png"):
        tiles([1]).save(tmp_path / "a.jpg")
    with pytest.raises(FileError, match=r"ends in \.svg"):
        NetParams.from_text(TEXT).plot(tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_nets(tmp_path):
    drawn = net(tmp_path).plot(tmp_path / "net.svg")
    assert (tmp_path / "net.svg").read_text() == drawn._repr_svg_() == drawn.svg
    assert repr(drawn) == "<Drawing of net 'a<b'>"
    root = ElementTree.fromstring(drawn.svg)
    boxes = [tuple(float(one.attrib[name]) for name in "xy") for one in root.iter(f"{SVG}rect")]
    assert boxes == [(96, 22), (96, 78), (14, 134), (178, 134), (96, 190)]
    assert [one.text for one in root.iter(f"{SVG}title")] == [
        "data (Input) 2 x 3 x 8 x 8",
        "conv (Convolution) 2 x 5 x 6 x 6, 140 parameters\nrelu (ReLU) 2 x 5 x 6 x 6",
        "left (Pooling) 2 x 5 x 5 x 5",
        "right (Pooling) 2 x 5 x 5 x 5",
        "sum (Eltwise) 2 x 5 x 5 x 5",
    ]
    assert len(list(root.iter(f"{SVG}path"))) == 5
    assert NetParams.from_text(TEXT).plot(phase="TEST").svg == drawn.svg
    assert Net(TEXT).plot().svg == drawn.svg
