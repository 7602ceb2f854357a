from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.proto import caffe_pb2
from sparknet.proto.model_file import read_model
from sparknet.proto.state_file import (
    SolverState,
    parse_state,
    read_state,
    state_model_path,
    write_state,
)
from tests.goldens import GOLDENS, index

SNAPSHOTS = index("solvers/snapshots")
STATE = SolverState(7, "snap/x.caffemodel", 2, [np.arange(6, dtype=np.float32).reshape(2, 3)])


@pytest.mark.parametrize("case", SNAPSHOTS, ids=lambda case: str(case["name"]))
def test_golden_snapshots(case, tmp_path):
    folder = GOLDENS / "solvers/snapshots" / case["name"]
    state = read_state(folder / case["state"])
    assert state.iteration == case["snapshot_at"]
    assert state.learned_net == case["model"]
    assert state_model_path(state, folder / case["state"]) == folder / case["model"]
    restored = np.load(folder / f"{case['name']}.npz")
    shapes = [restored[f"restored/{key}"].shape for key in case["params"]]
    copies = len(state.history) // len(shapes)
    slots = 2 if "adadelta" in case["name"] or case["name"].startswith("adam") else 1
    if "shared" not in case["name"]:
        assert len(state.history) == slots * len(shapes)
    assert copies >= 1
    written = tmp_path / case["state"]
    write_state(written, state)
    again = read_state(written)
    assert (again.iteration, again.learned_net) == (state.iteration, state.learned_net)
    assert again.current_step == state.current_step
    assert [a.tobytes() for a in again.history] == [a.tobytes() for a in state.history]
    if case["format"] == "BINARYPROTO":
        assert written.read_bytes() == (folder / case["state"]).read_bytes()


@pytest.mark.parametrize("case", SNAPSHOTS, ids=lambda case: str(case["name"]))
def test_golden_snapshot_models(case):
    folder = GOLDENS / "solvers/snapshots" / case["name"]
    model = read_model(folder / case["model"], diffs=True)
    restored = np.load(folder / f"{case['name']}.npz")
    held = 0
    for key in case["params"]:
        layer, number = key.rsplit("/", 1)
        arrays = model.layer_arrays(layer)
        if model.partial and int(number) >= len(arrays):
            continue
        array = arrays[int(number)]
        assert array is not None
        assert array.tobytes() == restored[f"restored/{key}"].tobytes()
        held += 1
    assert held == (2 if case["name"] == "shared_params_hdf5" else len(case["params"]))
    assert model.diffs is not None
    nonzero = any(d is not None and d.any() for diffs in model.diffs for d in diffs)
    assert nonzero == ("diff" in case["name"])


@pytest.mark.parametrize("suffix", ["", ".h5"])
def test_round_trip(tmp_path, suffix):
    path = tmp_path / f"x.solverstate{suffix}"
    for state in (
        STATE,
        SolverState(),
        SolverState(1, "ä.caffemodel", 0, [np.float32(3).reshape(())]),
    ):
        write_state(path, state)
        again = read_state(path)
        assert (again.iteration, again.learned_net, again.current_step) == (
            state.iteration,
            state.learned_net,
            state.current_step,
        )
        assert len(again.history) == len(state.history)
        for got, want in zip(again.history, state.history, strict=True):
            assert np.array_equal(got, want)
            assert got.shape == want.shape


def test_bytes_equal_protobuf(tmp_path):
    path = tmp_path / "x.solverstate"
    write_state(path, STATE)
    message = caffe_pb2.SolverState.FromString(path.read_bytes())
    assert message.SerializeToString() == path.read_bytes()
    assert list(message.history[0].data) == [0, 1, 2, 3, 4, 5]
    assert parse_state(path.read_bytes()).iteration == 7


def test_refusals(tmp_path):
    path = tmp_path / "x.solverstate"
    with pytest.raises(FileError, match="iteration -1"):
        write_state(path, SolverState(-1))
    path.write_bytes(caffe_pb2.NetParameter(name="x").SerializeToString())
    with pytest.raises(FileError, match=r"no Caffe solver state|damaged"):
        read_state(path)
    path.write_bytes(b"\x12\x02\xff\xfe")
    with pytest.raises(FileError, match=r"UTF-8|damaged"):
        read_state(path)
    assert state_model_path(SolverState(), path) is None


def test_where_the_model_of_a_state_is_sought(tmp_path, monkeypatch):
    folder, work = tmp_path / "snap", tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    state = SolverState(1, "snap/x.caffemodel")
    (folder / "x.caffemodel").touch()
    assert state_model_path(state, folder / "x.solverstate") == folder / "x.caffemodel"
    (work / "snap").mkdir()
    (work / "snap" / "x.caffemodel").touch()
    assert state_model_path(state, folder / "x.solverstate") == Path("snap/x.caffemodel")
    with pytest.raises(FileError, match="is missing"):
        state_model_path(SolverState(1, "nul\0"), folder / "x.solverstate")
    with pytest.raises(FileError, match="is missing"):
        state_model_path(SolverState(1, "a" * 5000), folder / "x.solverstate")
