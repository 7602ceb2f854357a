"""Solver settings that Caffe refuses, and the nets that a solver names."""

import pytest

from sparknet.errors import FileError, SolverError
from sparknet.proto import caffe_pb2, check_solver, parse_solver, read_solver, solver_nets
from tests.goldens import GOLDENS, index

ERRORS = GOLDENS / "errors"
CASES = [case for case in index("errors") if case["name"].startswith("solver_")]
SAID = {
    "solver_no_net": "no training net",
    "solver_two_nets": "net and train_net are set",
    "solver_type": "'Adamax'; did you mean 'Adam'",
    "solver_type_twice": "both type 'SGD' and the old solver_type 'Adam'",
    "solver_adagrad_momentum": "momentum is 0.9, but AdaGrad",
    "solver_rms_decay": "rms_decay is 1",
    "solver_test_interval": "test_interval is 0",
    "solver_test_nets": "2 test nets need a test_iter each, found 1",
    "solver_average_loss": "average_loss is 0",
    "solver_policy": "max_iter is 0, but lr_policy 'cosine'",
    "solver_step_size": "stepsize is 0",
    "solver_gamma": "gamma is -0.1",
    "solver_regularization": "unknown regularization_type 'L3'",
}
FINE = 'net: "n" lr_policy: "fixed" '


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_refuses_what_caffe_refuses(case):
    path = ERRORS / case["file"]
    if case["name"] == "solver_net_missing":
        with pytest.raises(FileError, match=r"gone.prototxt: no such file"):
            solver_nets(read_solver(path), ERRORS)
        return
    with pytest.raises(SolverError, match=SAID[case["name"]]):
        check_solver(read_solver(path))


def test_accepts_every_solver_that_trained():
    paths = list((GOLDENS / "solvers").rglob("*.solver.prototxt"))
    assert len(paths) > 40
    for path in paths:
        solver = read_solver(path)
        check_solver(solver)
        nets = solver_nets(solver, path.parent)
        assert nets.train.layer
        assert len(nets.tests) == len(solver.test_iter)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('net: "n"', "the solver has no lr_policy: 'fixed' keeps base_lr"),
        ('net: "n" lr_policy: "Fixed"', "did you mean 'fixed'"),
        ('net: "n" lr_policy: "exp" gamma: nan', "gamma is nan"),
        ('net: "n" lr_policy: "sigmoid" gamma: 1', "stepsize is 0, but lr_policy 'sigmoid'"),
        (FINE + "iter_size: 0", "iter_size is 0"),
        (FINE + 'type: "RMSProp" momentum: 0.5', "momentum is 0.5, but RMSProp"),
        (FINE + "test_iter: 1 test_interval: 1 test_state {} test_state {}", "1 test nets, but 2"),
        ('train_net: "n" lr_policy: "fixed" test_iter: 1', "0 test nets need a test_iter each"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(SolverError, match=message):
        check_solver(parse_solver(text))


@pytest.mark.parametrize(
    "text",
    [
        FINE,
        FINE + 'regularization_type: "L3"',
        FINE + 'type: "AdaDelta" momentum: 0.95',
        FINE + "solver_type: NESTEROV momentum: 0.9",
        'net_param { } lr_policy: "poly" max_iter: 10',
    ],
)
def test_accepted(text):
    check_solver(parse_solver(text))


def test_states_merge_phase_then_net_then_solver():
    solver = parse_solver(
        'net_param { name: "shared" state { level: 2 stage: "a" } }'
        ' train_state { stage: "b" }'
        ' test_net_param { name: "own" state { phase: TRAIN } }'
        " test_iter: 1 test_iter: 1 test_interval: 5"
        ' test_state { stage: "t" } test_state { level: 7 }'
    )
    nets = solver_nets(solver)
    state = nets.train.state
    assert (state.phase, state.level, list(state.stage)) == (caffe_pb2.TRAIN, 2, ["a", "b"])
    own, shared = nets.tests
    assert (own.name, own.state.phase, list(own.state.stage)) == ("own", caffe_pb2.TRAIN, ["t"])
    assert (shared.name, shared.state.phase, shared.state.level) == ("shared", caffe_pb2.TEST, 7)
    assert list(shared.state.stage) == ["a"]


def test_net_files_are_relative_to_the_folder_and_inline_nets_are_upgraded(tmp_path):
    (tmp_path / "a.prototxt").write_text('name: "a" layers { type: RELU }')
    solver = parse_solver('train_net: "a.prototxt" test_net_param { layers { type: TANH } }'
                          ' test_iter: 1 test_interval: 1')  # fmt: skip
    nets = solver_nets(solver, tmp_path)
    assert nets.train.layer[0].type == "ReLU"
    assert nets.tests[0].layer[0].type == "TanH"


def test_snapshots_are_named_after_the_file(tmp_path):
    file = tmp_path / "lenet.solver.prototxt"
    file.write_text('net: "n"')
    assert read_solver(file).snapshot_prefix == str(tmp_path / "lenet.solver")
    file.write_text(f'snapshot_prefix: "{tmp_path}"')
    assert read_solver(file).snapshot_prefix == str(tmp_path / "lenet.solver")
    file.write_text('snapshot_prefix: "mine"')
    assert read_solver(file).snapshot_prefix == "mine"
