"""Solver settings in Python."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sparknet.dsl import SolverParams
from sparknet.errors import SolverError
from tests.dsl.nets import lenet, rebuilt

STEPS = SolverParams(
    net="net.prototxt",
    type="SGD",
    base_lr=0.01,
    lr_policy="step",
    gamma=0.1,
    stepsize=100,
    momentum=0.9,
    max_iter=1000,
    snapshot_prefix="run",
    solver_mode="cpu",
)

TEXT = """\
net: "net.prototxt"
base_lr: 0.01
max_iter: 1000
lr_policy: "step"
gamma: 0.1
momentum: 0.9
stepsize: 100
snapshot_prefix: "run"
solver_mode: CPU
type: "SGD"
"""


def test_text_and_files(tmp_path: Path) -> None:
    assert sorted(str(STEPS).splitlines()) == sorted(TEXT.splitlines())
    STEPS.save(tmp_path / "solver.prototxt")
    assert SolverParams.load(tmp_path / "solver.prototxt") == STEPS
    assert SolverParams.from_text(TEXT) == STEPS
    assert SolverParams.from_proto(STEPS.to_proto()) == STEPS
    assert rebuilt(STEPS.to_source(), "solver") == STEPS
    assert pickle.loads(pickle.dumps(STEPS)) == STEPS
    assert hash(SolverParams.from_text(TEXT)) == hash(STEPS)


def test_fields_read_as_attributes() -> None:
    assert STEPS.lr_policy == "step"
    assert STEPS.stepsize == 100
    assert STEPS.iter_size == 1
    with pytest.raises(AttributeError, match="SolverParams has no field 'base_lrate'"):
        STEPS.base_lrate  # noqa: B018
    with pytest.raises(AttributeError, match="cannot be changed"):
        STEPS.base_lr = 1


def test_nets_in_place_of_paths() -> None:
    net = lenet()
    inside = STEPS.but(net=None, train_net=net, test_net=[net, net], test_iter=[1, 2],
                       test_interval=5)  # fmt: skip
    assert inside.train_net_param == net.to_proto()
    assert len(inside.test_net_param) == 2
    assert not inside.to_proto().HasField("net")
    assert rebuilt(inside.to_source(), "solver") == inside


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"base_rate": 1}, "SolverParameter has no field 'base_rate'; did you mean 'base_lr'?"),
        ({"base_lr": "0.1"}, "base_lr: '0.1' is not a number"),
        ({"max_iter": 10.5}, "max_iter: 10.5 is not an integer"),
        ({"solver_mode": "gpuu"}, "solver_mode: 'gpuu' is none of CPU, GPU; did you mean 'GPU'?"),
    ],
)
def test_refusals(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(SolverError) as caught:
        STEPS.but(**fields)
    assert str(caught.value) == sentence


def test_settings_are_checked_together() -> None:
    with pytest.raises(SolverError):
        STEPS.but(lr_policy="stepp")
    assert STEPS.but(base_lr=0.5).base_lr == 0.5
