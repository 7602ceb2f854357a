"""Nets as modules of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparknet
import sparknet.caffe as caffe
from sparknet.errors import LayerError, SpecError
from sparknet.models.cifar10_full.net import net as cifar10_full
from sparknet.models.lenet.net import net as lenet
from sparknet.models.squeezenet.net import net as squeezenet
from sparknet.proto import parse_net
from sparknet.torch import module
from tests.caffe.gradient import input_layer
from tests.torch.test_engine import NET

WITHOUT_DROPOUT = NET.replace('type: "Dropout"', 'type: "TanH"')


@pytest.fixture(autouse=True)
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def net_of(text: str, phase: int = caffe.TRAIN) -> Any:
    return caffe.Net.from_proto(parse_net(text), phase, seed=3)


def test_the_names_and_the_numbers_are_the_nets(torch: Any) -> None:
    net = net_of(WITHOUT_DROPOUT)
    made = module(net)
    assert list(made.state_dict()) == [
        f"{name}.{number}" for name in ("conv", "wide", "ip") for number in (0, 1)
    ]
    rng = np.random.default_rng(0)
    data = rng.normal(size=(4, 3, 12, 12)).astype(np.float32)
    label = np.array([0, 4, 2, 1], np.float32)
    net.forward(data=data, label=label)
    net.backward()
    loss = made(torch.from_numpy(data), label=torch.from_numpy(label))
    assert float(loss.detach()) == pytest.approx(float(net.blobs["loss"].data), rel=1e-5)
    loss.backward()
    for name, own in net.params.items():
        for number, blob in enumerate(own):
            got = made.get_parameter(f"{name}.{number}").grad
            np.testing.assert_allclose(got, blob.diff, rtol=1e-4, atol=1e-6)


def test_weights_are_copies_or_the_nets_own(torch: Any) -> None:
    net = net_of(WITHOUT_DROPOUT)
    copied, shared = module(net), module(net, share=True)
    net.params["ip"][1].data[...] = 5
    assert not copied.get_parameter("ip.1").any()
    with torch.no_grad():
        shared.get_parameter("ip.1").add_(1)
    assert (net.params["ip"][1].data == 6).all()


def test_batches_of_another_size_and_outputs_by_name(torch: Any) -> None:
    text = input_layer("x", (2, 3)) + (
        'layer { name: "a" type: "Power" bottom: "x" top: "a" power_param { scale: 2 } }'
        'layer { name: "b" type: "Reduction" bottom: "x" top: "b" reduction_param { axis: 1 } }'
    )
    made = module(net_of(text))
    found = made(torch.ones(5, 3))
    assert sorted(found) == ["a", "b"]
    assert found["a"].shape == (5, 3)
    assert found["b"].tolist() == [3.0] * 5


def test_statistics_are_buffers_and_shared_weights_are_one(torch: Any) -> None:
    inner = (
        'layer {{ name: "{}" type: "InnerProduct" bottom: "{}" top: "{}" param {{ name: "w" }} '
        'inner_product_param {{ num_output: 3 bias_term: false weight_filler {{ type: "xavier" }} '
        "}} }}"
    )
    text = input_layer("x", (4, 3)) + inner.format("one", "x", "y")
    text += inner.format("two", "y", "z") + (
        'layer { name: "bn" type: "BatchNorm" bottom: "z" top: "z" }'
    )
    net = net_of(text)
    made = module(net)
    assert [name for name, _ in made.named_parameters()] == ["one.0"]
    assert [name for name, _ in made.named_buffers()] == ["bn.0", "bn.1", "bn.2"]
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    net.forward(x=x)
    np.testing.assert_allclose(
        made(torch.from_numpy(x)).detach(), net.blobs["z"].data, rtol=1e-4, atol=1e-5
    )
    assert float(made.get_buffer("bn.2")) == net.params["bn"][2].data == 1


@pytest.mark.parametrize("model", [lenet, cifar10_full, squeezenet])
def test_models_of_the_zoo(model: Any, torch: Any) -> None:
    net = sparknet.Net(model(test_batch=2), phase=caffe.TEST, seed=1)
    made = module(net)
    inputs = {
        name: np.random.default_rng(2).random(net.net.blobs[name].shape, np.float32)
        for name in net.net.inputs
    }
    want = net.net.forward(**inputs)
    found = made(**{name: torch.from_numpy(values) for name, values in inputs.items()})
    found = found if isinstance(found, dict) else dict.fromkeys(want, found)
    for name, values in want.items():
        np.testing.assert_allclose(found[name].detach(), values, rtol=1e-3, atol=1e-5)


def test_a_module_can_be_exported(torch: Any) -> None:
    text = WITHOUT_DROPOUT.replace("SoftmaxWithLoss", "Softmax").replace(
        'bottom: "ip" bottom: "label"', 'bottom: "ip"'
    )
    net = net_of(text.replace(input_layer("label", (4,)), ""), caffe.TEST)
    data = np.random.default_rng(0).normal(size=(4, 3, 12, 12)).astype(np.float32)
    exported = torch.export.export(module(net).eval(), (torch.from_numpy(data),))
    got = exported.module()(torch.from_numpy(data)).detach()
    np.testing.assert_allclose(got, net.forward(data=data)["loss"], rtol=1e-4, atol=1e-6)


def test_gone_wrong(torch: Any) -> None:
    text = input_layer("x", (2, 4)) + 'layer { name: "l" type: "Mish" bottom: "x" top: "y" }'
    with pytest.raises(LayerError, match="layer 'l': Mish: has no translation into PyTorch"):
        module(net_of(text))
    made = module(net_of(text.replace("Mish", "TanH")))
    with pytest.raises(SpecError, match="input 'x' of the net is not given"):
        made()
    with pytest.raises(SpecError, match="the net has 1 inputs; 2 are given"):
        made(torch.ones(2, 4), torch.ones(2, 4))
