"""Input, Parameter, DummyData, MemoryData, HDF5Output, Data, ImageData, WindowData, HDF5Data."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Shape, make
from sparknet.proto import caffe_pb2, write_blob
from tests.goldens import GOLDENS, index
from tests.layers.nets import layer, plan, read_net, shapes_of_params, walk

CASES = [case for case in index("data") if case["kind"] == "forward"]
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


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_data_shapes_are_caffes(case, monkeypatch):
    monkeypatch.chdir(GOLDENS / "data")
    net = read_net(GOLDENS / "data" / f"{case['name']}.prototxt")
    if net.layers:
        from sparknet.proto import upgrade_net

        net = upgrade_net(net)
    before = _open_files()
    blobs, _ = walk(net, case["phase"])
    assert blobs == {name: tuple(shape) for name, shape in case["shapes"].items()}
    assert _open_files() == before


def test_all_cases_were_run():
    assert len(CASES) in (0, 21)


def test_only_parameter_has_a_gradient():
    assert [name for name in SOURCES if LAYERS[name].has_gradient] == ["Parameter"]


def test_input():
    one = "input_param { shape { dim: 2 dim: 3 } }"
    assert plan("Input", one, tops=2).tops == ((2, 3), (2, 3))
    two = "input_param { shape { dim: 2 } shape { dim: 0 dim: 5 } }"
    assert plan("Input", two, tops=2).tops == ((2,), (0, 5))
    assert plan("Input", "", tops=2).tops == ((), ())
    with pytest.raises(LayerError, match="3 tops need one shape, 3 shapes or none; there are 2"):
        plan("Input", two, tops=3)


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


def test_parameter():
    found = plan("Parameter", "parameter_param { shape { dim: 2 dim: 3 } }")
    assert found.tops == ((2, 3),)
    assert shapes_of_params(found) == [(2, 3)]
    assert found.params[0].filler.value == 0


def test_dummy_data():
    text = "dummy_data_param { shape { dim: 2 } data_filler { type: 'uniform' } }"
    found = plan("DummyData", text, tops=2)
    assert found.tops == ((2,), (2,))
    assert found.values["refill"] == (True, True)
    old = "dummy_data_param { num: 2 num: 3 channels: 4 height: 5 width: 6 }"
    found = plan("DummyData", old, tops=2)
    assert found.tops == ((2, 4, 5, 6), (3, 4, 5, 6))
    assert found.values["refill"] == (False, False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "2 tops need one shape or 2; there are 0"),
        ("num: 1", "channels once or 2 times; it is there 0"),
        ("num: 1 shape { dim: 1 }", "not both"),
        ("shape { dim: 1 } data_filler { type: 'consant' }", "did you mean 'constant'"),
        ("shape { dim: 1 } data_filler {} data_filler {} data_filler {}", "there are 3"),
    ],
)
def test_dummy_data_refused(text, says):
    with pytest.raises(LayerError, match=says):
        plan("DummyData", f"dummy_data_param {{ {text} }}", tops=2)


def test_memory_data():
    text = "memory_data_param { batch_size: 2 channels: 3 height: 4 width: 5 }"
    assert plan("MemoryData", text, tops=2).tops == ((2, 3, 4, 5), (2,))
    with pytest.raises(LayerError, match="needs a positive height; it is 0"):
        plan("MemoryData", text.replace("height: 4", ""), tops=2)


def test_hdf5_output():
    text = "hdf5_output_param { file_name: 'f.h5' }"
    found = plan("HDF5Output", text, (3, 2, 4), (3,), tops=0)
    assert found.tops == ()
    assert found.values["data"] == (3, 2, 4, 1)
    assert found.values["label"] == (3, 1, 1, 1)
    with pytest.raises(LayerError, match="data has 3 items and label 2"):
        plan("HDF5Output", text, (3, 2), (2,), tops=0)
    with pytest.raises(LayerError, match="file_name"):
        plan("HDF5Output", "", (3, 2), (3,), tops=0)


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


Shapes = Callable[..., tuple[Shape, ...]]


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


def test_hdf5_data(hdf5_shapes):
    assert hdf5_shapes("x") == ((2, 2, 3),)


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
