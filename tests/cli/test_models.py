"""`sparknet models`: the zoo as a list and as files."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from sparknet import Net, models
from sparknet.caffe import SGDSolver
from sparknet.cli import image_flags, main


def test_the_list(capsys):
    assert main(["models"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "parameters", "input", "what", "it", "is"]
    assert [line.split()[0] for line in lines] == list(models.NAMES)
    lenet = next(line for line in lines if line.startswith("lenet "))
    assert lenet.split(maxsplit=9) == [
        "lenet", "431,080", "64", "x", "1", "x", "28", "x", "28", models.about("lenet")
    ]  # fmt: skip


def test_a_model_is_described(capsys):
    assert main(["models", "lenet"]) == 0
    assert capsys.readouterr().out.startswith("# LeNet\n")


def test_the_files_work_where_they_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["models", "lenet", "--out", "nets/digits"]) == 0
    names = ["net.prototxt", "solver.prototxt", "README.md", "net.sparknet.json"]
    assert capsys.readouterr().out.split() == [f"nets/digits/{name}" for name in names]
    solver = SGDSolver("nets/digits/solver.prototxt")
    assert solver.net.blobs["data"].data.shape == (64, 1, 28, 28)
    solver.snapshot()
    assert Path("nets/digits/lenet_iter_0.caffemodel").is_file()


def test_bytes_are_scaled_as_the_files_say(tmp_path, monkeypatch, capsys):
    """As of the MNIST LMDB that docs/data.md makes; one flag changes one setting."""
    monkeypatch.chdir(tmp_path)
    assert main(["models", "lenet", "--out", "digits"]) == 0
    train = Namespace(solver="digits/solver.prototxt", model=None)
    test = Namespace(model="digits/net.prototxt", mirror=True)
    told = capsys.readouterr()
    for chosen in (train, train, test):
        how = image_flags.preprocessing(chosen)
        assert how is not None
        assert how.scale == 1 / 255
        assert how.mirror is (chosen is test)
    told = capsys.readouterr()
    assert told.err == "sparknet: images as digits/net.sparknet.json says: scale 0.00392157\n"
    assert image_flags.preprocessing(Namespace(model="digits/solver.prototxt")) is None
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 640)
    images = rng.integers(0, 60, (640, 1, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[0, 2 * label : 2 * label + 6] = 255
    solver = models.solver("lenet").but(random_seed=1)
    net = Net(solver, preprocessing=image_flags.preprocessing(train))
    net.set_training_data({"data": images, "label": labels})
    losses = [net.train(10) for _ in range(3)]
    assert losses[-1] < 1 < losses[0]


def test_nothing_is_overwritten_without_a_word(tmp_path, capsys):
    (tmp_path / "solver.prototxt").write_text("mine")
    assert main(["models", "lenet", "--out", str(tmp_path)]) == 1
    place = tmp_path / "solver.prototxt"
    said = f"sparknet models: {place}: exists already; --overwrite replaces it\n"
    assert capsys.readouterr().err == said
    assert [path.name for path in tmp_path.iterdir()] == ["solver.prototxt"]
    assert place.read_text() == "mine"
    assert main(["models", "lenet", "--out", str(tmp_path), "--overwrite"]) == 0
    assert place.read_text() == models.files("lenet", tmp_path)["solver.prototxt"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["lnet"], 1, "sparknet models: there is no model 'lnet'; did you mean 'lenet'?\n"),
        (
            ["--out", "x"],
            2,
            "sparknet models: --out needs the name of a model\n"
            "hint: 'sparknet models' lists the names\n",
        ),
    ],
)
def test_wrong_use(words, status, said, capsys):
    assert main(["models", *words]) == status
    assert capsys.readouterr().err == said


def test_a_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["models", "lenet", "--out", str(tmp_path / "file")]) == 1
    assert (
        capsys.readouterr().err
        == f"sparknet models: {tmp_path}/file: is a file; --out names a folder\n"
    )
