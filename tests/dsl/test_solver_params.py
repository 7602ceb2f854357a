"""Solver settings in Python."""

import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparknet.dsl import SolverParams
from sparknet.errors import SolverError
from sparknet.proto import caffe_pb2, parse_text
from tests.dsl.nets import lenet, rebuilt
from tests.dsl.values import values

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


def test_text_and_files(tmp_path):
    assert sorted(str(STEPS).splitlines()) == sorted(TEXT.splitlines())
    STEPS.save(tmp_path / "solver.prototxt")
    assert SolverParams.load(tmp_path / "solver.prototxt") == STEPS
    assert SolverParams.from_text(TEXT) == STEPS
    assert SolverParams.from_proto(STEPS.to_proto()) == STEPS
    assert rebuilt(STEPS.to_source(), "solver") == STEPS
    assert pickle.loads(pickle.dumps(STEPS)) == STEPS
    assert hash(SolverParams.from_text(TEXT)) == hash(STEPS)


def test_fields_read_as_attributes():
    assert STEPS.lr_policy == "step"
    assert STEPS.stepsize == 100
    assert STEPS.iter_size == 1
    with pytest.raises(AttributeError, match="SolverParams has no field 'base_lrate'"):
        STEPS.base_lrate  # noqa: B018
    with pytest.raises(AttributeError, match="cannot be changed"):
        STEPS.base_lr = 1


def test_nets_in_place_of_paths():
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
def test_refusals(fields, sentence):
    with pytest.raises(SolverError) as caught:
        STEPS.but(**fields)
    assert str(caught.value) == sentence


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_settings_come_back_from_text_and_source(data):
    nets = ("net_param", "train_net_param", "test_net_param")
    fields = caffe_pb2.SolverParameter.DESCRIPTOR.fields
    every = {field.name: field for field in fields if field.name not in nets}
    chosen = data.draw(st.lists(st.sampled_from(sorted(every)), unique=True, max_size=8))
    options = {key: data.draw(values(every[key])) for key in chosen}
    solver = SolverParams(check=False, **options)
    assert rebuilt(solver.to_source(), "solver") == solver
    assert parse_text(solver.to_prototxt(), caffe_pb2.SolverParameter) == solver.to_proto()
    assert pickle.loads(pickle.dumps(solver)) == solver


def test_settings_are_checked_together():
    with pytest.raises(SolverError):
        STEPS.but(lr_policy="stepp")
    assert STEPS.but(base_lr=0.5).base_lr == 0.5
