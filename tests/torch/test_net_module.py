"""Nets as modules of PyTorch."""

import copy
import io

import numpy as np
import pytest

import sparknet
import sparknet.caffe as caffe
from sparknet.errors import LayerError, SpecError
from sparknet.models.cifar10 import cifar10_full
from sparknet.models.lenet import net as lenet
from sparknet.models.squeezenet import net as squeezenet
from sparknet.proto import parse_net
from sparknet.torch import module
from tests.caffe.gradient import input_layer
from tests.torch.test_engine import NET

WITHOUT_DROPOUT = NET.replace('type: "Dropout"', 'type: "TanH"')


@pytest.fixture(autouse=True)
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def net_of(text, phase=caffe.TRAIN):
    return caffe.Net.from_proto(parse_net(text), phase, seed=3)


def test_the_names_and_the_numbers_are_the_nets(torch):
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


def test_weights_are_copies_or_the_nets_own(torch):
    net = net_of(WITHOUT_DROPOUT)
    copied, shared = module(net), module(net, share=True)
    net.params["ip"][1].data[...] = 5
    assert not copied.get_parameter("ip.1").any()
    with torch.no_grad():
        shared.get_parameter("ip.1").add_(1)
    assert (net.params["ip"][1].data == 6).all()


def test_batches_of_another_size_and_outputs_by_name(torch):
    text = input_layer("x", (2, 3)) + (
        'layer { name: "a" type: "Power" bottom: "x" top: "a" power_param { scale: 2 } }'
        'layer { name: "b" type: "Reduction" bottom: "x" top: "b" reduction_param { axis: 1 } }'
    )
    made = module(net_of(text))
    found = made(torch.ones(5, 3))
    assert sorted(found) == ["a", "b"]
    assert found["a"].shape == (5, 3)
    assert found["b"].tolist() == [3.0] * 5


def test_statistics_are_buffers_and_shared_weights_are_one(torch):
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
def test_models_of_the_zoo(model, torch):
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


def test_a_module_can_be_exported(torch):
    text = WITHOUT_DROPOUT.replace("SoftmaxWithLoss", "Softmax").replace(
        'bottom: "ip" bottom: "label"', 'bottom: "ip"'
    )
    net = net_of(text.replace(input_layer("label", (4,)), ""), caffe.TEST)
    data = np.random.default_rng(0).normal(size=(4, 3, 12, 12)).astype(np.float32)
    exported = torch.export.export(module(net).eval(), (torch.from_numpy(data),))
    got = exported.module()(torch.from_numpy(data)).detach()
    np.testing.assert_allclose(got, net.forward(data=data)["loss"], rtol=1e-4, atol=1e-6)


LAYERS = """
    layer { name: "conv" type: "Convolution" bottom: "x" top: "conv" convolution_param {
      num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
    layer { name: "lrn" type: "LRN" bottom: "conv" top: "lrn"
      lrn_param { local_size: 3 alpha: 0.1 } }
    layer { name: "near" type: "LRN" bottom: "lrn" top: "near"
      lrn_param { local_size: 3 alpha: 0.1 norm_region: WITHIN_CHANNEL } }
    layer { name: "largest" type: "Pooling" bottom: "near" top: "largest"
      pooling_param { kernel_size: 2 stride: 3 } }
    layer { name: "mean" type: "Pooling" bottom: "near" top: "mean"
      pooling_param { kernel_size: 2 stride: 3 pool: AVE } }
    layer { name: "both" type: "Eltwise" bottom: "largest" bottom: "mean" top: "both"
      eltwise_param { operation: PROD } }
    layer { name: "drop" type: "Dropout" bottom: "both" top: "both" }
    layer { name: "ip" type: "InnerProduct" bottom: "both" top: "ip" inner_product_param {
      num_output: 5 weight_filler { type: "xavier" } } }
"""
"""What exporters have got wrong: windows that reach past the image, sums over channels."""
LOSS = (
    input_layer("label", (4,))
    + 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }'
)
LSTM = (
    input_layer("x", (3, 2, 4))
    + input_layer("cont", (3, 2))
    + """
    layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param {
      num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "ip" type: "InnerProduct" bottom: "h" top: "y" inner_product_param {
      num_output: 2 axis: 2 weight_filler { type: "xavier" } } }
"""
)


def pictures(torch, count=4):
    return torch.from_numpy(np.random.default_rng(3).normal(size=(count, 3, 6, 6))).float()


def steps(torch, streams=2):
    marks = torch.ones(3, streams)
    marks[0] = 0
    values = np.random.default_rng(4).normal(size=(3, streams, 4))
    return torch.from_numpy(values).float(), marks


def predicting(text=LAYERS):
    """A net whose statistics have seen something."""
    net = net_of(input_layer("x", (4, 3, 6, 6)) + text, caffe.TEST)
    net.params["bn"][1].data[...], net.params["bn"][2].data[...] = 1, 1
    return net


def test_the_mode_is_that_of_the_phase_until_another_is_set(torch):
    """Dropout drops and BatchNorm takes the batch's statistics in training alone."""
    text = input_layer("x", (4, 3, 6, 6)) + LAYERS + LOSS
    net = net_of(text)
    made, data = module(net), pictures(torch)
    label = torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert made.training
    assert made(data, label) != made(data, label)
    assert float(made.get_buffer("bn.2")) == pytest.approx(1.999)
    made.eval()
    assert made(data, label) == made(data, label)
    assert float(made.get_buffer("bn.2")) == pytest.approx(1.999)
    tested = net_of(text, caffe.TEST)
    for name, blobs in tested.params.items():
        for number, blob in enumerate(blobs):
            blob.data[...] = made.state_dict()[f"{name}.{number}"].reshape(blob.shape)
    want = tested.forward(x=data.numpy(), label=label.numpy())["loss"]
    assert float(made(data, label)) == pytest.approx(float(want), rel=1e-5)
    other = module(tested)
    assert not other.training
    assert float(other(data, label)) == pytest.approx(float(want), rel=1e-5)
    other.train()
    assert other(data, label) != other(data, label)


def test_copies_and_state_dicts(torch):
    made, data = module(predicting()), pictures(torch)
    want = made(data)
    copied = copy.deepcopy(made)
    with torch.no_grad():
        for one in made.parameters():
            one.zero_()
    assert torch.equal(copied(data), want)
    made.load_state_dict(copied.state_dict(), strict=True)
    assert torch.equal(made(data), want)


@pytest.mark.parametrize(("kind", "least"), [("bfloat16", 0.05), ("float16", 5e-3)])
def test_other_types_of_numbers(kind, least, torch):
    made, data = module(predicting()), pictures(torch)
    want = made(data)
    other = made.to(getattr(torch, kind))
    found = other(data.to(getattr(torch, kind)))
    assert found.dtype == getattr(torch, kind)
    assert float((found - want).abs().max()) < least * float(want.abs().max())


def test_gradients_in_float64(torch):
    label = torch.tensor([0.0, 1.0, 2.0, 3.0])
    text = LAYERS.replace("operation: PROD", "operation: PROD stable_prod_grad: true") + LOSS
    graded(torch, predicting(text), (pictures(torch),), (label,))
    values, marks = steps(torch)
    graded(torch, net_of(LSTM, caffe.TEST), (values,), (marks,))


def graded(torch, net, varied, fixed):
    made = module(net).double()
    names = [name for name, _ in made.named_parameters()]

    def computed(*given):
        inputs, params = given[: len(varied)], given[len(varied) :]
        made.forget()
        params_by_name = dict(zip(names, params, strict=True))
        return torch.func.functional_call(made, params_by_name, (*inputs, *fixed))

    wide = [one.detach().double().requires_grad_() for one in (*varied, *made.parameters())]
    assert torch.autograd.gradcheck(computed, tuple(wide), fast_mode=True)


@pytest.mark.parametrize("how", ["export", "trace"])
def test_what_is_exported_takes_batches_of_other_sizes(how, torch):
    for net, axis, given, other in [
        (predicting(), 0, (pictures(torch),), (pictures(torch, 7),)),
        (net_of(LSTM, caffe.TEST), 1, steps(torch), steps(torch, 5)),
    ]:
        made = module(net)
        if how == "export":
            size = torch.export.Dim("size")
            axes = {"inputs": tuple({axis: size} for _ in given)}
            found = torch.export.export(made, given, dynamic_shapes=axes).module()
        else:
            found = torch.jit.trace(made, given)
            file = io.BytesIO()
            torch.jit.save(found, file)  # a file holds no Python
        for one in (given, other):
            torch.testing.assert_close(found(*one), made(*one), rtol=1e-4, atol=1e-6)
            made.forget()


@pytest.mark.parametrize("dynamo", [True, False], ids=["export", "trace"])
def test_onnxruntime_computes_the_same(dynamo, torch, tmp_path):
    """By both of torch's exporters: both leave out a divisor of avg_pool2d without a word."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript" if dynamo else "onnx")
    file = str(tmp_path / "net.onnx")
    for net, given, other in [
        (predicting(), (pictures(torch),), (pictures(torch, 7),)),
        (net_of(LSTM, caffe.TEST), steps(torch), steps(torch)),
    ]:
        made = module(net)
        names = list(net.inputs)
        if dynamo:
            free = ({0: torch.export.Dim("size")},) if len(given) == 1 else ({}, {})
            axes = {"dynamic_shapes": {"inputs": free}, "verbose": False}
        else:
            axes = {"dynamic_axes": {"x": {0: "size"}} if len(given) == 1 else {}}
        torch.onnx.export(made, given, file, dynamo=dynamo, input_names=names, **axes)
        session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
        for one in (given, other):
            fed = {name: value.numpy() for name, value in zip(names, one, strict=True)}
            (found,) = session.run(None, fed)
            np.testing.assert_allclose(found, made(*one).detach(), rtol=1e-4, atol=1e-5)
            made.forget()


def test_gone_wrong(torch):
    text = input_layer("x", (2, 4))
    text += 'layer { name: "l" type: "BN" bottom: "x" top: "y" bn_param { frozen: true } }'
    with pytest.raises(LayerError, match="layer 'l': BN: has no translation into PyTorch"):
        module(net_of(text))
    made = module(net_of(text.replace("BN", "TanH")))
    with pytest.raises(SpecError, match="input 'x' of the net is not given"):
        made()
    with pytest.raises(SpecError, match="the net has 1 inputs; 2 are given"):
        made(torch.ones(2, 4), torch.ones(2, 4))
