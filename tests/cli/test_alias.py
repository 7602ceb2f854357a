"""Caffe's programs by their own names, as old shell scripts call them."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparknet.cli import main
from sparknet.cli.alias import PLACES
from sparknet.cli.tools import TOOLS
from sparknet.loaders.image_decoding import decode
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.proto import caffe_pb2, read_blob, read_text
from tests.cli.conftest import ROOT
from tests.loaders.test_mnist import write_mnist

MUTANT = ("SPARKNET_MUTANT", "SPARKNET_REACHED")
Records = list[tuple[bytes, caffe_pb2.Datum]]


@pytest.fixture(scope="module")
def caffe_root(tmp_path_factory):
    """A folder whose `build` has the programs where Caffe's has them."""
    root = tmp_path_factory.mktemp("caffe")
    assert main(["alias", str(root / "build"), "--build"]) == 0
    return root


def sh(folder: Path, script: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """A shell script in a process of its own, where nothing but the programs' paths is known, and
    which change of the code is tried (docs/mutants.md)."""
    tried = {name: os.environ[name] for name in MUTANT if name in os.environ}
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **tried},
    )
    assert done.returncode == status, done.stderr
    return done


def records_of(path: Path) -> Records:
    kind = LevelDB if (path / "CURRENT").exists() else LMDB
    with kind(str(path)) as records:
        found = [(key, value) for key, value in records]
    _check_by_others(path, found)
    return [(key, caffe_pb2.Datum.FromString(value)) for key, value in found]


def _check_by_others(path: Path, records: list[tuple[bytes, bytes]]) -> None:
    """The databases' own libraries read the same, where they are installed."""
    try:
        import lmdb
        import plyvel
    except ImportError:
        return
    if (path / "CURRENT").exists():
        with plyvel.DB(str(path), paranoid_checks=True) as database:
            assert list(database) == records
    else:
        with lmdb.open(str(path), readonly=True, lock=False) as opened, opened.begin() as reader:
            assert list(reader.cursor()) == records


def test_every_tool_has_its_place(caffe_root):
    assert set(PLACES) == {"caffe", *TOOLS}
    for name, place in PLACES.items():
        for path in (name, f"{name}.bin"):
            assert os.access(caffe_root / "build" / place / path, os.X_OK)


def test_a_folder_for_the_path(tmp_path, capsys):
    """Twice is no harm; a file of somebody else is."""
    folder = tmp_path / "bin with spaces"
    for _ in range(2):
        assert main(["alias", str(folder)]) == 0
    assert str(folder / "convert_imageset.bin") in capsys.readouterr().out.splitlines()
    done = sh(tmp_path, f'PATH="{folder}:$PATH"; caffe --version; caffe device_query --gpu=0')
    assert done.stdout.startswith("sparknet ")
    assert "caffe device_query: warning: --gpu 0" in done.stderr
    (folder / "caffe").write_text("#!/bin/sh\n")
    assert main(["alias", str(folder)]) == 1
    assert "caffe: exists already and is not sparknet's" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_mnist_and_lenet(backend, caffe_root, tmp_path):
    """As create_mnist.sh and train_lenet.sh do, with what is often added to the last."""
    pixels = np.random.default_rng(1).integers(0, 256, (6, 4, 5), np.uint8)
    labels = [5, 0, 4, 1, 9, 2]
    images, classes = write_mnist(tmp_path, pixels, labels, packed=False)
    (tmp_path / "net.prototxt").write_text(
        f"""layer {{ name: "data" type: "Data" top: "data" top: "label"
                     data_param {{ source: "db_{backend}" backend: {backend.upper()}
                                  batch_size: 3 }} }}
            layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
                     inner_product_param {{ num_output: 10 }} }}
            layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" }}"""
    )
    (tmp_path / "solver.prototxt").write_text(
        """net: "net.prototxt" base_lr: 0.001 lr_policy: "fixed" max_iter: 3 display: 1
           snapshot: 2 snapshot_prefix: "lenet" solver_mode: GPU"""
    )
    done = sh(
        tmp_path,
        f"""
        BUILD={caffe_root}/build
        $BUILD/examples/mnist/convert_mnist_data.bin {images} {classes} \\
            db_{backend} --backend={backend}
        $BUILD/tools/caffe train --solver=solver.prototxt -gpu 0,1
        $BUILD/tools/caffe -alsologtostderr train -gpu all -solver solver.prototxt \\
            --snapshot=lenet_iter_2.solverstate 2>&1 | tee log
        GLOG_logtostderr=1 $BUILD/tools/caffe.bin test -model net.prototxt -weights \\
            lenet_iter_3.caffemodel -iterations=2 -gpu 0
        """,
    )
    found = records_of(tmp_path / f"db_{backend}")
    assert [key for key, _ in found] == [b"%08d" % number for number in range(6)]
    for (_, datum), image, label in zip(found, pixels, labels, strict=True):
        want = caffe_pb2.Datum(channels=1, height=4, width=5, data=image.tobytes(), label=label)
        assert datum == want
    assert "Processed 6 files." in done.stderr
    assert "caffe train: warning: -gpu 0,1: " in done.stderr
    log = (tmp_path / "log").read_text()
    assert "Iteration 2 (" in log
    assert "Iteration 0 (" not in log
    assert "Loss: " in done.stdout


def test_siamese(caffe_root, tmp_path):
    """As create_mnist_siamese.sh does: pairs of digits, in an LMDB in place of a LevelDB."""
    pixels = np.random.default_rng(2).integers(0, 256, (300, 4, 5), np.uint8)
    labels = (np.arange(300) % 3).tolist()
    images, classes = write_mnist(tmp_path, pixels, labels, packed=False)
    tool = caffe_root / "build/examples/siamese/convert_mnist_siamese_data.bin"
    done = sh(tmp_path, f"{tool} \\\n {images} \\\n {classes} \\\n ./pairs_leveldb")
    assert "warning: writes an LMDB, which 'backend: LEVELDB' reads too" in done.stderr
    found = records_of(tmp_path / "pairs_leveldb")
    assert [key for key, _ in found] == [b"%08d" % number for number in range(300)]
    digits = {image.tobytes(): label for image, label in zip(pixels, labels, strict=True)}
    seen = set()
    for _, datum in found:
        assert (datum.channels, datum.height, datum.width) == (2, 4, 5)
        pair = datum.data[:20], datum.data[20:]
        assert datum.label == (digits[pair[0]] == digits[pair[1]])
        seen.add(pair)
    assert len(seen) > 290
    assert 50 < sum(datum.label for _, datum in found) < 150


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_cifar10(backend, caffe_root, tmp_path):
    """As create_cifar10.sh does, with the mean after it."""
    files = {f"data_batch_{number}.bin": 3 for number in range(1, 6)} | {"test_batch.bin": 2}
    rows = {}
    for number, (name, count) in enumerate(files.items()):
        rows[name] = np.random.default_rng(number).integers(0, 256, (count, 3073), np.uint8)
        rows[name][:, 0] %= 10
        rows[name].tofile(tmp_path / name)
    (tmp_path / "out").mkdir()
    done = sh(
        tmp_path,
        f"""
        DBTYPE={backend}
        {caffe_root}/build/examples/cifar10/convert_cifar_data.bin . out $DBTYPE
        {caffe_root}/build/tools/compute_image_mean -backend=$DBTYPE \\
            out/cifar10_train_$DBTYPE out/mean.binaryproto
        """,
    )
    train = records_of(tmp_path / "out" / f"cifar10_train_{backend}")
    keys = [b"%05d" % (10_000 * batch + item) for batch in range(5) for item in range(3)]
    assert [key for key, _ in train] == keys
    stored = np.concatenate([rows[f"data_batch_{number}.bin"] for number in range(1, 6)])
    assert [datum.data for _, datum in train] == [row[1:].tobytes() for row in stored]
    assert [datum.label for _, datum in train] == stored[:, 0].tolist()
    assert {(d.channels, d.height, d.width) for _, d in train} == {(3, 32, 32)}
    test = records_of(tmp_path / "out" / f"cifar10_test_{backend}")
    assert [key for key, _ in test] == [b"00000", b"00001"]
    mean = caffe_pb2.BlobProto.FromString((tmp_path / "out" / "mean.binaryproto").read_bytes())
    assert (mean.num, mean.channels, mean.height, mean.width) == (1, 3, 32, 32)
    np.testing.assert_allclose(mean.data, stored[:, 1:].mean(0), rtol=1e-6)
    assert "Number of channels: 3" in done.stderr
    assert "mean_value channel [2]: " in done.stderr


def _pictures(folder, count=4):
    """PNGs and a JPEG, and a list with a name that is not there."""
    (folder / "train").mkdir()
    pixels = np.random.default_rng(3).integers(0, 256, (count, 6, 8, 3), np.uint8)
    names = [f"{number}.png" for number in range(count - 1)] + ["last.JPEG"]
    for name, image in zip(names, pixels, strict=True):
        Image.fromarray(image).save(folder / "train" / name)
    lines = [f"{name} {number}\n" for number, name in enumerate(names)]
    (folder / "train.txt").write_text("".join([lines[0], "gone.png 9\n", *lines[1:]]))
    return names


IMAGESET = "GLOG_logtostderr=1 {root}/build/tools/convert_imageset {flags} train/ train.txt db"


def test_imagenet(caffe_root, tmp_path):
    """As create_imagenet.sh and make_imagenet_mean.sh do; a file that is not there is left out."""
    names = _pictures(tmp_path)
    flags = "--resize_height=0 --resize_width=0"
    done = sh(tmp_path, IMAGESET.format(root=caffe_root, flags=flags))
    found = records_of(tmp_path / "db")
    keys = ["00000000_0.png", "00000002_1.png", "00000003_2.png", "00000004_last.JPEG"]
    assert [key.decode() for key, _ in found] == keys
    for (_, datum), name in zip(found, names, strict=True):
        image = decode(str(tmp_path / "train" / name), name, True)
        assert datum.data == image.tobytes()
        assert not datum.encoded
    assert [datum.label for _, datum in found] == [0, 1, 2, 3]
    assert "convert_imageset: train/gone.png: does not exist" in done.stderr
    done = sh(tmp_path, f"{caffe_root}/build/tools/compute_image_mean db mean.binaryproto")
    want = np.mean([np.frombuffer(d.data, np.uint8).reshape(3, 6, 8) for _, d in found], 0)
    np.testing.assert_allclose(read_blob(tmp_path / "mean.binaryproto")[0], want, rtol=1e-6)
    sh(tmp_path, f"{caffe_root}/build/tools/compute_image_mean db -backend lmdb mean2")
    assert (tmp_path / "mean2").read_bytes() == (tmp_path / "mean.binaryproto").read_bytes()


def test_imageset_of_another_form(caffe_root, tmp_path):
    """Grey, resized and shuffled, with the flags in several forms and between the words."""
    names = _pictures(tmp_path)
    tool = f"{caffe_root}/build/tools/convert_imageset.bin"
    sh(
        tmp_path,
        f"{tool} train/ -gray -resize_width 5 train.txt --resize_height=3 "
        "-shuffle=1 --nocheck_size db -backend leveldb --v=2",
    )
    found = records_of(tmp_path / "db")
    order = [key.decode().partition("_")[2] for key, _ in found]
    assert sorted(order) == sorted(names)
    for (_, datum), name in zip(found, order, strict=True):
        image = decode(str(tmp_path / "train" / name), name, False, (3, 5))
        assert datum.data == image.tobytes()
        assert (datum.channels, datum.height, datum.width) == (1, 3, 5)
        assert datum.label == names.index(name)


def test_encoded_imageset(caffe_root, tmp_path):
    """Files are kept as they are, and encoded again where they were resized or are others."""
    names = _pictures(tmp_path)
    sh(tmp_path, IMAGESET.format(root=caffe_root, flags="--encoded"))
    for (_, datum), name in zip(records_of(tmp_path / "db"), names, strict=True):
        assert datum.encoded
        assert datum.data == (tmp_path / "train" / name).read_bytes()
    line = IMAGESET.format(root=caffe_root, flags="-encoded -encode_type png")
    sh(tmp_path, line.replace(" db", " again"))
    last = records_of(tmp_path / "again")[-1][1].data
    want = decode(str(tmp_path / "train" / "last.JPEG"), "last", True)
    np.testing.assert_array_equal(decode(last, "again", True), want)
    line = IMAGESET.format(root=caffe_root, flags="-encoded -resize_height 3 -resize_width 4")
    sh(tmp_path, line.replace(" db", " small"))
    first = records_of(tmp_path / "small")[0][1].data
    assert first.startswith(b"\x89PNG")
    want = decode(str(tmp_path / "train" / "0.png"), "0", True, (3, 4))
    np.testing.assert_array_equal(decode(first, "small", True), want)


def test_sizes_that_differ(caffe_root, tmp_path):
    names = _pictures(tmp_path)
    Image.new("RGB", (3, 2)).save(tmp_path / "train" / names[1])
    done = sh(tmp_path, IMAGESET.format(root=caffe_root, flags="--check_size"), status=1)
    assert "train/1.png: is (3, 2, 3); the first image is (3, 6, 8)" in done.stderr
    assert not (tmp_path / "db").exists()


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_feature_extraction(backend, caffe_root, task, tmp_path):
    """Three batches of 20: the 60 records of the net's own data."""
    done = sh(
        tmp_path,
        f"{caffe_root}/build/tools/extract_features.bin {task.path('model.caffemodel')} "
        f"{task.path('net.prototxt')} ip,data ip_db,data_db 3 {backend} GPU 0",
    )
    assert "extract_features: GPU: " in done.stderr
    features, data = records_of(tmp_path / "ip_db"), records_of(tmp_path / "data_db")
    assert [key for key, _ in features] == [b"%010d" % number for number in range(60)]
    assert {(d.channels, d.height, d.width) for _, d in features} == {(3, 1, 1)}
    assert {(d.channels, d.height, d.width) for _, d in data} == {(1, 6, 6)}
    stored = np.array([datum.float_data for _, datum in data], np.float32)
    np.testing.assert_allclose(
        stored, task.images.reshape(60, -1).astype(np.float32) * 0.00390625, rtol=1e-6
    )
    right = [np.argmax(datum.float_data) for _, datum in features] == task.labels
    assert right.mean() > 0.8


def test_upgrades(caffe_root, tmp_path):
    old = 'layers { name: "r" type: RELU bottom: "data" top: "r" } input: "data" '
    old += "input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4"
    (tmp_path / "old.prototxt").write_text(old)
    (tmp_path / "solver.prototxt").write_text('net: "x" solver_type: ADAM')
    tools = caffe_root / "build" / "tools"
    sh(tmp_path, f"{tools}/upgrade_net_proto_text.bin old.prototxt new.prototxt")
    net = read_text(tmp_path / "new.prototxt", caffe_pb2.NetParameter)
    assert [layer.type for layer in net.layer] == ["Input", "ReLU"]
    sh(tmp_path, f"{tools}/upgrade_solver_proto_text solver.prototxt solver.prototxt")
    assert read_text(tmp_path / "solver.prototxt", caffe_pb2.SolverParameter).type == "Adam"
    model = caffe_pb2.NetParameter()
    model.layers.add(name="r", type=caffe_pb2.V1LayerParameter.RELU, bottom=["d"], top=["r"])
    (tmp_path / "old.caffemodel").write_bytes(model.SerializeToString())
    sh(tmp_path, f"{tools}/upgrade_net_proto_binary old.caffemodel new.caffemodel")
    new = caffe_pb2.NetParameter.FromString((tmp_path / "new.caffemodel").read_bytes())
    assert [layer.type for layer in new.layer] == ["ReLU"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("convert_imageset a b", "takes ROOTFOLDER/ LISTFILE DB_NAME, not 2 words"),
        ("convert_imageset --resize_width=x a b c", "--resize_width=x: 'x' is no number"),
        ("convert_imageset --gray=x a b c", "--gray=x: 'x' is neither true nor false"),
        ("compute_image_mean --what a", "there is no flag '--what'"),
        ("compute_image_mean a b c", "takes INPUT_DB [OUTPUT_FILE], not 3 words"),
        ("convert_cifar_data a b rocksdb", "there is no backend 'rocksdb': lmdb or leveldb"),
        ("extract_features a b x,y z 1 lmdb", "2 blobs need as many databases, not 1"),
        ("convert_mnist_data -backend", "-backend needs a value"),
    ],
)
def test_wrong_use(line, said, capsys):
    name, *words = line.split()
    assert TOOLS[name].run(words) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"{name}: {said}"


@pytest.mark.parametrize("name", TOOLS)
def test_help(name, capsys):
    assert TOOLS[name].run(["--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{name} [FLAGS] ")
    for flag in TOOLS[name].flags:
        assert f"  -{flag}  by default " in out
