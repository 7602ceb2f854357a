"""`sparknet train` with a solver file alone: what `caffe train` does."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import datetime

import numpy as np
import pytest

from sparknet.cli import main
from sparknet.proto import read_model, read_state
from tests.cli.conftest import ROOT, Task, make_task


@pytest.fixture
def fresh(tmp_path):
    """The task in a folder of its own."""
    return make_task(tmp_path)


def weights(path: str) -> np.ndarray:
    return np.concatenate([array.ravel() for own in read_model(path).arrays for array in own])


def by_pycaffe(task: Task, steps: int) -> np.ndarray:
    from sparknet.caffe import get_solver

    solver = get_solver(task.path("solver.prototxt"))
    solver.step(steps)
    return np.array(solver.net.flat_params)


def test_it_trains_as_pycaffe_does(fresh, run):
    done = run("train", f"-solver={fresh.path('solver.prototxt')}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    said = [line.partition("] ")[2] for line in done.stderr.splitlines()]
    assert "Solving columns" in said
    assert "Iteration 10, Testing net (#0)" in said
    assert any(line.startswith("Iteration 15 (") for line in said)
    assert said[-1] == "Optimization Done."
    assert f"Snapshotting to {fresh.path('columns_iter_20.caffemodel')}" in said
    np.testing.assert_array_equal(
        weights(fresh.path("columns_iter_20.caffemodel")), by_pycaffe(fresh, 20)
    )


def test_the_log_is_caffes(fresh, run):
    """What Caffe's parse_log.py and extract_seconds.py look for, they find."""
    lines = run("train", f"-solver={fresh.path('solver.prototxt')}").stderr.splitlines()
    for line in lines:
        day, clock, process = line.split()[:3]
        assert 1 <= int(day[1:3]) <= 12
        assert 1 <= int(day[3:]) <= 31
        datetime.strptime(clock, "%H:%M:%S.%f")
        assert int(process) > 1
    assert any("Solving" in line for line in lines)
    text = "\n".join(lines)
    assert re.findall(
        r"Iteration (\d+), lr = ([-+]?[0-9]*\.?[0-9]+(?:[eE]?[-+]?[0-9]+)?)", text
    ) == [
        ("0", "0.1"),
        ("5", "0.1"),
        ("10", "0.05"),
        ("15", "0.05"),
    ]
    tests = re.findall(r"Test net output #(\d+): (\S+) = ([\.\deE+-]+)", text)
    assert [(number, name) for number, name, _ in tests] == [("0", "accuracy"), ("1", "loss")] * 2
    assert len(re.findall(r"Train net output #0: loss = [\.\deE+-]+", text)) == 4


def test_a_solver_for_the_gpu(fresh, run):
    solver = fresh.folder / "solver.prototxt"
    words = ["train", "-solver", str(solver), "-iterations", "1"]
    assert "GPU" not in run(*words).stderr
    solver.write_text(solver.read_text() + "solver_mode: GPU")
    done = run(*words)
    assert done.returncode == 0
    said = done.stderr.splitlines()[0]
    assert "solver_mode is GPU: " in said
    assert said.endswith("; the net runs on the CPU")


def test_resume(fresh, run):
    solver = fresh.path("solver.prototxt")
    assert main(["train", "-solver", solver, "-iterations", "10"]) == 0
    state = fresh.path("columns_iter_10.solverstate")
    done = run("train", "--solver", solver, "--snapshot", state)
    assert f"Restoring previous solver status from {state}" in done.stderr
    assert read_state(fresh.path("columns_iter_20.solverstate")).iteration == 20


def test_finetune(task, fresh):
    words = ["-solver", fresh.path("solver.prototxt"), "-weights", task.path("model.caffemodel")]
    text = (fresh.folder / "solver.prototxt").read_text()
    (fresh.folder / "solver.prototxt").write_text(text.replace("base_lr: 0.1", "base_lr: 0"))
    assert main(["train", *words, "-iterations", "1"]) == 0
    np.testing.assert_array_equal(
        weights(fresh.path("columns_iter_1.caffemodel")), weights(task.path("model.caffemodel"))
    )


def endless(task: Task, *words: str) -> subprocess.Popen[str]:
    """A training that goes on until it is told otherwise; it has begun."""
    command = [sys.executable, "-m", "sparknet", "train", "-solver"]
    child = subprocess.Popen(
        [*command, task.path("solver.prototxt"), "-iterations", "100000000", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    said_until(child, "Iteration 5")
    return child


def said_until(child: subprocess.Popen[str], text: str) -> str:
    assert child.stderr is not None
    for line in child.stderr:
        if text in line:
            return line
    raise AssertionError(f"it never said {text}")


def the_rest(child: subprocess.Popen[str]) -> str:
    """Until it ends; `communicate` would miss what was read ahead of the line looked for."""
    assert child.stderr is not None
    with child.stderr:
        rest = child.stderr.read()
    child.wait(60)
    return rest


def test_ctrl_c_snapshots_and_stops(fresh):
    child = endless(fresh)
    child.send_signal(signal.SIGINT)
    line = said_until(child, "Snapshotting solver state to")
    rest = the_rest(child)
    assert child.returncode == 130
    assert "Optimization stopped early." in rest
    state = read_state(line.rpartition(" to ")[2].strip())
    assert state.iteration >= 5
    # What it left can be gone on from.
    words = ["-snapshot", line.rpartition(" to ")[2].strip()]
    words += ["-iterations", str(state.iteration + 5)]
    assert main(["train", "-solver", fresh.path("solver.prototxt"), *words]) == 0


def test_other_effects_of_signals(fresh):
    child = endless(fresh, "-sigint_effect", "none", "--sighup-effect=snapshot")
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGHUP)
    said_until(child, "Snapshotting solver state to")
    said_until(child, "Iteration")  # it goes on
    child.terminate()
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGTERM


def test_refusals(fresh, capsys):
    solver = fresh.path("solver.prototxt")
    assert main(["train"]) == 2
    assert capsys.readouterr().err == "sparknet train: give SOLVER or -solver\n"
    assert main(["train", "-solver", solver, "-snapshot", "a", "-weights", "b"]) == 2
    assert "not both" in capsys.readouterr().err
    assert main(["train", "-solver", solver, "-snapshot", fresh.path("none")]) == 1
    assert "none" in capsys.readouterr().err
    assert main(["train", "-solver", fresh.path("solver.prototx")]) == 1
    assert "hint: did you mean" in capsys.readouterr().err
    text = (fresh.folder / "solver.prototxt").read_text()
    (fresh.folder / "solver.prototxt").write_text(text.replace("/columns", "/no/columns"))
    assert main(["train", "-solver", solver]) == 1
    err = capsys.readouterr().err
    assert "is missing or cannot be written" in err


def test_inputs_that_nothing_fills(fresh, capsys):
    """They would stay zero, and the loss fall all the same."""
    net = fresh.folder / "net.prototxt"
    _, layers = net.read_text().split("transform_param { scale: 0.00390625 } }\n")
    shapes = "shape { dim: 4 dim: 1 dim: 6 dim: 6 } shape { dim: 4 }"
    top = 'layer { name: "in" type: "Input" top: "data" top: "label" input_param { %s } }\n'
    net.write_text(top % shapes + layers)
    assert main(["train", "-solver", fresh.path("solver.prototxt")]) == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error == "sparknet train: nothing fills the net's inputs 'data', 'label'"
    assert hint == "hint: name records with --data, or give a net with data layers"
    assert not list(fresh.folder.glob("*.caffemodel"))


@pytest.mark.parametrize("word", ["--json", "--log", "--run-folder", "--out"])
def test_what_only_shows_changes_nothing_of_the_training(word, fresh, capsys):
    """`--json` once had another loop train, which wrote no solverstate."""
    words = [word] if word == "--json" else [word, fresh.path("shown.caffemodel")]
    assert main(["train", "-solver", fresh.path("solver.prototxt"), *words]) == 0
    out = capsys.readouterr().out
    trained = by_pycaffe(fresh, 20)
    np.testing.assert_array_equal(weights(fresh.path("columns_iter_20.caffemodel")), trained)
    assert read_state(fresh.path("columns_iter_20.solverstate")).iteration == 20
    if word == "--out":
        np.testing.assert_array_equal(weights(fresh.path("shown.caffemodel")), trained)
    if word != "--json":
        assert out == ""
        return
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [(event["event"], event["iteration"]) for event in events]
    assert kinds == [
        ("start", 0),
        ("round", 5),
        ("round", 10),
        ("validation", 10),
        ("round", 15),
        ("round", 20),
        ("snapshot", 20),
        ("validation", 20),
        ("stop", 20),
    ]
    assert [event["samples"] for event in events if event["event"] == "round"] == [100] * 4
    assert events[-2]["metrics"].keys() == {"accuracy", "loss"}
    assert events[-1]["reason"] == "steps"
    assert events[-1]["snapshot"] == fresh.path("columns_iter_20.caffemodel")


ENTERED = """
import sys
from sparknet.caffe.solvers import Solver
from sparknet.cli import main

def look(solver):
    rooms = {name.split(".")[1] for name, room in sys.modules.items()
             if name.startswith("sparknet.") and hasattr(room, "__path__")}
    print(*sorted(rooms))
    raise SystemExit

Solver.apply_update = look
main(["train", "-solver", sys.argv[1]])
"""


def test_a_solver_enters_few_rooms_before_its_first_step(task):
    """Those of workers, Spark, reports and ONNX are not among them."""
    words = [sys.executable, "-c", ENTERED, task.path("solver.prototxt")]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    rooms = subprocess.run(
        words, capture_output=True, text=True, check=True, env=env
    ).stdout.split()
    assert len(rooms) <= 10
    assert not {"training", "spark", "report", "net", "onnx"} & set(rooms)
