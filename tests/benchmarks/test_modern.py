"""The table of today's models: what it is made of, with a small model of our own."""

import sys

import numpy as np
import pytest

from benchmarks.modern import __main__ as modern
from benchmarks.modern.models import MODELS


def test_a_row_has_the_times_of_all_and_the_closeness(tmp_path, capsys):
    graphs = pytest.importorskip("tests.onnx.graphs", reason="onnx is not installed")
    made = graphs.graph(
        [graphs.node("MatMul", "data w")], {"data": [3, 6]}, constants={"w": graphs.draw(6, 4)}
    )
    graphs.onnx.save(made, str(tmp_path / "efficientnet_b0-3.onnx"))
    np.savez(tmp_path / "efficientnet_b0-3.npz", data=graphs.draw(3, 6))
    words = ["efficientnet_b0", "--batch", "3", "--folder", str(tmp_path), "--peers", "onnxruntime"]
    words += ["--precisions", "float32", "--rounds", "1", "--seconds", "0.01", "--threads", "1"]
    assert modern.main(words) == 0
    row = capsys.readouterr().out.splitlines()[2].split(" | ")
    assert row[0] == "| efficientnet_b0, 3"
    assert float(row[2]) >= 0
    assert float(row[3]) == 1
    assert float(row[4]) >= 0


def test_means_are_of_the_fastest_peer():
    times = {
        "sparknet": [1.0, 2.0, 4.0],
        "onnxruntime": [2.0, 4.0, 8.0],
        "openvino": [1.0, 1.0, 1.0],
    }
    text = modern.means([{"precision": "float32", "times": times}])
    assert "against onnxruntime: 2.00 of 1, 1 at 1.0 or more" in text
    assert "against the fastest peer: 0.50 of 1, 0 at 1.0 or more" in text


def test_closeness_is_that_of_the_worst_record():
    exact = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert modern.cosine(np.array([[2.0, 0.0], [1.0, 1.0]]), exact) == pytest.approx(0.5**0.5)


def test_what_is_missing_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(modern, "can_import", lambda python, name: name != "torchvision")
    assert modern._exported(tmp_path, "minilm", 2, sys.executable) is None
    assert "has no torchvision, with which models are exported" in capsys.readouterr().err


@pytest.mark.parametrize("name", MODELS)
def test_inputs_are_of_the_batch(name):
    assert {len(values) for values in MODELS[name].inputs(3).values()} == {3}
