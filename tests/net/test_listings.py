"""The listings of SparkNet's paper (Moritz et al., ICLR 2016), spelled in Python."""

import numpy as np
import pytest

from sparknet import (
    ActivationLayer,
    ConvLayer,
    LinearLayer,
    Max,
    Net,
    NetParams,
    PoolLayer,
    RDDLayer,
    ReLU,
    SoftmaxWithLoss,
    SolverParams,
    WeightCollection,
)
from sparknet.errors import SolverError
from sparknet.net.description import UsualSolverWarning


def listing_2() -> NetParams:
    """Return the net as the paper prints it, spelled in Python."""
    return NetParams(
        RDDLayer("data", shape=[16, 1, 8, 8]),
        RDDLayer("label", shape=[16, 1]),
        ConvLayer("conv1", ["data"], kernel=(3, 3), num_filters=4),
        PoolLayer("pool1", ["conv1"], pool=Max, kernel=(2, 2), stride=(2, 2)),
        LinearLayer("ip1", ["pool1"], num_outputs=8),
        ActivationLayer("relu1", ["ip1"], activation=ReLU),
        LinearLayer("ip2", ["relu1"], num_outputs=2),
        SoftmaxWithLoss("loss", ["ip2", "label"]),
    )


def test_the_listings_of_the_paper():
    """Listings 1 and 2: a net without a solver and a name is trained, tested, and gives weights."""
    images = np.random.default_rng(0).normal(size=(64, 1, 8, 8)).astype(np.float32)
    labels = (images.mean((1, 2, 3)) > 0).astype(np.float32)
    net = Net(listing_2(), seed=1)
    weights = net.get_weights()
    with pytest.warns(UsualSolverWarning, match=r"SGD with base_lr 0\.01 and momentum 0\.9"):
        net.set_training_data(zip(images[:48], labels[:48], strict=True))
    net.set_validation_data(zip(images[48:], labels[48:], strict=True))
    assert net.get_weights().allclose(weights, rtol=0, atol=0)
    solver = SolverParams(net=listing_2(), base_lr=0.01, momentum=0.9)
    other = Net(solver, seed=1)
    other.set_weights(weights)
    other.set_training_data((images[:48], labels[:48]))
    net.train(3)
    other.train(3)
    assert net.get_weights().allclose(other.get_weights(), rtol=0, atol=0)
    assert not net.get_weights().allclose(weights)
    assert net.test(1)["loss"] > 0
    net.set_weights(weights)
    outputs = net.forward({"data": images[:2]}, ["pool1", "ip2"])
    halves = [WeightCollection.of_arrays(outputs) / 2 for _ in range(2)]
    total = sum(halves)
    assert isinstance(total, WeightCollection)
    assert list(total) == ["pool1", "ip2"]
    np.testing.assert_array_equal(total["pool1"][0].numpy(), outputs["pool1"])


def test_a_net_without_a_loss_is_given_data_to_run():
    net = Net(NetParams(RDDLayer("data", [4, 2]), LinearLayer("ip", "data", num_outputs=1)))
    net.set_training_data(np.ones((8, 2)))
    assert net.solver is None
    with pytest.raises(SolverError, match="without a solver cannot be trained"):
        net.train(1)
    with pytest.raises(SolverError, match="the solver has no lr_policy"):
        Net(SolverParams(net=listing_2(), base_lr=1).but(lr_policy=None)).train(1)


def test_a_buffer_of_weights_is_not_left_for_another():
    net = Net(listing_2())
    assert net.flat_weights is not None
    with pytest.raises(SolverError, match="without a solver cannot be trained"):
        Net(listing_2(), net.flat_weights).train(1)
