"""SparkNet's names: what each compiles to."""

import pytest

import sparknet
from sparknet import dsl
from sparknet.dsl import (
    ActivationLayer,
    ConvLayer,
    LinearLayer,
    PoolLayer,
    RDDLayer,
    SoftmaxWithLoss,
)
from sparknet.dsl.listing import ACTIVATIONS
from sparknet.errors import LayerError
from sparknet.layers import LAYERS


def test_names_that_both_have_are_one():
    assert SoftmaxWithLoss is dsl.SoftmaxWithLoss
    assert sparknet.SoftmaxWithLoss is dsl.SoftmaxWithLoss


def test_rdd_layer():
    made = RDDLayer("data", shape=[5, 3], include="TRAIN")
    assert made.type == "Input"
    assert repr(made) == 'RDDLayer("data", shape=[5, 3], include=["TRAIN"])'


def test_windows():
    assert repr(ConvLayer("c", "x", kernel=(5, 3), stride=(2, 1), pad=1, num_filters=4)) == (
        'Convolution("c", ["x"], num_output=4, pad=1, weight_filler="xavier", '
        "kernel_h=5, kernel_w=3, stride_h=2, stride_w=1)"
    )
    cube = ConvLayer("c", "x", kernel=(3, 4, 5), num_filters=4).to_proto()
    assert list(cube.convolution_param.kernel_size) == [3, 4, 5]
    pool = PoolLayer("p", "x", pool="avg", kernel=(2, 3), pad=(1, 1)).to_proto().pooling_param
    assert (pool.pool, pool.kernel_h, pool.kernel_w, pool.pad) == (1, 2, 3, 1)
    with pytest.raises(LayerError, match=r"layer 'p': kernel_size: \(1, 2, 3\) is not \(height"):
        PoolLayer("p", "x", kernel=(1, 2, 3))


def test_choices():
    with pytest.raises(LayerError) as caught:
        PoolLayer("p", "x", pool="mx", kernel=2)
    assert str(caught.value) == (
        "layer 'p': pool: 'mx' is none of max, ave, avg, average, stochastic; did you mean 'max'?"
    )
    with pytest.raises(
        LayerError, match=r"layer 'a': activation: 'relo' is none of relu, .*'relu'"
    ):
        ActivationLayer("a", "x", activation="relo")
    with pytest.raises(LayerError, match="layer 'a': activation: 3 is none of"):
        ActivationLayer("a", "x", activation=3)


@pytest.mark.parametrize("word", sorted(ACTIVATIONS))
def test_activations_are_types(word):
    assert ACTIVATIONS[word] in LAYERS
    assert ActivationLayer("a", "x", activation=word.upper()).type == ACTIVATIONS[word]


def test_other_options_go_through():
    made = LinearLayer("ip", "x", num_outputs=2, weight_filler="xavier", bias_term=False)
    assert made.to_proto().inner_product_param.weight_filler.type == "xavier"
    with pytest.raises(LayerError, match="InnerProduct has no field 'wieght_filler'"):
        LinearLayer("ip", "x", num_outputs=2, wieght_filler="xavier")
    with pytest.raises(LayerError, match="layer 'ip': num_output: -1 does not fit uint32"):
        LinearLayer("ip", "x", num_outputs=-1)
