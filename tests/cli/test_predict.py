"""`sparknet predict`."""

import csv
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from sparknet import Net, NetParams, RDDLayer, SolverParams, models, read_model
from sparknet.cli import main
from sparknet.dsl import Reduction
from sparknet.net.recipe import Recipe
from tests.cli.conftest import ROOT, Task

SCALE = 0.00390625


@pytest.fixture
def pictures(task, tmp_path):
    """The task's first images as files."""
    image = pytest.importorskip("PIL.Image")
    paths = [str(tmp_path / f"{number}.png") for number in range(10)]
    for path, values in zip(paths, task.images, strict=False):
        image.fromarray(values[0]).save(path)
    return paths


def deployed(task: Task, *words: str) -> list[str]:
    model = ["-model", task.path("deploy.prototxt"), "-weights", task.path("model.caffemodel")]
    return ["predict", *model, "--scale", str(SCALE), *words]


def expected(task, count):
    """Probabilities as a pycaffe script would find them."""
    from sparknet import caffe

    net = caffe.Net(task.path("deploy.prototxt"), task.path("model.caffemodel"), caffe.TEST)
    images = task.images[:count].astype(np.float32) * SCALE
    return net.forward_all(data=images)["prob"]


def lines(capsys: pytest.CaptureFixture[str], words: list[str]) -> list[str]:
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out.splitlines()


def test_images_as_json(task, pictures, run):
    done = run(*deployed(task, "--json", "--top", "3", *pictures))
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["input"] for one in found] == pictures
    for one, scores in zip(found, expected(task, 10), strict=True):
        best = one["outputs"]["prob"]
        assert [item["class"] for item in best] == np.argsort(-scores).tolist()
        assert [item["score"] for item in best] == pytest.approx(sorted(scores, reverse=True))


def test_a_folder_as_text_with_labels(task, pictures, capsys, tmp_path):
    (tmp_path / "labels.txt").write_text("left\nmiddle\nright\n")
    words = ["--labels", str(tmp_path / "labels.txt"), "--top=1", str(tmp_path)]
    names = [("left", "middle", "right")[number] for number in expected(task, 10).argmax(1)]
    scores = expected(task, 10).max(1)
    assert lines(capsys, deployed(task, *words)) == [
        f"{path}: {name} {score:.4f}"
        for path, name, score in zip(pictures, names, scores, strict=True)
    ]


def test_the_value_of_a_regression_is_no_class(capsys, tmp_path):
    net, source = str(tmp_path / "net.caffemodel"), str(tmp_path / "data.npy")
    Net(NetParams("sum", RDDLayer("data", [1, 2]), Reduction("sum", "data", axis=1))).save(net)
    np.save(source, np.float32([[1, 2], [0.5, -4]]))
    assert lines(capsys, ["predict", net, source]) == ["0: 3", "1: -3.5"]


def test_a_net_without_parameters_needs_no_weights(capsys, tmp_path):
    net, records = tmp_path / "net.prototxt", tmp_path / "x.npy"
    shape = "input_param { shape { dim: 1 dim: 2 } }"
    net.write_text(
        f'layer {{ name: "in" type: "Input" top: "x" {shape} }}'
        'layer { name: "relu" type: "ReLU" bottom: "x" top: "y" }'
    )
    np.save(records, np.array([[-1, 2], [3, -4]], np.float32))
    rows = lines(capsys, ["predict", str(net), str(records), "--top=0"])
    assert rows == ["0: 0, 2", "1: 3, 0"]


def test_a_caffemodel_has_no_copies_of_its_output(capsys, tmp_path):
    """Caffe's files have a Split where two layers read a blob, here the scores."""
    net, source = tmp_path / "net.caffemodel", str(tmp_path / "data.npy")
    lenet = Net(models.net("lenet"), seed=1)
    lenet.save(net)
    assert "ip2_ip2_0_split" in [layer.name for layer in read_model(net).net.layer]
    np.save(source, np.ones((1, 1, 28, 28), np.float32))
    (line,) = lines(capsys, ["predict", str(net), source, "--top", "0"])
    scores = lenet.forward({"data": np.load(source)}, ["ip2"])["ip2"][0]
    assert line == "0: " + ", ".join(f"{one:g}" for one in scores)

    solver, _ = Recipe(head=3).applied(SolverParams(net=str(net), base_lr=0.01), None)
    names = [layer.name for layer in Net(solver).described.layer]
    assert not [name for name in names if "split" in name]


@pytest.mark.parametrize("kind", ["lmdb", "npy", "npz", "h5"])
def test_records_as_csv(kind, task, capsys, tmp_path):
    source = str(tmp_path / f"data.{kind}")
    if kind == "lmdb":
        source = task.path("lmdb")
    elif kind == "npy":
        np.save(source, task.images)
    elif kind == "npz":
        np.savez(source, data=task.images, label=task.labels)
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(source, "w") as file:
            file["images"] = task.images
    rows = list(csv.DictReader(lines(capsys, deployed(task, "--format", "csv", source))))
    assert len(rows) == 60 * 3
    assert [row["input"] for row in rows[::3]] == [str(number) for number in range(60)]
    best = [row for row in rows if row["rank"] == "1"]
    assert [int(row["class"]) for row in best] == expected(task, 60).argmax(1).tolist()
    assert [float(row["score"]) for row in best] == pytest.approx(expected(task, 60).max(1))


def test_all_values(task, capsys):
    words = deployed(task, "--top", "0", "--outputs", "prob,ip", "--json", task.path("lmdb"))
    found = [json.loads(line)["outputs"] for line in lines(capsys, words)]
    assert [one["prob"] for one in found] == [
        pytest.approx(row) for row in expected(task, 60).tolist()
    ]
    assert len(found[0]["ip"]) == 3
    text = lines(capsys, deployed(task, "--top", "0", "--format", "csv", task.path("lmdb")))
    assert text[0] == "input,output,value0,value1,value2"
    assert [float(cell) for cell in text[1].split(",")[2:]] == pytest.approx(expected(task, 1)[0])


def test_the_nets_own_transformation_and_its_labels(task, pictures, capsys):
    """A net for training: its transform_param holds, and nobody asks for labels."""
    words = ["-model", task.path("net.prototxt"), "-weights", task.path("model.caffemodel")]
    found = lines(capsys, ["predict", *words, "--json", "--top=0", *pictures])
    ranked = [int(np.argmax(json.loads(line)["outputs"]["ip"])) for line in found]
    assert ranked == expected(task, 10).argmax(1).tolist()


def test_mean_resize_and_crop(task, pictures, capsys, tmp_path):
    from sparknet.proto import write_blob

    mean = np.full((1, 6, 6), 7, np.float32)
    write_blob(str(tmp_path / "mean.binaryproto"), mean)
    np.save(tmp_path / "mean.npy", mean)
    ways = [
        ["--mean-value", "7"],
        ["--mean-file", str(tmp_path / "mean.binaryproto")],
        ["--mean-file", str(tmp_path / "mean.npy")],
    ]
    first, *others = [lines(capsys, deployed(task, *way, *pictures)) for way in ways]
    assert others == [first, first]
    assert first != lines(capsys, deployed(task, *pictures))
    # A picture of 12 x 12 whose centre is what the net wants, made 12 x 12 again.
    from PIL import Image

    large = np.pad(task.images[0, 0], 3)
    Image.fromarray(large).save(tmp_path / "large.png")
    (cropped,) = lines(capsys, deployed(task, "--resize=12x12", str(tmp_path / "large.png")))
    (plain,) = lines(capsys, deployed(task, pictures[0]))
    assert cropped.partition(": ")[2] == plain.partition(": ")[2]


def test_an_image_that_cannot_be_read(task, pictures, capsys, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"\x89PNG broken")
    words = [pictures[0], str(tmp_path / "bad.png"), str(tmp_path / "none.png"), pictures[1]]
    assert main(deployed(task, *words)) == 1
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in out.splitlines()] == pictures[:2]
    assert "bad.png: is no image" in err.splitlines()[0]
    assert "none.png: does not exist" in err.splitlines()[1]
    assert err.splitlines()[2] == "sparknet predict: 2 images were left out"


def test_a_file_name_that_is_no_text(task, pictures, tmp_path):
    odd = os.fsencode(tmp_path) + b"/\xff.png"
    shutil.copy(os.fsencode(pictures[0]), odd)
    command = [sys.executable, "-m", "sparknet", *deployed(task, "--top=1"), os.fsdecode(odd)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for more in ([], ["--json"], ["--out", str(tmp_path / "out.txt")]):
        done = subprocess.run([*command, *more], capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        found = done.stdout or (tmp_path / "out.txt").read_bytes()
        assert (b"\\udcff.png" if more == ["--json"] else odd) in found


def test_no_class_is_made_of_nothing(task, capsys, tmp_path):
    images = task.images[:3].astype(np.float32)
    images[1, 0, 0, 0] = np.nan
    np.save(tmp_path / "x.npy", images)
    assert main(deployed(task, str(tmp_path / "x.npy"))) == 1
    said = "'prob' became nan for 1, which is no score: --top 0 prints it"
    assert capsys.readouterr().err == f"sparknet predict: {said}\n"
    assert len(lines(capsys, deployed(task, "--top=0", str(tmp_path / "x.npy")))) == 3


def test_a_file_is_written_whole_or_not(task, pictures, capsys, tmp_path):
    out = tmp_path / "found.txt"
    assert lines(capsys, deployed(task, "--out", str(out), *pictures)) == []
    assert len(out.read_text().splitlines()) == 10
    out.unlink()
    labels = tmp_path / "labels.txt"
    labels.write_text("left\nmiddle\n")
    words = ["--labels", str(labels), "--out", str(out), *pictures]
    assert main(deployed(task, *words)) == 1
    err = capsys.readouterr().err
    assert err == "sparknet predict: there are 2 labels for the 3 classes of 'prob'\n"
    assert not list(tmp_path.glob("*found*"))


def test_refusals(task, pictures, capsys):
    def refused(status: int, *words: str) -> str:
        assert main(list(words)) == status
        return capsys.readouterr().err

    bare = ["-model", task.path("deploy.prototxt")]
    assert refused(2, "predict", pictures[0]) == "sparknet predict: give NET or -model\n"
    assert refused(1, "predict", "nonet", pictures[0]).startswith(
        "sparknet predict: nonet: no such file or folder"
    )
    assert refused(2, "predict", *bare, pictures[0]) == "sparknet predict: give -weights\n"
    assert refused(2, *deployed(task)).startswith("sparknet predict: give INPUT")
    assert "does not exist" in refused(1, *deployed(task, "/nowhere/at/all"))
    assert "no blob 'nothing'" in refused(1, *deployed(task, "--outputs=nothing", pictures[0]))
    assert "cannot be written" in refused(1, *deployed(task, "--out=/no/x", pictures[0]))
    own = ["-model", task.path("net.prototxt"), "-weights", task.path("model.caffemodel")]
    assert "transform_param" in refused(1, "predict", *own, "--scale=2", pictures[0])
    assert "is no array" in refused(1, *deployed(task, "--mean-file", __file__ + ".npy", "x.png"))
