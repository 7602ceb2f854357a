"""`--dialect`: whose meaning counts, for the verbs that build a net."""

import json

import numpy as np
import pytest

from sparknet import Net
from sparknet.cli import main
from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2, parse_solver, read_net, solver_in_dialect

FILLED = 'weight_filler { type: "xavier" }'
NET = (
    'name: "n" layer { name: "d" type: "DummyData" top: "x" top: "t" dummy_data_param { '
    "shape { dim: 4 dim: 2 } shape { dim: 4 dim: 1 } "
    'data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }'
    'layer { name: "b" type: "BN" bottom: "x" top: "y" }'
    f'layer {{ name: "f" type: "InnerProduct" bottom: "y" top: "z" inner_product_param {{ '
    f"num_output: 1 {FILLED} }} }}"
    'layer { name: "l" type: "EuclideanLoss" bottom: "z" bottom: "t" top: "loss" }'
)
DEPLOY = (
    'layer { name: "i" type: "Input" top: "x" input_param { shape { dim: 4 dim: 2 } } }'
    'layer { name: "b" type: "BN" bottom: "x" top: "y" }'
)
SOLVER = (
    "{net} test_iter: 1 test_interval: 1 base_lr: 0.01 lr_policy: 'fixed' max_iter: 1 "
    "snapshot_prefix: 'n' snapshot_after_train: {last}"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "deploy.prototxt").write_text(DEPLOY)
    (tmp_path / "solver.prototxt").write_text(SOLVER.format(net="net: 'net.prototxt'", last="true"))
    return tmp_path


@pytest.mark.parametrize(("dialect", "blobs"), [("segnet", 2), ("pspnet", 4)])
def test_show(dialect, blobs, capsys):
    assert main(["show", "net.prototxt", "--json", "--dialect", dialect]) == 0
    layers = {one["name"]: one for one in json.loads(capsys.readouterr().out)["layers"]}
    assert len(layers["b"]["parameters"]) == blobs
    assert main(["show", "net.prototxt"]) == 1
    assert 'dialect="segnet"' in capsys.readouterr().err


@pytest.mark.parametrize(("dialect", "blobs"), [("segnet", 2), ("pspnet", 4)])
def test_train_test_and_predict(dialect, blobs, folder, capsys):
    assert main(["train", "-solver", "solver.prototxt"]) == 1
    assert "layer 'b': BN: forks mean different things" in capsys.readouterr().err
    assert main(["train", "-solver", "solver.prototxt", "--dialect", dialect]) == 0
    weights = ["-weights", "n_iter_1.caffemodel", "--dialect", dialect]
    model = Net("deploy.prototxt", "n_iter_1.caffemodel", dialect=dialect)
    assert len(model.net.params["b"]) == blobs
    assert main(["test", "-model", "net.prototxt", "-iterations", "1", *weights]) == 0
    x = np.random.default_rng(0).standard_normal((4, 2)).astype(np.float32)
    np.save(folder / "x.npy", x)
    capsys.readouterr()
    told = ["predict", "-model", "deploy.prototxt", *weights, "--json", "--top", "0"]
    assert main([*told, "x.npy"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    got = np.array([row["outputs"]["y"] for row in rows])
    np.testing.assert_allclose(got, model.forward({"x": x})["y"], rtol=1e-5, atol=1e-6)


def test_a_solvers_nets(folder):
    """Every net that a solver has or names is in the dialect, in the order of its tests."""
    own = read_net("net.prototxt")
    own.name = "own"
    solver = parse_solver(
        SOLVER.format(net="train_net: 'net.prototxt' test_net: 'net.prototxt'", last="false")
        .replace("test_iter: 1", "test_iter: 1 test_iter: 1")
    )  # fmt: skip
    solver.test_net_param.append(own)
    made = solver_in_dialect(solver, "segnet")
    assert [net.name for net in made.test_net_param] == ["own", "n"]
    assert not made.test_net
    assert not made.HasField("train_net")
    for net in (made.train_net_param, *made.test_net_param):
        assert net.layer[1].bn_param.bn_mode == caffe_pb2.BNParameter.LEARN
    assert solver.train_net == "net.prototxt"
    assert len(Net(solver, dialect="segnet").net.params["b"]) == 2
    with pytest.raises(SpecError, match="unknown dialect 'klingon'"):
        Net(solver, dialect="klingon")
