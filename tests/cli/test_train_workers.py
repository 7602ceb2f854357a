"""`sparknet train` by workers: what `sparknet.train` does, from a shell."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparknet import Net
from sparknet.cli import main
from sparknet.cli.train import parse_strategy
from sparknet.cli.verb import WrongUse
from sparknet.errors import SettingError
from sparknet.onnx import write_model
from sparknet.report import History
from sparknet.spark import SparkModel
from sparknet.training import STRATEGIES
from tests.cli.conftest import ROOT, Task, make_task
from tests.cli.test_train_solver import by_pycaffe, weights


@pytest.fixture
def fresh(tmp_path):
    return make_task(tmp_path)


def train(task: Task, *words: str) -> list[str]:
    return ["train", "-solver", task.path("solver.prototxt"), *words]


def test_two_workers_learn_from_the_nets_own_data(fresh, run):
    words = ["--workers=2", "--strategy", "averaging:steps=5", "--validate-every", "2"]
    words += ["--log", fresh.path("log.jsonl"), "--plot", fresh.path("plot.svg")]
    done = run(*train(fresh, *words, "-iterations", "40", "--out", fresh.path("out.caffemodel")))
    assert done.returncode == 0, done.stderr
    printed = dict(line.split(" = ") for line in done.stdout.splitlines())
    assert float(printed["accuracy"]) > 0.9
    assert done.stderr.splitlines()[-1] == f"sparknet train: wrote {fresh.path('out.caffemodel')}"
    assert "step 40/40 100%" in done.stderr
    history = History.read(fresh.path("log.jsonl"))
    assert history.loss[0] == [5, 10, 15, 20, 25, 30, 35, 40]
    assert history.metrics["accuracy"][0] == [10, 20, 30, 40]
    assert history.metrics["accuracy"][1][-1] == pytest.approx(float(printed["accuracy"]))
    assert "<polyline" in Path(fresh.path("plot.svg")).read_text()
    # The model is what was tested: `sparknet test` says the same of it.
    model = ["-model", fresh.path("net.prototxt"), "-weights", fresh.path("out.caffemodel")]
    tested = run("test", *model, "--data", fresh.path("lmdb"), "--json")
    found = json.loads(tested.stdout)["outputs"]
    assert found["accuracy"] == pytest.approx(float(printed["accuracy"]), abs=1e-6)
    assert found["loss"] == pytest.approx(float(printed["loss"]), rel=1e-4)


def test_one_worker_in_stored_order_is_plain_training(fresh):
    assert main(train(fresh, "--workers", "1", "--no-shuffle", "--threads", "1")) == 0
    np.testing.assert_array_equal(
        weights(fresh.path("columns_iter_20.caffemodel")), by_pycaffe(fresh, 20)
    )


def test_events_as_json(fresh, capsys):
    np.savez(fresh.path("data.npz"), data=fresh.images, label=fresh.labels)
    words = ["--data", fresh.path("data.npz"), "--validation", fresh.path("lmdb"), "--epochs", "2"]
    assert main(train(fresh, *words, "--workers", "1", "--json")) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds == ["reading", "workers", "start", "round", "validation", "stop"]
    assert events[3]["samples"] == 120
    assert events[4]["records"] == 60


def test_ctrl_c_snapshots_and_resume_goes_on(fresh):
    words = ["--workers", "2", "--strategy", "averaging:steps=5", "--json"]
    command = [sys.executable, "-m", "sparknet"]
    child = subprocess.Popen(
        [*command, *train(fresh, *words, "-iterations", "100000000")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert child.stdout is not None
    for line in child.stdout:
        if json.loads(line)["event"] == "round":
            break
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert err.startswith("sparknet train: interrupted at iteration ")
    stop = json.loads(out.splitlines()[-1])
    assert (stop["event"], stop["reason"]) == ("stop", "interrupted")
    assert Path(stop["snapshot"]).is_dir()
    assert not list(fresh.folder.glob("*.caffemodel"))
    further = str(stop["iteration"] + 10)
    log = fresh.path("log.jsonl")
    assert main(train(fresh, *words, "-iterations", further, "--resume", "--log", log)) == 0
    events = History.read(log).events
    start = next(event for event in events if event["event"] == "start")
    assert start["iteration"] == stop["iteration"]
    rounds = [event["iteration"] for event in events if event["event"] == "round"]
    assert [iteration - stop["iteration"] for iteration in rounds] == [5, 10]


def test_a_training_that_diverges(fresh, capsys):
    text = (fresh.folder / "solver.prototxt").read_text()
    (fresh.folder / "solver.prototxt").write_text(text.replace("base_lr: 0.1", "base_lr: 3e38"))
    out = fresh.path("out.caffemodel")
    assert main(train(fresh, "--workers", "2", "--out", out)) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("sparknet train: the loss")
    assert "no snapshot was made" in error
    assert not Path(out).exists()


def test_every_strategy_is_in_the_guide():
    guide = (ROOT / "docs" / "cli.md").read_text()
    (row,) = [line for line in guide.splitlines() if line.startswith("| `--strategy")]
    for name in STRATEGIES:
        assert f"`{name}`" in row


def test_strategies():
    made = parse_strategy("averaging:steps=5,momentum=reset")
    assert made.settings() | {"name": "averaging", "steps": 5, "momentum": "reset"} == (
        made.settings()
    )
    assert parse_strategy("averaging:seconds=0.5").settings()["seconds"] == 0.5
    with pytest.raises(SettingError, match="did you mean 'averaging'"):
        parse_strategy("averging")
    with pytest.raises(SettingError, match="did you mean 'steps'"):
        parse_strategy("averaging:step=5")
    with pytest.raises(WrongUse, match="'5' is no SETTING=VALUE"):
        parse_strategy("averaging:5")


def test_refusals(fresh, capsys):
    before = sorted(fresh.folder.iterdir())

    def refused(status: int, *words: str) -> str:
        assert main(train(fresh, *words)) == status
        out, err = capsys.readouterr()
        assert out == ""
        return err

    assert "is missing or cannot be written" in refused(1, "--out", fresh.path("no/x.caffemodel"))
    assert "is missing or cannot be written" in refused(1, "--plot", fresh.path("no/x.svg"))
    assert "a plot's name ends in" in refused(1, "--plot", fresh.path("x.bmp"))
    assert "does not exist" in refused(1, "--data", fresh.path("nothing"))
    assert "give --resume" in refused(2, "--workers=2", "-snapshot", "x.solverstate")
    assert "no column 'label'" in refused(1, "--data", _array(fresh), "--workers", "1")
    text = (fresh.folder / "net.prototxt").read_text()
    (fresh.folder / "net.prototxt").write_text(text.replace('type: "Data"', 'type: "DummyData"'))
    assert "give --data SOURCE" in refused(2, "--workers=1")
    (fresh.folder / "images.npy").unlink()
    assert sorted(fresh.folder.iterdir()) == before


def _array(task: Task) -> str:
    np.save(task.path("images.npy"), task.images)
    return f"data={task.path('images.npy')}"


@pytest.mark.parametrize("words", [["{net}"], ["-model", "{net}"]])
def test_a_folder_of_images_and_an_input_of_another_name(words, tmp_path, capsys):
    """The only input without a column gets the images, and predictions know what became of them."""
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("onnx")
    for name, grey in (("dark", 30), ("light", 220)):
        (tmp_path / "train" / name).mkdir(parents=True)
        for number in range(8):
            pixels = np.full((9, 10, 3), grey + number, np.uint8)
            image.fromarray(pixels).save(tmp_path / "train" / name / f"{number}.png")
    net = Net(
        'layer { name: "pixels" type: "Input" top: "pixels" '
        "input_param { shape { dim: 4 dim: 3 dim: 8 dim: 8 } } } "
        'layer { name: "in" type: "InnerProduct" bottom: "pixels" top: "in" '
        'inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }'
        'layer { name: "ip" type: "InnerProduct" bottom: "in" top: "ip" '
        'inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }'
    )
    write_model(tmp_path / "net.onnx", net)
    out, data = str(tmp_path / "tuned.caffemodel"), str(tmp_path / "train")
    command = [word.format(net=tmp_path / "net.onnx") for word in words]
    command += ["--head", "2", "--lr-mult", "head=100", "--epochs", "40", "--seed", "1"]
    command += ["--data", data, "--resize", "8", "--mean-value", "128", "--scale", "0.01"]
    assert main(["train", *command, "--out", out]) == 0
    capsys.readouterr()
    assert main(["predict", out, data, "--top", "1", "--format", "json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    best = [next(iter(row["outputs"].values()))[0] for row in found]
    assert [one["class"] for one in best] == [0] * 8 + [1] * 8
    assert [one["label"] for one in best] == ["dark"] * 8 + ["light"] * 8
    exported = str(tmp_path / "tuned.onnx")
    assert main(["export", out, exported]) == 0
    assert Net(exported).labels == SparkModel(out).labels == ("dark", "light")
    assert main(["predict", exported, data, "--top", "1"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert f": dark {best[0]['score']:.4f}" in first
