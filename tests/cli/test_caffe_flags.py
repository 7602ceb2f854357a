"""The command as old scripts call `caffe`: flags anywhere, -gpu, glog's flags."""

import json

import numpy as np
import pytest

from sparknet.cli import main
from sparknet.cli.caffe_flags import arrange
from sparknet.proto import read_model, write_model
from tests.cli.conftest import make_task

NO_GPU = "the net runs on the CPU"


@pytest.fixture
def fresh(tmp_path):
    return make_task(tmp_path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train -solver s", "train -solver s"),
        ("-gpu 0 train --solver=s", "train --gpu=0 --solver=s"),
        ("--gpu=0,1 -level -1 test -model m", "test --gpu=0,1 --level=-1 -model m"),
        ("-logtostderr train --v=1 -solver s -stderrthreshold 2", "train -solver s"),
        ("train -nologtostderr --logtostderr=1 --log-dir=x -solver s", "train -solver s"),
        ("time -forward_only -model m", "time --forward_only -model m"),
        ("time -noforward_only --forward_only=false -model m", "time -model m"),
        ("--forward_only=1 time -model m", "time --forward_only -model m"),
        ("run script.py -v 1 --logtostderr -gpu 0", "run script.py -v 1 --logtostderr -gpu 0"),
        ("-gpu 0 run x.py", "run --gpu=0 x.py"),
        ("--version", "--version"),
        ("--help", "--help"),
        ("predict -- -v", "predict -- -v"),
    ],
)
def test_flags_stand_anywhere(line, words, monkeypatch):
    monkeypatch.setenv("GLOG_log_dir", "")
    assert arrange(line.split(), {"run"}) == words.split()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--gpu", "sparknet: --gpu needs a value"),
        ("time --forward_only=perhaps", "'perhaps' is neither true nor false"),
        ("train -minloglevel", "sparknet: -minloglevel needs a value"),
    ],
)
def test_flags_without_sense(line, said, capsys):
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("flag", [["-gpu", "0"], ["-gpu", "all"], ["--gpu=0"]])
def test_the_gpu_is_warned_of_once(flag, before, fresh, capsys):
    """The solver's own wish for a GPU is not told a second time."""
    solver = fresh.folder / "solver.prototxt"
    solver.write_text(solver.read_text() + "solver_mode: GPU")
    words = ["train", "-solver", str(solver), "-iterations", "1"]
    assert main([*flag, *words] if before else [*words, *flag]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if NO_GPU in line]
    value = flag[-1].rpartition("=")[2]
    spelling = "--gpu" if before or "=" in flag[0] else "-gpu"
    (line,) = lines
    assert line.startswith(f"sparknet train: warning: {spelling} {value}: ")


def test_several_gpus(fresh, capsys):
    """Caffe's batch grows with them: the result is another one, and that is said."""
    words = ["train", "-solver", fresh.path("solver.prototxt"), "-iterations", "1"]
    assert main([*words, "-gpu=0,1"]) == 0
    said = capsys.readouterr().err
    assert "-gpu 0,1: " in said
    assert f"; {NO_GPU}; Caffe would take 2 batches a step" in said


def test_glogs_flags_and_files(fresh, run):
    words = ["train", "-solver", fresh.path("solver.prototxt"), "-iterations", "2"]
    logs = fresh.folder / "logs"
    logs.mkdir()
    done = run("--logtostderr=1", "-v", "1", *words, f"--log_dir={logs}", "-colorlogtostderr")
    assert done.returncode == 0, done.stderr
    link = logs / "sparknet.INFO"
    assert link.is_symlink()
    assert ".log.INFO." in str(link.readlink())
    assert "Starting Optimization" in done.stderr
    assert link.read_text() == done.stderr
    done = run("--minloglevel=2", *words)
    assert (done.returncode, done.stderr) == (0, "")
    done = run("-log_dir", str(logs / "none"), *words)
    assert done.returncode == 0
    assert done.stderr.startswith(f"sparknet: no log in {logs / 'none'}: ")


def test_flags_that_caffe_takes_everywhere(fresh, task, capsys):
    words = ["-phase", "TRAIN", "-solver", fresh.path("solver.prototxt"), "-iterations", "1"]
    assert main(["train", *words]) == 0
    assert "sparknet train: -phase changes nothing here" in capsys.readouterr().err
    model = ["-model", task.path("net.prototxt"), "-weights", task.path("model.caffemodel")]
    assert main(["test", *model, "-iterations=1", "--sigint_effect=stop", "-gpu", "0"]) == 0
    out, err = capsys.readouterr()
    assert "accuracy = " in out
    assert "sparknet test: --sigint_effect changes nothing here" in err


def test_device_query(capsys):
    assert main(["device_query", "-gpu", "all"]) == 0
    out, err = capsys.readouterr()
    assert "processors to run on" in out
    assert err.startswith("sparknet device_query: warning: -gpu all: ")
    assert err.endswith(f"; {NO_GPU}\n")


def test_only_the_forward_pass_is_timed(task, capsys):
    words = ["-model", task.path("net.prototxt"), "-iterations", "2", "--json"]
    assert main(["time", *words]) == 0
    assert json.loads(capsys.readouterr().out)["backward_ms"] > 0
    assert main(["time", *words, "--forward_only"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["forward_ms"] > 0
    assert found["backward_ms"] == 0
    assert main(["time", "-solver", task.path("solver.prototxt"), "-forward_only"]) == 2


def test_caffes_time_logs_what_caffe_logs(task, caplog):
    caplog.set_level("INFO", "sparknet.caffe")
    assert main(["time", "-model", task.path("net.prototxt"), "-iterations", "2"], "caffe") == 0
    said = caplog.messages
    assert said[0] == "*** Benchmark begins ***"
    assert any(line.startswith("        ip\tforward: ") for line in said)
    assert [line.partition(":")[0] for line in said if line.startswith("Average ")] == [
        "Average time per layer",
        "Average Forward pass",
        "Average Backward pass",
        "Average Forward-Backward",
    ]


def test_weights_take_the_place_of_those_of_the_solver(fresh, task):
    """Caffe clears the solver's `weights` where the command line has its own, or a snapshot."""
    solver = fresh.folder / "solver.prototxt"
    text = solver.read_text().replace("base_lr: 0.1", "base_lr: 0")
    solver.write_text(text + 'weights: "nowhere.caffemodel"')
    words = ["train", "-solver", str(solver), "-iterations", "1"]
    assert main(words) == 1
    first, other = task.path("model.caffemodel"), fresh.path("other.caffemodel")
    model = read_model(first)
    for arrays in model.arrays:
        arrays[:] = [np.zeros_like(array) for array in arrays]
    write_model(other, model)
    assert main([*words, "-weights", f"{other},{first}"]) == 0
    learnt = read_model(fresh.path("columns_iter_1.caffemodel")).layer_arrays("ip")
    for one, same in zip(learnt, read_model(first).layer_arrays("ip"), strict=True):
        np.testing.assert_array_equal(one, same)
    assert main([*words, "-snapshot", fresh.path("columns_iter_1.solverstate")]) == 0
