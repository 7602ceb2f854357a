"""Net: train, test, forward, weights."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from sparknet import (
    ActivationLayer,
    LinearLayer,
    Net,
    NetParams,
    RDDLayer,
    SoftmaxWithLoss,
    SolverParams,
    caffe,
)
from sparknet.errors import SolverError, SparkNetError, SpecError, WeightsError
from sparknet.proto import parse_net, parse_solver
from tests.net.nets import NET, blobs_of_three, solver_text


def test_trains_and_tests():
    net = Net(solver_text())
    net.set_training_data(blobs_of_three())
    net.set_validation_data(blobs_of_three(51, seed=1))
    first = net.train(1)
    assert net.train(60) < first / 2
    assert net.iter == 61
    found = net.test()
    assert set(found) == {"accuracy", "loss"}
    assert found["accuracy"] > 0.9
    assert (found["accuracy"] * 51) == pytest.approx(round(found["accuracy"] * 51), abs=1e-4)


@pytest.mark.parametrize("iter_size", [1, 3])
def test_training_is_that_of_pycaffe(iter_size):
    data, labels = blobs_of_three(40)
    text = solver_text(iter_size=iter_size, momentum=0.9, type='"Nesterov"')
    net = Net(text)
    net.set_training_data((data, labels))
    loss = net.train(4)
    solver = caffe.solver_from_text(text)
    losses, batch = [], 0
    for _ in range(4):
        solver.net.clear_param_diffs()
        for _ in range(iter_size):
            rows = np.arange(batch * 8, batch * 8 + 8) % 40
            solver.net.forward(data=data[rows], label=labels[rows])
            losses.append(float(solver.net.blobs["loss"].data))
            solver.net.backward()
            batch += 1
        solver.apply_update()
    assert loss == pytest.approx(np.mean(losses))
    np.testing.assert_array_equal(net.flat_weights, solver.net.flat_params)


def test_made_from_anything_that_describes_it(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(solver_text())
    nets = [NET, tmp_path / "net.prototxt", str(tmp_path / "net.prototxt")]
    nets.append(parse_net(NET))
    nets.append(NetParams.from_text(NET))
    for source in nets:
        net = Net(source, seed=3)
        assert net.solver is None
        assert net.net.params["ip"][0].data.shape == (3, 2)
        with pytest.raises(SolverError, match="without a solver cannot be trained"):
            Net(source, phase=caffe.TEST).train(1)
    text = solver_text()
    solvers = [text, tmp_path / "solver.prototxt", parse_solver(text), SolverParams.from_text(text)]
    for source in solvers:
        net = Net(source)
        net.set_training_data(blobs_of_three())
        net.train(1)
        assert net.iter == 1


def test_weights_go_out_and_in(tmp_path):
    one, two = Net(NET, seed=1), Net(NET, seed=2)
    assert not one.get_weights().allclose(two.get_weights())
    two.set_weights(one.get_weights())
    assert one.get_weights().allclose(two.get_weights(), 0, 0)
    for name in ("w.caffemodel", "w.h5"):
        one.save(tmp_path / name)
        assert Net(NET, tmp_path / name).get_weights().allclose(one.get_weights(), 0, 0)
        three = Net(NET, seed=3)
        three.load(tmp_path / name)
        assert three.get_weights().allclose(one.get_weights(), 0, 0)


def test_a_caffemodel_is_a_net_with_its_weights(tmp_path):
    path = tmp_path / "net.caffemodel"
    net = Net(NET, seed=1)
    net.save(path)
    data, _ = blobs_of_three(5)
    again = Net(path)
    assert [layer.name for layer in again.described.layer] == [
        layer.name for layer in net.described.layer
    ]
    for inputs in ({"data": data}, {"data": data, "label": np.zeros(5)}):
        expected, found = net.forward(inputs), again.forward(inputs)
        assert list(found) == list(expected)
        assert all(np.array_equal(found[name], expected[name]) for name in expected)
    other = Net(path, Net(NET, seed=2).get_weights())
    assert not np.allclose(other.forward({"data": data})["ip"], net.forward({"data": data})["ip"])


def test_each_test_net_has_its_own_data():
    """One solver, two test nets: of other stages, with other outputs and batch sizes."""
    net = (
        NET
        + """
    layer { name: "scores" type: "Softmax" bottom: "ip" top: "scores" include { stage: "more" } }
    """
    )
    text = solver_text(net, test_interval=9, test_iter=1)
    text += ' test_iter: 1 test_state: {} test_state: { stage: "more" }'
    trained = Net(text)
    trained.set_training_data(blobs_of_three())
    trained.set_validation_data(blobs_of_three(20, 1))
    trained.set_validation_data(blobs_of_three(30, 2), net=1)
    trained.train(20)
    first, second = trained.test(net=0), trained.test(net=1)
    assert set(first) == set(second) == {"accuracy", "loss"}
    assert first["loss"] != second["loss"]
    assert set(trained._nets.tests[1].net.outputs) == {"accuracy", "loss", "scores"}
    with pytest.raises(SpecError, match="there is no test net 2, there are 2"):
        trained.test(net=2)


def test_testing_sees_every_update_and_leaves_training_alone():
    one, two = Net(solver_text()), Net(solver_text())
    for net in (one, two):
        net.set_training_data(blobs_of_three())
        net.set_validation_data(blobs_of_three(51, 1))
    first = one.test()
    for _ in range(5):
        one.train(1)
        one.test(2)
        one.forward(blobs_of_three(3))
    two.train(5)
    assert one.get_weights().allclose(two.get_weights(), 0, 0)
    assert one.test()["loss"] < first["loss"]


def test_what_the_solver_says_about_testing_and_snapshots_is_left_to_the_caller(tmp_path, capfd):
    more = {
        "display": 1,
        "snapshot": 1,
        "snapshot_prefix": f'"{tmp_path}/s"',
        "test_iter": 1,
    }
    net = Net(solver_text(**more, test_interval=1))
    net.set_training_data(blobs_of_three())
    net.train(2)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert net.settings is not None
    assert net.settings.snapshot == 1


def test_weights_named_by_the_solver_are_loaded(tmp_path):
    first = Net(NET, seed=9)
    first.save(tmp_path / "w.caffemodel")
    text = solver_text(weights=f'"{tmp_path}/w.caffemodel"')
    assert Net(text).get_weights().allclose(first.get_weights(), 0, 0)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.prototxt", "nowhere.prototxt: no such file or folder"),
        ("a" * 300, "a: no such file or folder"),
        ("a" * 300 + ".onnx", "a.onnx: no such file"),
        (Path("nowhere.prototxt"), "nowhere.prototxt: no such file or folder"),
        (7, "a Net cannot be made from this int: give a net or a solver"),
        ("layer { name: 'x' type: 'Convolutoin' }", "Convolutoin"),
        ("base_lr: 0.1 lr_policy: 'fixed' typo: 3", "typo"),
        ("layer { nam: 'x' }", "nam"),
    ],
)
def test_what_describes_no_net(source, message):
    with pytest.raises(SparkNetError, match=message) as caught:
        Net(source)
    assert "\n" not in str(caught.value)


def test_a_solver_has_its_own_phases():
    with pytest.raises(SpecError, match="phase, level and stages are for a net alone"):
        Net(solver_text(), phase=caffe.TEST)


def test_levels_and_stages_choose_layers():
    net = (
        NET
        + """
    layer { name: "a" type: "Softmax" bottom: "ip" top: "a" include { stage: "more" } }
    layer { name: "b" type: "Softmax" bottom: "ip" top: "b" include { min_level: 2 } }
    """
    )
    assert not {"a", "b"} & set(Net(net).net.blobs)
    assert {"a", "b"} <= set(Net(net, level=2, stages=["more"]).net.blobs)


def test_starts_with_weights_in_memory():
    weights = Net(NET, seed=1).get_weights()
    assert Net(NET, weights).get_weights().allclose(weights, 0, 0)
    assert Net(solver_text(random_seed=7), weights).get_weights().allclose(weights, 0, 0)


def test_nets_of_the_first_generation():
    text = """
    layers { name: "mnist" type: DATA top: "data" top: "label"
      data_param { source: "nowhere" scale: 0.5 batch_size: 4 } }
    layers { name: "ip" type: INNER_PRODUCT bottom: "data" top: "ip"
      inner_product_param { num_output: 3 } }
    """
    net = Net(text)
    net.set_validation_data((np.full((4, 1, 2, 2), 3, np.uint8), np.arange(4)))
    net.fill()
    np.testing.assert_array_equal(net.net.blobs["data"].data, np.full((4, 1, 2, 2), 1.5))


def test_weights_that_do_not_fit_are_named(tmp_path):
    Net(NET).save(tmp_path / "w.caffemodel")
    other = NET.replace("num_output: 3", "num_output: 4")
    with pytest.raises(WeightsError, match="layer 'ip'"):
        Net(other, tmp_path / "w.caffemodel")
    with pytest.raises(WeightsError, match="layer 'ip': parameter 0 is 3 x 2, in the net it is 4"):
        Net(other).set_weights(Net(NET).get_weights())


def test_a_net_says_what_it_is():
    assert repr(Net("name: 'n'" + NET)) == "<Net 'n', inputs: data, label>"
    assert repr(Net(solver_text(type='"Adam"'))) == "<Adam Net '', inputs: data, label>"


def test_a_net_pickles():
    """Weights, seeds and files; tests/training/checkpoints/test_saved.py has the rest."""
    net = Net(NET, seed=3)
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(again.get_weights().flat, net.get_weights().flat)
    assert (repr(again), again.settings) == (repr(net), None)


def test_seeds():
    def weights(**how):
        return Net(solver_text() if "solver" in how else NET, seed=how.get("seed")).get_weights()

    assert weights(seed=1).allclose(weights(seed=1), 0, 0)
    assert not weights(seed=1).allclose(weights(seed=2))
    assert weights(solver=1).allclose(weights(solver=1), 0, 0)
    assert not weights(solver=1).allclose(weights(solver=1, seed=5))
    caffe.set_random_seed(3)
    first = weights()
    caffe.set_random_seed(3)
    assert weights().allclose(first, 0, 0)


def test_a_copy_has_weights_of_its_own():
    net = Net(solver_text())
    net.set_training_data(blobs_of_three())
    net.train(3)
    before = np.array(net.get_weights().flat)
    other = net.copy()
    assert np.array_equal(other.get_weights().flat, before)
    other.set_training_data(blobs_of_three())
    other.train(2)
    assert np.array_equal(net.get_weights().flat, before)
    assert not np.array_equal(other.get_weights().flat, before)
    assert (net.iter, other.iter) == (3, 2)
    net.train(1)
    assert net.forward(blobs_of_three(8))["loss"] != other.forward(blobs_of_three(8))["loss"]


def test_notebooks_show_the_layers():
    from sparknet import models
    from sparknet.dsl import NetParams

    described = models.net("lenet")
    assert isinstance(described, NetParams)
    for shown in (described._repr_html_(), Net(models.solver("lenet"), seed=1)._repr_html_()):
        left = '<td style="text-align:left">'
        assert f"{left}conv1</td>{left}Convolution</td>" in shown
        assert '<td style="text-align:right">25,050</td>' in shown
        assert "431,080 parameters" in shown


def test_a_loss_that_is_no_number_is_told_once():
    from sparknet.dsl import EuclideanLoss, LinearLayer, NetParams, RDDLayer, SolverParams
    from sparknet.net.origin import LossWarning

    net = NetParams(
        "lines",
        RDDLayer("data", shape=[4, 2]),
        RDDLayer("label", shape=[4, 2]),
        LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
        EuclideanLoss("loss", ["ip", "label"]),
    )
    lost = Net(SolverParams(net=net, base_lr=1e30, lr_policy="fixed"))
    lost.set_training_data({"data": np.ones((8, 2)), "label": np.ones((8, 2))})
    with pytest.warns(LossWarning) as told:
        losses = [lost.train(5), lost.train(1)]
    assert not np.isfinite(losses).any()
    (said,) = [str(one.message) for one in told]
    assert re.match(r"iteration [12]: the loss is (inf|nan), and .*; a smaller base_lr", said)
    lost = Net(SolverParams(net=net, base_lr=0.1, lr_policy="fixed"))
    lost.set_training_data({"data": np.ones((8, 2)), "label": np.ones((8, 2))})
    lost.net.params["ip"][1].data[1] = np.nan
    with pytest.warns(LossWarning, match="0: the loss is nan, and layer 'ip': parameter 1 holds n"):
        lost.train(1)


def test_batches_of_records_of_one_shape_share_a_pass():
    described = NetParams("n", RDDLayer("data", [8, 4]), LinearLayer("ip", "data", num_outputs=3))
    fed, rows = Net(described).tested, np.ones((2, 4), np.float32)
    passes = [
        fed.batch_pass({"data": values}, outputs)[0]
        for values, outputs in [(rows, None)] * 3 + [(rows[:1], None), (rows, ["data"])]
    ]
    assert passes[1] is passes[2] is passes[3]
    assert passes[3] is not passes[4]


def test_a_repeated_pass_sees_every_change(monkeypatch):
    """Batches of one shape run in one call of the engine, until the net changes."""
    net = Net(
        NetParams(
            "small",
            RDDLayer("data", [2, 3]),
            RDDLayer("label", [2]),
            LinearLayer("one", "data", num_outputs=4),
            ActivationLayer("relu", "one"),
            LinearLayer("two", "relu", num_outputs=2),
            SoftmaxWithLoss("loss", ["two", "label"]),
        ),
        seed=1,
    )
    rng, runtime = np.random.default_rng(2), net.net._runtime

    def expected(records):
        (w1, b1), (w2, b2) = ((p.data for p in net.net.params[name]) for name in ("one", "two"))
        return np.maximum(records @ w1.T + b1, 0) @ w2.T + b2

    def check(rows, quick):
        records, calls = rng.normal(size=(rows, 3)).astype(np.float32), []
        with monkeypatch.context() as patch:
            forward = runtime.forward
            patch.setattr(runtime, "forward", lambda *a: (calls.append(a), forward(*a))[1])
            scores = net.forward({"data": records}, ["two"])["two"]
        assert scores == pytest.approx(expected(records), abs=1e-6)
        assert bool(calls) != quick

    check(2, quick=False)
    check(2, quick=True)
    net.net.params["one"][0].data[...] *= 3  # weights change, shapes do not
    check(2, quick=True)
    for rows in (5, 2):
        check(rows, quick=False)
        check(rows, quick=True)
    labelled = {"data": np.ones((2, 3), "f4"), "label": np.array([1, 0])}
    assert net.forward(labelled)["loss"] > 0
    check(2, quick=False)
    assert not net.net.blobs["label"].data.any()
    seen: list[int] = []
    net.net.after_forward(seen.append)
    check(2, quick=False)
    assert len(seen) == len(net.net.layers)


def test_a_repeated_pass_with_a_layer_in_python():
    text = """
    layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 } } }
    layer { name: "ten" type: "Python" bottom: "data" top: "ten"
      python_param { module: "tests.caffe.user_layers" layer: "TimesTen" } }
    """
    net = Net(parse_net(text))
    for value in (1.0, 2.0, 3.0):
        rows = np.full((1, 3), value, np.float32)
        assert net.forward({"data": rows})["ten"].tolist() == [[10 * value] * 3]
