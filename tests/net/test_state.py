"""A net's state: its equal goes on from there, bit for bit, whatever its records are."""

import pickle

import numpy as np
import pytest

from sparknet import LinearLayer, Net, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import Dropout
from sparknet.errors import DataError
from sparknet.spark.rdd.net_home import restore, state_of

X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.float32)
NET = NetParams(
    "n",
    RDDLayer("data", shape=[8, 3]),
    RDDLayer("label", shape=[8]),
    Dropout("drop", "data"),
    LinearLayer("ip", "drop", num_outputs=2),
    SoftmaxWithLoss("loss", ["ip", "label"]),
)
SOLVER = SolverParams(net=NET, base_lr=0.1, lr_policy="step", stepsize=4, gamma=0.5, momentum=0.9)
RECORDS = [*zip(X, Y, strict=True)]
BATCHES = [(X[at : at + 7], Y[at : at + 7]) for at in range(0, 50, 7)]
KINDS = {
    "columns": lambda: (X, Y),
    "records": lambda: RECORDS,
    "batches": lambda: BATCHES,
    "an iterator of records": lambda: iter(RECORDS * 5),
    "an iterator of batches": lambda: iter(BATCHES * 5),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [0, 5, 25])
def test_its_equal_goes_on(kind, steps):
    first, second = Net(SOLVER, seed=1), Net(SOLVER, seed=2)
    first.set_training_data(KINDS[kind]())
    first.train(steps)
    state = pickle.loads(pickle.dumps(state_of(first)))
    second.set_training_data(KINDS[kind]())
    restore(second, state)
    losses = [net.train(5) for net in (first, second)]
    assert losses[0] == losses[1]
    assert (first.iter, first.taken) == (second.iter, second.taken) == (steps + 5, 8 * (steps + 5))
    for one, other in zip(
        [first.net.flat_params, *first.solver.flat_history],
        [second.net.flat_params, *second.solver.flat_history],
        strict=True,
    ):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_place_in_files_is_not_known():
    text = """net_param { layer { name: "data" type: "DummyData" top: "data"
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { value: 1 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 3 } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "data" top: "loss" } }"""
    net = Net(text + " base_lr: 0.1 lr_policy: 'fixed'")
    state_of(net)
    net.train(1)
    with pytest.raises(DataError, match="whose cursor is not known: call set_training_data"):
        state_of(net)
