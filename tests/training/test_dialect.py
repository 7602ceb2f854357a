"""Training in a fork's dialect: the workers' nets have it, and the result is a net in it."""

import numpy as np
import pytest

from sparknet import Net
from sparknet.errors import LayerError, SettingError, SpecError
from sparknet.training import simulate, train

NET = """
layer { name: "in" type: "Input" top: "x" top: "label"
  input_param { shape { dim: 4 dim: 2 } shape { dim: 4 } } }
layer { name: "b" type: "BN" bottom: "x" top: "y" }
layer { name: "ip" type: "InnerProduct" bottom: "y" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = f"net_param {{ {NET} }} base_lr: 0.1 lr_policy: 'fixed' random_seed: 1"


def points():
    x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    return {"x": x, "label": (x[:, 0] > x[:, 1]).astype(np.float32)}


@pytest.mark.parametrize(("dialect", "blobs"), [("segnet", 2), ("pspnet", 4)])
@pytest.mark.parametrize("with_workers", [train, simulate])
def test_the_nets_of_all_workers(with_workers, dialect, blobs):
    trained = with_workers(SOLVER, points(), workers=2, steps=4, threads=1, dialect=dialect)
    assert len(trained.weights["b"]) == len(trained.net.net.params["b"]) == blobs
    same = train(Net(SOLVER, dialect=dialect), points(), workers=2, steps=4, threads=1)
    np.testing.assert_array_equal(trained.weights.flat, same.weights.flat)


def test_refusals():
    with pytest.raises(LayerError, match="forks mean different things"):
        train(SOLVER, points(), steps=1)
    with pytest.raises(SpecError, match="unknown dialect 'klingon'"):
        train(SOLVER, points(), steps=1, dialect="klingon")
    with pytest.raises(SettingError, match="give dialect='segnet' to Net itself"):
        train(Net(SOLVER, dialect="segnet"), points(), steps=1, dialect="segnet")
