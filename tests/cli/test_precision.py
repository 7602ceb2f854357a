"""--precision bf16 of the verbs that compute: other numbers than float32's, and as good."""

import json
import re

import numpy as np
import pytest

from sparknet.caffe import get_solver
from sparknet.cli import main
from sparknet.native import has_bf16
from sparknet.weights import WeightCollection
from tests.cli.conftest import Task, make_task

pytestmark = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

PRECISIONS = ("float32", "bf16")
LAYERS = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    made = make_task(tmp_path_factory.mktemp("convolution"), LAYERS)
    solver = get_solver(made.path("solver.prototxt"))
    solver.step(20)
    solver.net.save(made.path("model.caffemodel"))
    return made


def model(task: Task, net: str) -> list[str]:
    return ["-model", task.path(f"{net}.prototxt"), "-weights", task.path("model.caffemodel")]


def close(wide, narrow, least=1e-6):
    """Whether bfloat16 has left traces, and no more."""
    apart = np.linalg.norm(np.asarray(narrow) - wide) / np.linalg.norm(wide)
    return bool(least < apart < 0.02)


@pytest.mark.parametrize("more", [[], ["--workers", "1", "--json"]])
def test_train(more, tmp_path, capsys):
    task, found = make_task(tmp_path, LAYERS), []
    for precision in PRECISIONS:
        words = ["-solver", task.path("solver.prototxt"), "--precision", precision, *more]
        assert main(["train", *words]) == 0
        found.append(np.array(WeightCollection.load(task.path("columns_iter_20.caffemodel")).flat))
    assert close(*found, least=1e-4)


def test_test(task, capsys):
    found = []
    for precision in PRECISIONS:
        words = [*model(task, "net"), "-iterations", "3", "--json", "-precision", precision]
        assert main(["test", *words]) == 0
        found.append(json.loads(capsys.readouterr().out)["outputs"])
    wide, narrow = found
    assert close(wide["loss"], narrow["loss"])
    assert narrow["accuracy"] == pytest.approx(wide["accuracy"], abs=0.02)


def test_predict_and_features(task, tmp_path, capsys):
    images = str(tmp_path / "images.npz")
    np.savez(images, data=task.images[:8])
    said, kept = [], []
    for precision in PRECISIONS:
        words = [*model(task, "deploy"), "--precision", precision, images]
        assert main(["predict", *words, "--json", "--top", "0"]) == 0
        said.append(capsys.readouterr().out)
        out = str(tmp_path / f"{precision}.npy")
        assert main(["features", *words, "--blobs", "ip", "--out", out]) == 0
        kept.append(np.load(out))
    assert said[0] != said[1]
    assert close(*kept)


def test_time(task, capsys):
    words = ["-model", task.path("deploy.prototxt"), "-iterations", "1", "-phase", "test"]
    assert main(["time", *words, "--precision", "bf16"]) == 0
    said = capsys.readouterr().out
    assert "columns, test, bf16: " in said
    assert re.search(r"GFLOP/s \(float32 matrix product\), \d+ \(bfloat16\), ", said)
    assert main(["time", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["precision"] == "float32"
