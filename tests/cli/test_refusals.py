"""What the command line refuses, in a sentence that names it."""

import json
from pathlib import Path

import numpy as np
import pytest

from sparknet import Net
from sparknet.cli import main
from sparknet.cli.train_outputs import metric_lines

NET = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [5, 3] } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: [5] } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
PICTURES = NET.replace("dim: [5, 3]", "dim: [5, 1, 4, 4]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("net.prototxt").write_text(NET)
    solver = 'net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 3'
    Path("solver.prototxt").write_text(solver)
    Net(NET, seed=1).save("net.caffemodel")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "show solver.prototxt",
            "solver.prototxt: is a solver, not a net; its net is net.prototxt",
        ),
        (
            "draw solver.prototxt",
            "solver.prototxt: is a solver, not a net; its net is net.prototxt",
        ),
        ("train -solver net.prototxt", "net.prototxt: is a net, not a solver: a solver says"),
        (
            "quantize -model net.prototxt -weights net.caffemodel o.caffemodel",
            "net.prototxt names no data that shows how large its values are",
        ),
        (
            "features -model net.prototxt -weights net.caffemodel -blobs ip -out f.csv x.npz",
            "-out f.csv: features are not written as .csv, but as .npy, .npz, .h5 or .parquet",
        ),
        (
            "test -model net.prototxt -weights net.caffemodel --scale 0.5",
            "--scale is for --data: the net's own data layers have a transform_param",
        ),
        ("train -solver solver.prototxt -precision int8", "'int8' is none of float32, bf16"),
        (
            "export net.prototxt -weights net.caffemodel o.onnx --preprocessing",
            "the net has no transform_param for --preprocessing",
        ),
        ("convert images . list o --take few", "argument --take: 'few' is no count"),
    ],
)
def test_it_says_what_is_wrong(words, message, folder, capsys):
    np.savez("x.npz", data=np.zeros((5, 3), np.float32))
    try:
        status = main(words.split())
    except SystemExit as error:
        status = int(error.code or 0)
    assert status in (1, 2)
    assert message in capsys.readouterr().err.partition("\n")[0]
    assert not Path("f.csv").exists()


def test_a_confusion_matrix_has_a_row_for_each_class():
    counts = [30, 0, 2, 1, 45, 0, 0, 7, 100]
    metrics = {"loss": 0.5, **{f"confusion[{n}]": float(one) for n, one in enumerate(counts)}}
    assert list(metric_lines(metrics)) == [
        "loss = 0.5",
        "confusion, true classes in rows and predicted ones in columns:",
        " 30   0   2",
        "  1  45   0",
        "  0   7 100",
    ]
    assert list(metric_lines({"loss": 0.25})) == ["loss = 0.25"]


def test_images_are_tested_as_they_are_trained(tmp_path, capsys):
    """The flags of images give what Net gives by keyword."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 1, 6, 6), np.uint8)
    labels = rng.integers(0, 2, 20)
    np.savez(tmp_path / "data.npz", data=images, label=labels)
    (tmp_path / "net.prototxt").write_text(PICTURES)
    Net(PICTURES, seed=1).save(tmp_path / "net.caffemodel")
    files = [str(tmp_path / f"net.{kind}") for kind in ("prototxt", "caffemodel")]
    words = ["test", "-model", files[0], "-weights", files[1], "--json"]
    words += ["--data", str(tmp_path / "data.npz")]
    assert main([*words, "--crop=4", "--mean-value=120", "--scale=0.004"]) == 0
    found = json.loads(capsys.readouterr().out)["loss"]
    net = Net(*files, crop=4, mean=120, scale=0.004)
    inner = (images[:, 0, 1:5, 1:5].reshape(20, 16).astype(np.float64) - 120) * 0.004
    weights, bias = (np.asarray(blob.data, np.float64) for blob in net.net.params["ip"])
    scores = inner @ weights.T + bias
    expected = np.log(np.exp(scores).sum(1)) - scores[np.arange(20), labels]
    assert found == pytest.approx(expected.mean(), rel=1e-5)
