"""A row of weight n trains as n equal rows do, whatever the loss."""

import numpy as np
import pytest

from sparknet import train
from sparknet.errors import DataError, LayerError, SettingError, SpecError
from sparknet.layers import LAYERS
from sparknet.loaders.records import ArrayRecords, ClassesWarning
from sparknet.net import Net
from sparknet.net.weighting import RowWeights, weighted

pandas = pytest.importorskip("pandas")

WEIGHTS = np.array([1, 2, 0, 3, 1, 1, 0, 4])
ROWS, EQUAL = len(WEIGHTS), int(WEIGHTS.sum())

SCORES = 'bottom: "ip" bottom: "label"'
LOSSES = {
    "SoftmaxWithLoss": SCORES,
    "HingeLoss": SCORES,
    "HingeLoss L2": f"{SCORES} hinge_loss_param {{ norm: L2 }}",
    "MultinomialLogisticLoss": 'bottom: "prob" bottom: "label"',
    "InfogainLoss": f'{SCORES} bottom: "matrix"',
    "SigmoidCrossEntropyLoss": 'bottom: "ip" bottom: "targets"',
    "EuclideanLoss": 'bottom: "ip" bottom: "targets"',
    "SmoothL1Loss": 'bottom: "ip" bottom: "targets"',
    "L1Loss": 'bottom: "ip" bottom: "targets"',
    "ContrastiveLoss": 'bottom: "ip" bottom: "flat" bottom: "label"',
}
LAYERS_BEFORE = {
    "MultinomialLogisticLoss": """
      layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }""",
    "InfogainLoss": """
      layer { name: "matrix" type: "DummyData" top: "matrix" dummy_data_param {
        shape { dim: [1, 1, 3, 3] } data_filler { type: "constant" value: 0.5 } } }""",
    "ContrastiveLoss": """
      layer { name: "flat" type: "InnerProduct" bottom: "data" top: "flat"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }""",
}


def solver(loss: str, rows: int) -> str:
    kind = loss.split()[0]
    more = LAYERS_BEFORE.get(kind, "")
    return f"""net_param {{ name: "rows"
      layer {{ name: "data" type: "Input" top: "data" top: "label" top: "targets" input_param {{
        shape {{ dim: [{rows}, 2] }} shape {{ dim: {rows} }} shape {{ dim: [{rows}, 3] }} }} }}
      layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} }}
      {more}
      layer {{ name: "loss" type: "{kind}" {LOSSES[loss]} top: "loss" }} }}
      base_lr: 0.1 momentum: 0.9 weight_decay: 0.01 lr_policy: "fixed" random_seed: 1"""


def rows():
    random = np.random.default_rng(0)
    return {
        "data": random.normal(size=(ROWS, 2)).astype(np.float32),
        "label": random.integers(0, 2, ROWS),
        "targets": random.integers(0, 2, (ROWS, 3)).astype(np.float32),
    }


def check(net, equal, given, weights=WEIGHTS):
    """Five steps with weights, and with every row as often as its weight says."""
    trained, names = weighted(net)
    number = {name: weights * (len(weights) / weights.sum()) for name in names}
    trained.set_training_data({**given, **number})
    equal.set_training_data({name: np.repeat(v, weights, 0) for name, v in given.items()})
    before = net.get_weights()
    for _ in range(5):
        assert trained.train(1) == pytest.approx(equal.train(1), rel=1e-5)
    found, wanted = trained.get_weights(), equal.get_weights()
    assert found.allclose(wanted, rtol=1e-4, atol=1e-6)
    assert not found.allclose(before, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_is_so_many_rows(loss):
    net = Net(solver(loss, ROWS))
    check(net, Net(solver(loss, EQUAL), net.get_weights()), rows())


COMPOSED = """net_param {{ name: "rows"
  layer {{ name: "data" type: "Input" top: "data" top: "targets"
    input_param {{ shape {{ dim: [{0}, 2] }} shape {{ dim: [{0}, 3] }} }} }}
  layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} }}
  layer {{ name: "away" type: "Eltwise" bottom: "ip" bottom: "targets" top: "away"
    eltwise_param {{ coeff: [1, -1] }} }}
  layer {{ name: "sum" type: "Reduction" bottom: "away" top: "loss" loss_weight: {1}
    reduction_param {{ operation: SUMSQ }} }} }} base_lr: 0.1 lr_policy: "fixed" random_seed: 1"""


def test_a_loss_of_several_layers():
    """Its gradients are weighted; its sum is that of all rows, as the last layer is no loss."""
    given = {name: values for name, values in rows().items() if name != "label"}
    net = Net(COMPOSED.format(ROWS, 1 / ROWS))
    equal = Net(COMPOSED.format(EQUAL, 1 / EQUAL), net.get_weights())
    trained, (name,) = weighted(net)
    trained.set_training_data({**given, name: WEIGHTS * (ROWS / EQUAL)})
    equal.set_training_data({name: np.repeat(v, WEIGHTS, 0) for name, v in given.items()})
    trained.train(5)
    equal.train(5)
    assert trained.get_weights().allclose(equal.get_weights(), rtol=1e-4, atol=1e-6)


SEQUENCES = """net_param {{ name: "words"
  layer {{ name: "in" type: "Input" top: "data" top: "cont" top: "label" input_param {{
    shape {{ dim: [3, {0}, 2] }} shape {{ dim: [3, {0}] }} shape {{ dim: [3, {0}] }} }} }}
  layer {{ name: "lstm" type: "LSTM" bottom: "data" bottom: "cont" top: "lstm"
    recurrent_param {{ num_output: 4 weight_filler {{ type: "uniform" min: -0.5 max: 0.5 }} }} }}
  layer {{ name: "ip" type: "InnerProduct" bottom: "lstm" top: "ip"
    inner_product_param {{ num_output: 3 axis: 2 weight_filler {{ type: "xavier" }} }} }}
  layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
    softmax_param {{ axis: 2 }} }} }} base_lr: 0.1 lr_policy: "fixed" random_seed: 1"""


def test_records_side_by_side_behind_time():
    random = np.random.default_rng(0)
    weights = np.array([2, 1, 3, 0])
    given = {
        "data": random.normal(size=(4, 3, 2)).astype(np.float32),
        "cont": np.tile([0.0, 1.0, 1.0], (4, 1)),
        "label": random.integers(0, 3, (4, 3)),
    }
    net = Net(SEQUENCES.format(4))
    check(net, Net(SEQUENCES.format(6), net.get_weights()), given, weights)


def test_the_net_for_testing_stays():
    trained, _ = weighted(Net(solver("SoftmaxWithLoss", ROWS)))
    assert [layer.name for layer in trained.tested.described.layer] == ["data", "ip", "loss"]


def test_what_has_no_loss():
    text = solver("SoftmaxWithLoss", ROWS).replace("SoftmaxWithLoss", "Accuracy")
    with pytest.raises(SpecError, match="net 'rows' has no loss whose records could have weights"):
        weighted(Net(text))


def test_records_that_were_merged():
    joined = """layer { name: "all" type: "Reshape" bottom: "ip" top: "all"
      reshape_param { shape { dim: [4, -1] } } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "all" bottom: "all" top: "loss" }"""
    head, _, _ = solver("EuclideanLoss", ROWS).partition('layer { name: "loss"')
    text = f'{head} {joined} }} base_lr: 0.1 lr_policy: "fixed"'
    with pytest.raises(SpecError, match=r"layer 'loss' reads 'all' .* no axis of their own"):
        weighted(Net(text))


def test_weights_of_another_number():
    text = """layer { name: "in" type: "Input" top: "x" top: "w"
      input_param { shape { dim: [4, 2] } shape { dim: 3 } } }
      layer { name: "rw" type: "RecordWeights" bottom: "x" bottom: "w" top: "y" }"""
    with pytest.raises(LayerError, match=r"layer 'rw': .*4 x 2 needs a weight for each.*is 3"):
        _ = Net(text).net
    assert LAYERS["RecordWeights"].is_view


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        ({"weight_column": "count"}, WEIGHTS),
        ({"class_weights": {1: 3, 0: 1}}, np.where(rows()["label"] == 1, 3, 1)),
        ({"weight_column": "count", "class_weights": {1: 3}}, WEIGHTS * (1 + 2 * rows()["label"])),
    ],
    ids=["rows", "classes", "both"],
)
def test_a_training_by_processes(given, weights):
    net = Net(solver("SoftmaxWithLoss", ROWS))
    data = pandas.DataFrame({**rows(), "data": [*rows()["data"]], "targets": [*rows()["targets"]]})
    trained = train(net, data.assign(count=WEIGHTS), validation=data, steps=5, **given)
    equal = Net(solver("SoftmaxWithLoss", int(weights.sum())), net.get_weights())
    equal.set_training_data({name: np.repeat(v, weights, 0) for name, v in rows().items()})
    equal.train(5)
    assert trained.weights.allclose(equal.get_weights(), rtol=1e-4, atol=1e-6)
    assert "record_weight" not in trained.net.inputs
    net.set_weights(trained.weights)
    net.set_validation_data(rows())
    assert trained.outcome.metrics["loss"] == pytest.approx(net.test()["loss"], rel=1e-5)


def test_balanced_classes():
    records = ArrayRecords(label=np.array([0, 1, 1, 1]))
    found = RowWeights(classes="balanced").added(records, ["w"], "label").take(slice(None))
    np.testing.assert_allclose(found["w"], [2, 2 / 3, 2 / 3, 2 / 3], rtol=1e-6)


def test_a_class_that_is_left_alone():
    with pytest.warns(ClassesWarning, match="class_weights leaves label 1 alone"):
        RowWeights(classes={0: 0}).by_label({0: 3, 1: 5})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"class_weights": {2: 5}}, "class_weights has label 2, which no training record has: .*0"),
        ({"class_weights": {0: 0, 1: 0}}, "the weights of the 8 training rows add up to 0"),
        ({"class_weights": "even"}, "class_weights is 'even': a dict of labels"),
        ({"weight_column": "cuont"}, "has no column 'cuont' for weights; did you mean 'count'"),
        ({"weight_column": "below"}, "column 'below' is -1 in a row: a weight must be finite"),
    ],
)
def test_what_is_no_weight(given, said):
    data = {**rows(), "count": WEIGHTS, "below": -np.ones(ROWS)}
    with pytest.raises((SettingError, DataError), match=said):
        train(solver("SoftmaxWithLoss", ROWS), data, steps=1, **given)
