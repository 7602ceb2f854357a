"""Nets that start at zero, where no gradient comes: who is warned, and that it is true."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

from sparknet import (
    ConvLayer,
    Convolution,
    Eltwise,
    InnerProduct,
    LinearLayer,
    Net,
    NetParams,
    RDDLayer,
    ReLU,
    Sigmoid,
    SoftmaxWithLoss,
    SolverParams,
    train,
)
from sparknet.caffe import get_solver
from sparknet.caffe.training_checks import IdleWarning, _odd_settings, idle_layers
from sparknet.proto import caffe_pb2

DATA = RDDLayer("data", shape=[8, 1, 4, 4]), RDDLayer("label", shape=[8])
LOSS = SoftmaxWithLoss("loss", ["ip2", "label"])


def deep(**second):
    """Caffe's default everywhere: no filler."""
    return [
        Convolution("conv", "data", num_output=3, kernel_size=3),
        Sigmoid("s", "conv"),
        InnerProduct("ip1", "s", num_output=4),
        Sigmoid("r", "ip1", in_place=True),
        InnerProduct("ip2", "ip1", num_output=2, **second),
        LOSS,
    ]


def solver(*layers):
    return SolverParams(
        net=NetParams("n", *DATA, *layers),
        base_lr=0.1,
        lr_policy="fixed",
        max_iter=3,
        random_seed=1,
    )


def records():
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 64)
    return random.normal(size=(64, 1, 4, 4)).astype(np.float32) + labels[
        :, None, None, None
    ], labels


@pytest.mark.parametrize(
    ("layers", "idle"),
    [
        (deep(), ["conv", "ip1"]),
        (deep(weight_filler="xavier"), ["conv"]),
        (deep()[1:4], []),
        ([InnerProduct("ip2", "data", num_output=2), LOSS], []),
        ([*deep(lr_mult=[0, 0])], ["conv", "ip1"]),
        (
            [
                Convolution("a", "data", num_output=1, kernel_size=3, pad=1),
                Eltwise("sum", ["a", "data"]),
                Convolution("b", "sum", num_output=1, kernel_size=3, pad=1),
                Eltwise("sum2", ["b", "sum"]),
                InnerProduct("ip2", "sum2", num_output=2, weight_filler="xavier"),
                LOSS,
            ],
            [],
        ),
    ],
    ids=["all", "last is filled", "no loss", "one layer", "last is frozen", "residual"],
)
def test_which_layers_are_idle(layers, idle):
    if layers and layers[0].name == "s":
        layers = [Convolution("conv", "data", num_output=3, kernel_size=3), *layers]
    made = get_solver(solver(*layers))
    assert idle_layers(made.net) == idle


def test_idle_layers_do_not_move_and_others_do():
    """What the warning says, measured: after some steps their weights are still 0."""
    images, labels = records()
    for layers in (deep(), deep(weight_filler="xavier")):
        made = get_solver(solver(*layers))
        idle = idle_layers(made.net)
        made.net.blobs["data"].data[...], made.net.blobs["label"].data[...] = images[:8], labels[:8]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdleWarning)
            made.step(1)
        for name in ("conv", "ip1"):
            moved = bool(np.any(made.net.params[name][0].data))
            assert moved == (name not in idle), name


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("base_lr: 1 weight_decay: 2", "base_lr x weight_decay is 2"),
        ("base_lr: 1 clip_gradients: 0", "clip_gradients is 0, so no weight changes"),
        ("base_lr: 1 lr_policy: 'step' stepsize: 7", "'step' the rate is 0 from iteration 7 on"),
        ("base_lr: 1 lr_policy: 'multistep' stepvalue: 3", "the rate is 0 from iteration 3 on"),
        ("base_lr: 1 lr_policy: 'exp'", "the rate is 0 from iteration 1 on"),
        ("base_lr: 1 lr_policy: 'step' stepsize: 7 gamma: 10", "'step' the rate grows"),
        ("base_lr: 1 lr_policy: 'multistep' gamma: 0.1", "has no stepvalue: the rate stays"),
        ("base_lr: 1 lr_policy: 'inv' gamma: 1", "and power 0: by lr_policy 'inv' the rate stays"),
        ("base_lr: 1 warmup_iter: 9 max_iter: 8", "the rate never reaches base_lr"),
        ("base_lr: 1 lr_policy: 'step' stepsize: 7 gamma: 0.1 max_iter: 8", None),
        ("base_lr: 1 lr_policy: 'inv' gamma: 0.1 power: 0.75 weight_decay: 0.1", None),
    ],
)
def test_settings_that_no_training_wants(settings, says):
    (*told,) = _odd_settings(text_format.Parse(settings, caffe_pb2.SolverParameter()))
    assert [(says or "") in text for text in told] == [True] * bool(says)


def test_pycaffe_warns_once():
    made = get_solver(solver(*deep()))
    with pytest.warns(IdleWarning, match="layers 'conv', 'ip1' learn nothing") as caught:
        made.step(1)
    assert Path(caught[0].filename) == Path(__file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.step(1)


def test_nets_and_workers_warn():
    net = Net(solver(*deep()))
    net.set_training_data(records())
    with pytest.warns(IdleWarning, match="give each a weight_filler, such as xavier"):
        net.train(1)
    with pytest.warns(IdleWarning, match="'conv', 'ip1'"):
        train(solver(*deep()), records(), workers=1, steps=1)


def test_the_own_builders_learn():
    """ConvLayer and LinearLayer have a filler; a given one stays, in either form."""
    learning = solver(
        ConvLayer("conv", "data", kernel=3, num_filters=3),
        ReLU("r", "conv", in_place=True),
        LinearLayer("ip1", "conv", num_outputs=4),
        LinearLayer("ip2", "ip1", num_outputs=2),
        LOSS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained = train(learning, records(), workers=1, steps=40, seed=1)
    losses = [event["loss"] for event in trained.history if event["event"] == "round"]
    assert losses[-1] < 0.6 * losses[0]
    given = LinearLayer("a", "x", num_outputs=1, weight_filler="msra").to_proto()
    assert given.inner_product_param.weight_filler.type == "msra"
    whole = {"kernel_size": [3], "weight_filler": {"type": "gaussian"}}
    conv = ConvLayer("a", "x", kernel=3, num_filters=1, convolution_param=whole).to_proto()
    assert conv.convolution_param.weight_filler.type == "gaussian"
