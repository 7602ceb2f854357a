"""The comparison runs, with whatever peers there are; our side alone here."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import table
from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.match import Match, Result, Rules, Score
from benchmarks.peers.nets import inference_net, training_solver
from benchmarks.peers.precision import precisions
from benchmarks.peers.process import Process, SideFailed
from sparknet.graph import build_in_state


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setattr(peers, "can_import", lambda python, name: False)


@pytest.mark.usefixtures("alone")
def test_ours_alone(capsys):
    words = ["--quick", "--rounds", "1", "--models", "mlp_tabular", "--threads", "1", "--json"]
    assert peers.main(words) == 0
    out, err = capsys.readouterr()
    assert "sparknet runs alone" in err
    found = json.loads(out)
    assert [(one["net"], one["mode"], one["precision"]) for one in found["results"]] == [
        ("mlp_tabular", mode, precision)
        for mode in ("train", "inference")
        for precision in precisions()
        if (mode, precision) != ("train", "int8")
    ]
    for one in found["results"]:
        beside = [] if one["precision"] == "float32" else ["float32"]
        assert [side["variant"] for side in one["sides"]] == ["", *beside]
        for side in one["sides"]:
            assert side["library"] == "sparknet"
            assert len(side["turns_ms"]) == 1
            assert side["ms"] > 0
            assert side["peak_memory"] > 10e6
        assert all(side["ratio"]["median"] > 0 for side in one["sides"][1:])
    assert found["imports"]["import sparknet"]["ms"] > 0
    assert found["threads"] == 1
    assert "mlp_tabular" in table.as_text(found)


@pytest.mark.parametrize("name", CONTESTS)
def test_the_nets_are_ready(name):
    contest = CONTESTS[name]
    graph = build_in_state(inference_net(contest))
    assert graph.outputs == ("prob",)
    assert graph.blobs["data"] == contest.data_shape
    assert contest.classes in graph.blobs["prob"]
    solver = training_solver(contest)
    assert solver.net_param.layer
    assert solver.weight_decay > 0


def score(library: str, *ms: float) -> Score:
    return Score(library, "eager" if library == "torch" else "", list(ms), 10**6, {})


def test_ratios_are_of_pairs():
    contest = CONTESTS["lenet"]
    result = Result(
        contest, "train", "float32", [score("sparknet", 1, 2), score("torch", 3, 4)], []
    )
    assert result.ratios(result.scores[1]) == [3, 2]
    again = Result(
        contest, "train", "float32", [score("sparknet", 2), score("torch", 1.6)], ["slow"]
    )
    facts = {"threads": 2, "rounds": 2, "processor": "one"}
    found = table.as_dict([result, again], {"import x": {"ms": 5, "memory": 1e6}}, facts)
    ratio = found["results"][0]["sides"][1]["ratio"]
    assert ratio == {"min": 2, "median": 2.5, "max": 3}
    (mean,) = found["geometric_means"]
    assert mean["ratio"] == pytest.approx((2.5 * 0.8) ** 0.5)
    text = table.as_text(found)
    assert "| lenet | 64 | train | float32 | torch eager | 3.50 | 2.00 2.50 3.00 | 1 |" in text
    assert "- lenet, train: slow" in text


def rules(tmp_path: Path, limit: float = 60) -> Rules:
    return Rules(1, 0.01, 1, ["eager"], limit, tmp_path / "log")


def test_a_peer_that_fails_is_a_note(tmp_path):
    pythons = {"sparknet": sys.executable, "caffe": sys.executable}
    result = Match(rules(tmp_path), CONTESTS["mlp_tabular"], "train", "float32", pythons).play()
    assert [one.library for one in result.scores] == ["sparknet"]
    assert "caffe" in result.notes[0]


def test_a_side_that_does_not_answer(tmp_path):
    with (
        Process("sparknet", sys.executable, 1, tmp_path / "log", 0.01) as side,
        pytest.raises(SideFailed, match="no answer"),
    ):
        side.load("lenet", "train", "float32")
    with (
        Process("sparknet", sys.executable, 1, tmp_path / "log", 60) as side,
        pytest.raises(SideFailed, match="KeyError"),
    ):
        side.load("nothing", "train", "float32")


@pytest.mark.parametrize("library", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_peer_for_inference_runs_our_model(tmp_path, library, precision):
    pytest.importorskip(library)
    if precision == "int8":
        pytest.importorskip({"openvino": "nncf", "onnxruntime": "onnx"}[library])
    with Process(library, sys.executable, 1, tmp_path / "log", 60) as side:
        assert side.load("lenet", "inference", precision, batch=1)["version"]
        assert side.run(2)["memory"] > 10e6
        with pytest.raises(SideFailed, match="it does not train"):
            side.load("lenet", "train", precision)


def test_wrong_use():
    for words in (["--models", "nothing"], ["--rounds", "0"], ["--batch", "0"]):
        with pytest.raises(SystemExit) as caught:
            peers.arguments(words)
        assert caught.value.code == 2
