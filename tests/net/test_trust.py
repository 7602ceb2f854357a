"""Nets of unknown origin: they import, write and read nothing, whichever way they come in."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import sparknet
import sparknet.caffe as caffe
from sparknet import Net, NetParams, read_model
from sparknet.cli import main
from sparknet.errors import LayerError, SolverError, SpecError
from sparknet.graph import build
from sparknet.net.portable import portable_net
from sparknet.proto import Model, parse_net, parse_solver, write_blob, write_model, write_text
from sparknet.spark import SparkModel
from tests.layers.host.nets import images, lmdb, of_images

INPUT = "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }\n"
MODULE = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"


def python(folder: Path) -> str:
    (folder / "trap.py").write_text(MODULE)
    return (
        INPUT + "layer { name: 'bad' type: 'Python' bottom: 'x' top: 'y' "
        "python_param { module: 'trap' layer: 'L' } }"
    )


def output(folder: Path) -> str:
    (folder / "precious").write_text("kept")
    return (
        INPUT + "layer { name: 'bad' type: 'HDF5Output' bottom: 'x' bottom: 'x' "
        f"hdf5_output_param {{ file_name: '{folder / 'precious'}' }} }}"
    )


def data(folder: Path) -> str:
    return lmdb(of_images(folder, images(4, 1, 2, 2)), 2).replace("'src'", "'bad'")


def mean(folder: Path) -> str:
    write_blob(folder / "mean", np.zeros((1, 2, 2), np.float32), legacy=True)
    path, options = of_images(folder, images(4, 1, 2, 2)), f"mean_file: '{folder / 'mean'}'"
    return lmdb(path, 2, options).replace("'src'", "'bad'")


def infogain(folder: Path) -> str:
    write_blob(folder / "matrix", np.eye(3, dtype=np.float32))
    return (
        INPUT + "layer { name: 'n' type: 'Input' top: 'n' input_param { shape { dim: 2 } } } "
        "layer { name: 'bad' type: 'InfogainLoss' bottom: 'x' bottom: 'n' "
        f"infogain_loss_param {{ source: '{folder / 'matrix'}' }} }}"
    )


def images_list(folder: Path) -> str:
    (folder / "list").write_text("/etc/passwd 1\n")
    return (
        "layer { name: 'bad' type: 'ImageData' top: 'd' top: 'l' "
        f"image_data_param {{ source: '{folder / 'list'}' batch_size: 1 }} }}"
    )


def windows(folder: Path) -> str:
    (folder / "list").write_text("# 0\n/etc/passwd\n")
    return (
        "layer { name: 'bad' type: 'WindowData' top: 'd' top: 'l' transform_param { crop_size: 2 } "
        f"window_data_param {{ source: '{folder / 'list'}' batch_size: 1 }} }}"
    )


def hdf5(folder: Path) -> str:
    (folder / "list").write_text("/etc/passwd\n")
    return (
        "layer { name: 'bad' type: 'HDF5Data' top: 'd' "
        f"hdf5_data_param {{ source: '{folder / 'list'}' batch_size: 1 }} }}"
    )


def source(kind: str, field: str, folder: Path, options: str = "", tops: int = 2) -> str:
    """A layer that reads a file as soon as it is built."""
    (folder / "list").write_text("/etc/passwd /etc/passwd\n")
    names = " ".join(f"top: '{top}'" for top in "dlm"[:tops])
    return (
        f"layer {{ name: 'bad' type: '{kind}' {names} {field} "
        f"{{ source: '{folder / 'list'}' batch_size: 1 {options} }} "
        "transform_param { crop_size: 2 } }"
    )


def annotated(folder: Path) -> str:
    (folder / "map").write_text("item { name: 'x' label: 1 }")
    return source("AnnotatedData", "data_param", folder, "backend: LMDB").replace(
        "data_param {",
        f"annotated_data_param {{ label_map_file: '{folder / 'map'}' }} data_param {{",
        1,
    )


def strided_images(folder: Path) -> str:
    text = source("SegData", "seg_data_param", folder).replace("batch_size: 1", "")
    return text.replace("crop_size: 2", "stride: 2")


def picture_sizes(folder: Path) -> str:
    (folder / "sizes").write_text("x 3 3\n")
    inputs = "".join(
        f"layer {{ name: '{name}' type: 'Input' top: '{name}' "
        f"input_param {{ shape {{ dim: 1 dim: 1 dim: 1 dim: {width} }} }} }}\n"
        for name, width in (("x", 7), ("n", 8))
    )
    return (
        inputs + "layer { name: 'bad' type: 'DetectionEvaluate' bottom: 'x' bottom: 'n' top: 'e' "
        f"detection_evaluate_param {{ num_classes: 2 name_size_file: '{folder / 'sizes'}' }} }}"
    )


TRAPS = {
    python: "Python: to import the module 'trap' is refused",
    output: "HDF5Output: to write the file '.*precious' is refused",
    data: "Data: the database '.*' cannot be read",
    mean: "Data: to read the mean file '.*mean' is refused",
    infogain: "InfogainLoss: to read the matrix '.*matrix' is refused",
    images_list: "ImageData: the image list '.*' cannot be read",
    windows: "WindowData: the window file '.*' cannot be read",
    hdf5: "HDF5Data: the list '.*' cannot be read",
    partial(
        source, "DenseImageData", "dense_image_data_param"
    ): "DenseImageData: the list '.*' cannot be read",
    partial(
        source, "ImageSegData", "image_data_param"
    ): "ImageSegData: the list '.*' cannot be read",
    annotated: "AnnotatedData: the database '.*' cannot be read",
    partial(
        source, "ImageLabelmapData", "image_data_param"
    ): "ImageLabelmapData: the list '.*' cannot be read",
    strided_images: "SegData: the list '.*' cannot be read",
    picture_sizes: "DetectionEvaluate: to read the sizes '.*sizes' is refused",
}
THIN = pytest.mark.parametrize("trap", [python, data], indirect=True)
"""Above the net itself two traps are enough."""
WHY = "the net is of unknown origin; give trusted=True"


@pytest.fixture(params=TRAPS, ids=lambda trap: getattr(trap, "__name__", None))
def trap(request, tmp_path, monkeypatch):
    """The text of a net, a caffemodel of it, and what is said of it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    text = request.param(tmp_path)
    net = parse_net(text)
    write_model(tmp_path / "x.caffemodel", Model(net, [[] for _ in net.layer]))
    (tmp_path / "x.prototxt").write_text(text)
    yield text, tmp_path / "x", f"layer 'bad': {TRAPS[request.param]}.*: {WHY}"
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "precious").exists() or (tmp_path / "precious").read_text() == "kept"
    assert "trap" not in sys.modules


def test_what_comes_out_of_a_caffemodel(trap):
    _, path, says = trap
    net = read_model(f"{path}.caffemodel").net
    with pytest.raises(LayerError, match=says):
        build(net)
    with pytest.raises(LayerError, match=says):
        caffe.Net.from_proto(net, caffe.TEST)
    with pytest.raises(LayerError, match=says):
        NetParams.load(f"{path}.caffemodel").graph()
    copy = parse_net(sparknet.proto.format_text(net))
    with pytest.raises(LayerError, match=says):
        build(copy)


def test_a_net_that_is_not_trusted(trap):
    """Data that is given takes the place of what a data layer may not read."""
    text, path, says = trap
    with pytest.raises(LayerError, match=says):
        caffe.Net(f"{path}.prototxt", caffe.TEST, trusted=False)
    solver = parse_solver(f"net_param {{ {text} }} base_lr: 0.1")
    for source in (text, Path(f"{path}.prototxt"), solver):
        with pytest.raises(SpecError, match=f"layer 'bad': .*{WHY}"):
            _ = Net(source, trusted=False).net


@THIN
@pytest.mark.parametrize("verb", ["show", "draw"])
def test_on_the_command_line(trap, verb, capsys):
    _, path, says = trap
    for arguments in ([f"{path}.caffemodel"], ["--untrusted", f"{path}.prototxt"]):
        assert main([verb, *arguments]) == 1
        said = capsys.readouterr().err
        with pytest.raises(LayerError, match=says):
            raise LayerError("bad", said.partition("layer 'bad': ")[2].strip())


@THIN
@pytest.mark.parametrize("verb", ["time", "test"])
def test_time_and_test(trap, verb, monkeypatch, capfd):
    _, path, says = trap
    monkeypatch.chdir(path.parent)
    assert main([verb, "-model", f"{path}.caffemodel", "-iterations", "1"]) == 1
    said = capfd.readouterr().err
    assert "layer 'bad': " in said
    assert "unknown origin" in said, says


def test_trusted_all_the_same(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    text = infogain(tmp_path)
    net = parse_net(text)
    path = tmp_path / "x.caffemodel"
    write_model(path, Model(net, [[] for _ in net.layer]))
    read = read_model(path).net
    assert caffe.Net.from_proto(read, caffe.TEST, trusted=True).inputs == ["x", "n"]
    assert main(["show", "--trusted", str(path)]) == 0
    # The mark is in no file.
    write_text(tmp_path / "x.prototxt", read)
    assert "untrusted" not in (tmp_path / "x.prototxt").read_text()
    write_model(tmp_path / "y.caffemodel", read_model(path))
    assert (tmp_path / "y.caffemodel").read_bytes() == path.read_bytes()


def test_a_file_cannot_say_that_it_is_trusted(tmp_path):
    net = parse_net(output(tmp_path).replace("bottom: 'x'", "untrusted: false bottom: 'x'", 1))
    (tmp_path / "x").write_bytes(net.SerializeToString())
    assert [layer.untrusted for layer in read_model(tmp_path / "x").net.layer] == [True, True]


def test_what_a_net_needs_on_its_workers(tmp_path):
    """Files that are sent to workers are read on the driver, before the net is built."""
    net = parse_net(infogain(tmp_path))
    for layer in net.layer:
        layer.untrusted = True
    with pytest.raises(
        LayerError, match=r"layer 'bad': InfogainLoss: to read '.*matrix' is refused"
    ):
        portable_net(net)


def test_a_solver_that_is_not_trusted(tmp_path):
    (tmp_path / "net.prototxt").write_text(INPUT)
    for field, value in (("net", tmp_path / "net.prototxt"), ("weights", "/etc/passwd")):
        solver = parse_solver(f"{field}: '{value}' base_lr: 0.1")
        with pytest.raises(SolverError, match=f"{field}: to read '{value}' is refused"):
            Net(solver, trusted=False)


@THIN
def test_a_spark_model(trap):
    _, path, _ = trap
    with pytest.raises(SpecError, match=f"layer 'bad': .*{WHY}"):
        _ = SparkModel(f"{path}.caffemodel").net.net


@THIN
def test_training_on_the_command_line(trap, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, _, says = trap
    Path("net.prototxt").write_text(text)
    Path("solver.prototxt").write_text("base_lr: 0.1 lr_policy: 'fixed' max_iter: 1")
    command = ["train", "--untrusted", "-solver", "solver.prototxt", "-model", "net.prototxt"]
    assert main(command) == 1
    with pytest.raises(LayerError, match=says):
        raise LayerError("bad", capsys.readouterr().err.partition("layer 'bad': ")[2].strip())


@pytest.mark.parametrize("prefix", ["/etc/sparknet", "../out", "a/../../b"])
def test_snapshots_stay_below_the_working_directory(tmp_path, prefix, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("solver.prototxt").write_text(
        f"net_param {{ {INPUT} }} base_lr: 0.1 lr_policy: 'fixed' snapshot_prefix: '{prefix}'"
    )
    assert main(["train", "--untrusted", "-solver", "solver.prototxt"]) == 1
    said = capsys.readouterr().err
    assert f"snapshot_prefix: to write '{prefix}' is refused" in said
