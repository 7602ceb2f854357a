"""Input, Parameter, DummyData, MemoryData, HDF5Output, Data, ImageData, WindowData, HDF5Data."""

from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, make
from sparknet.proto import caffe_pb2, write_blob
from tests.goldens import GOLDENS
from tests.layers.nets import layer, plan

SOURCES = [
    "Data",
    "DummyData",
    "HDF5Data",
    "HDF5Output",
    "ImageData",
    "Input",
    "MemoryData",
    "Parameter",
    "WindowData",
]


def _rgb(transform: str, **change: str) -> str:
    fields = {"source": "'rgb_lmdb'", "backend": "LMDB", "batch_size": "2", **change}
    text = " ".join(f"{name}: {value}" for name, value in fields.items())
    return f"data_param {{ {text} }} transform_param {{ {transform} }}"


def test_only_parameter_has_a_gradient():
    assert [name for name in SOURCES if LAYERS[name].has_gradient] == ["Parameter"]


@pytest.mark.parametrize(
    ("dims", "says"),
    [
        ("dim: -1", "negative size"),
        ("dim: 4611686018427387904", "more than 2147483647"),
        ("dim: 65536 dim: 65536", "more than 2147483647"),
        ("dim: 1 " * 33, "33 axes"),
    ],
)
def test_absurd_shapes_are_refused(dims, says):
    for kind, field in (
        ("Input", "input"),
        ("DummyData", "dummy_data"),
        ("Parameter", "parameter"),
    ):
        with pytest.raises(LayerError, match=says):
            plan(kind, f"{field}_param {{ shape {{ {dims} }} }}")


@pytest.mark.parametrize(
    ("change", "transform", "says"),
    [
        ({}, "crop_size: 9", "crop_size 9 is larger than the data, 8 x 10"),
        ({}, "mean_value: 1 mean_value: 2", "one for each of the 3 channels; there are 2"),
        ({}, "mean_value: 1 mean_file: 'rgb_mean.binaryproto'", "not both"),
        ({}, "mean_file: 'absent'", "the mean file cannot be read: absent"),
        ({}, "resize_param { }", "resize_param belongs to SSD"),
        ({"batch_size": "0"}, "", "batch_size 0 must be from 1 to"),
        (
            {"source": "'absent'"},
            "",
            "the database 'absent' cannot be read: absent: does not exist",
        ),
        ({"source": "'h5'"}, "", "holds no data.mdb"),
        ({"source": "'" + "x" * 5000 + "'"}, "", "cannot be read"),
        ({}, "mean_file: '" + "x" * 5000 + "'", "the mean file cannot be read"),
        ({}, "mean_file: '.'", "the mean file cannot be read"),
        ({"source": "'gray_lmdb'"}, "mean_file: 'rgb_mean.binaryproto'", "the data is 1 x 6 x 6"),
    ],
)
def test_data_refused(change, transform, says, monkeypatch):
    monkeypatch.chdir(GOLDENS / "data")
    with pytest.raises(LayerError, match=says):
        plan("Data", _rgb(transform, **change))


def test_files_are_looked_at_once(monkeypatch, tmp_path):
    monkeypatch.chdir(GOLDENS / "data")
    made = layer("Data", _rgb("mean_file: 'rgb_mean.binaryproto'"), bottoms=0)
    first = made.plan([])
    monkeypatch.chdir(tmp_path)
    assert made.plan([]) is first


def test_data_values(monkeypatch):
    monkeypatch.chdir(GOLDENS / "data")
    found = plan("Data", _rgb("crop_size: 6 mean_file: 'rgb_mean.binaryproto' mirror: true"))
    values = dict(found.values)
    assert values.pop("mean").shape == (3, 8, 10)
    assert values == {
        "source": "rgb_lmdb",
        "batch_size": 2,
        "labels": False,
        "shuffle": False,
        "crop_size": 6,
        "scale": 1,
        "mirror": True,
        "force_color": False,
        "force_gray": False,
        "mean_values": (),
        "random_size": None,
    }


def _images(folder: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (7, 5)).save(folder / "one two.png")
    listing = folder / "list.txt"
    listing.write_text("one two.png 3\n\nabsent.png 4\n")
    return listing


def test_image_data(tmp_path):
    listing = _images(tmp_path)
    text = f"image_data_param {{ source: '{listing}' root_folder: '{tmp_path}/' batch_size: 4 %s }}"
    assert plan("ImageData", text % "", tops=2).tops == ((4, 3, 5, 7), (4,))
    assert plan("ImageData", text % "is_color: false", tops=2).tops == ((4, 1, 5, 7), (4,))
    found = plan("ImageData", text % "new_height: 8 new_width: 9", tops=2)
    assert found.tops == ((4, 3, 8, 9), (4,))
    cropped = plan("ImageData", text % "" + "transform_param { crop_size: 3 }", tops=2)
    assert cropped.tops == ((4, 3, 3, 3), (4,))
    with pytest.raises(LayerError, match="new_height and new_width together; they are 8 and 0"):
        plan("ImageData", text % "new_height: 8", tops=2)
    listing.write_text("")
    with pytest.raises(LayerError, match="holds no image"):
        plan("ImageData", text % "", tops=2)
    listing.write_text("absent.png 1")
    with pytest.raises(LayerError, match=r"the first image cannot be read: .*absent.png: does not"):
        plan("ImageData", text % "", tops=2)
    listing.write_text("absent.png x")
    with pytest.raises(LayerError, match="line 1 is not a file name and a label"):
        plan("ImageData", text % "", tops=2)


def test_window_data(tmp_path):
    listing = tmp_path / "windows.txt"
    listing.write_text("# 0\nimage.png\n3\n20\n30\n1\n1 0.9 0 0 5 5\n")
    text = f"window_data_param {{ source: '{listing}' batch_size: 4 %s }} transform_param {{ %s }}"
    found = plan("WindowData", text % ("", "crop_size: 6"), tops=2)
    assert found.tops == ((4, 3, 6, 6), (4,))
    mean = tmp_path / "mean"
    write_blob(mean, np.zeros((3, 8, 8), np.float32))
    crop = f"crop_size: %d mean_file: '{mean}'"
    assert plan("WindowData", text % ("", crop % 7), tops=2).tops[0] == (4, 3, 7, 7)
    with pytest.raises(LayerError, match="at least 9 x 9"):
        plan("WindowData", text % ("", crop % 9), tops=2)
    with pytest.raises(LayerError, match=r"positive transform_param.crop_size"):
        plan("WindowData", text % ("", ""), tops=2)
    with pytest.raises(LayerError, match="crop_mode 'x'"):
        plan("WindowData", text % ("crop_mode: 'x'", "crop_size: 6"), tops=2)
    listing.write_text("nothing")
    with pytest.raises(LayerError, match="is no window file"):
        plan("WindowData", text % ("", "crop_size: 6"), tops=2)


@pytest.fixture
def hdf5_shapes(tmp_path):
    """What an HDF5Data layer over the file a.h5, or over other text in its list, says of tops."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros((5, 2, 3), np.float64)
        file["y"] = np.zeros(4, np.int32)
        file["s"] = np.array([b"a", b"b"])
        file["scalar"] = 1.0
        file.create_group("g")
    listing = tmp_path / "list"

    def shapes(*tops, extra="", listed=f"{tmp_path / 'a.h5'}\n"):
        listing.write_text(listed)
        text = f"hdf5_data_param {{ source: '{listing}' batch_size: 2 }} {extra}"
        parameter = caffe_pb2.LayerParameter(name="l", type="HDF5Data", top=tops)
        return make(text_format.Merge(text, parameter), 0).plan([]).tops

    return shapes


@pytest.mark.parametrize(
    ("tops", "options", "says"),
    [
        ("z", {}, "data set 'z' is missing"),
        ("g", {}, "data set 'g' is not a dataset"),
        ("s", {}, "data set 's' holds no numbers"),
        (("scalar",), {}, "needs at least 1 axis"),
        ("xy", {}, "same number of rows; their shapes are 5 x 2 x 3, 4"),
        ("x", {"extra": "transform_param { }"}, "does not transform data"),
        ("x", {"listed": ""}, "names no file"),
        ("x", {"listed": __file__}, "is no HDF5 file"),
    ],
)
def test_hdf5_data_that_cannot_be_read(tops, options, says, hdf5_shapes):
    with pytest.raises(LayerError, match=says):
        hdf5_shapes(*tops, **options)
