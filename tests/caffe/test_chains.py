"""What a convolution computes too in the test phase gives what the layers give one by one."""

import numpy as np
import pytest

from sparknet.caffe import TEST, Net, get_solver
from sparknet.native import set_threads, threads
from sparknet.proto import parse_net, parse_solver

INPUT = """
force_backward: true
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 2 dim: IN dim: 10 dim: 10 } } }
"""
CONV = """
layer { name: "NAME" type: "TYPE" bottom: "FROM" top: "TO"
        convolution_param { num_output: OUT kernel_size: 3 pad: 1 group: GROUP bias_term: BIAS
                            weight_filler { type: "xavier" } bias_filler { type: "uniform" } } }
"""
TAIL = """
layer { name: "pool" type: "Pooling" bottom: "top" top: "pool"
        pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
"""
LAYERS = {
    "bn": 'type: "BatchNorm" batch_norm_param { eps: 0.01 }',
    "scale": 'type: "Scale" scale_param { bias_term: true filler { type: "uniform" min: -1 max: 2 }'
    ' bias_filler { type: "uniform" min: -1 max: 1 } }',
    "plain scale": 'type: "Scale" scale_param { filler { type: "uniform" min: -1 max: 2 } }',
    "bias": 'type: "Bias" bias_param { filler { type: "uniform" min: -1 max: 1 } }',
    "relu": 'type: "ReLU"',
    "leak": 'type: "ReLU" relu_param { negative_slope: 0.1 }',
    "own bn": 'type: "BatchNorm" batch_norm_param { use_global_stats: false }',
}
CHAINS = (
    ("bn",),
    ("relu",),
    ("bn", "scale", "relu"),
    ("bn", "relu"),
    ("scale",),
    ("plain scale", "bias", "relu"),
    ("scale", "bn", "scale", "bias", "bn", "relu"),
    ("bn", "scale", "leak"),
    ("own bn", "scale", "relu"),
    ("bn", "relu", "scale"),
)


def conv(name: str, bottom: str, top: str, channels: int, kind: str, bias: bool) -> str:
    group = channels if kind == "deep" else 1
    words = {
        "NAME": name, "FROM": bottom, "TO": top, "OUT": str(channels), "GROUP": str(group),
        "TYPE": "DepthwiseConvolution" if kind == "deep" else "Convolution",
        "BIAS": "true" if bias else "false",
    }  # fmt: skip
    text = CONV
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def chain_net(
    chain: tuple[str, ...],
    in_place: bool,
    channels: int = 16,
    kind: str = "full",
    bias: bool = True,
) -> str:
    """A convolution, the layers of the chain, and one that reads what comes out."""
    text, blob = INPUT.replace("IN", str(channels)), "conv"
    text += conv("conv", "data", "top" if in_place else "conv", channels, kind, bias)
    blob = "top" if in_place else "conv"
    for number, name in enumerate(chain):
        last = number == len(chain) - 1
        top = "top" if in_place or last else f"b{number}"
        options = LAYERS[name]
        text += f'layer {{ name: "l{number}" bottom: "{blob}" top: "{top}" {options} }}\n'
        blob = top
    return text + TAIL


def residual_net(relu: bool, order: str, reads_input: bool) -> str:
    """A block of a residual net: a convolution's result and what goes round it, added."""
    other = "data" if reads_input else "short"
    bottoms = ("deep", other) if order == "first" else (other, "deep")
    text = INPUT.replace("IN", "16")
    if not reads_input:
        text += conv("short", "data", "short", 16, "full", True)
    text += conv("mid", "data", "mid", 16, "full", True)
    text += 'layer { name: "mid_relu" type: "ReLU" bottom: "mid" top: "mid" }\n'
    text += conv("deep", "mid", "deep", 16, "full", False)
    text += f'layer {{ name: "bn" bottom: "deep" top: "deep" {LAYERS["bn"]} }}\n'
    text += f'layer {{ name: "scale" bottom: "deep" top: "deep" {LAYERS["scale"]} }}\n'
    text += (
        f'layer {{ name: "sum" type: "Eltwise" bottom: "{bottoms[0]}" bottom: "{bottoms[1]}" '
        'top: "top" }\n'
    )
    if relu:
        text += 'layer { name: "relu" type: "ReLU" bottom: "top" top: "top" }\n'
    return text + TAIL


def build_net(text, keep_blobs):
    net = Net.from_proto(parse_net(text), TEST, seed=5, keep_blobs=keep_blobs)
    rng = np.random.default_rng(1)
    for name, blobs in net.params.items():
        if net.layer_dict[name].type == "BatchNorm":
            for blob in blobs:
                blob.data[...] = rng.uniform(0.5, 2, blob.shape)
    net.blobs["data"].data[...] = rng.standard_normal(net.blobs["data"].shape)
    return net


def one_by_one(net):
    """Every blob of a net that keeps them, layer by layer."""
    for number in range(len(net.layers)):
        net._forward(number, number)
    return {name: blob.data.copy() for name, blob in net.blobs.items()}


def at_once(net, *names):
    found = net.forward(blobs=names)
    return {name: values.copy() for name, values in found.items()}


def check(net, text, *names):
    """The net's blobs are those of one that computes them singly, on the same weights."""
    single = build_net(text, keep_blobs=True)
    single.flat_params.copy_from(net.flat_params)
    want = one_by_one(single)
    for name, got in at_once(net, *names).items():
        np.testing.assert_allclose(
            got, want[name], rtol=1e-4, atol=1e-5 * np.abs(want[name]).max(), err_msg=name
        )


@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("keep_blobs", [True, False])
@pytest.mark.parametrize(
    ("channels", "kind", "bias"), [(16, "full", True), (16, "deep", False), (5, "full", False)]
)
def test_a_chain(chain, in_place, keep_blobs, channels, kind, bias):
    text = chain_net(chain, in_place, channels, kind, bias)
    net = build_net(text, keep_blobs)
    check(net, text)
    check(net, text)
    for name in net.blobs:
        if "_split_" not in name:
            check(net, text, name)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("order", ["first", "second"])
@pytest.mark.parametrize("reads_input", [True, False])
@pytest.mark.parametrize("keep_blobs", [True, False])
def test_a_sum(relu, order, reads_input, keep_blobs):
    text = residual_net(relu, order, reads_input)
    net = build_net(text, keep_blobs)
    data = net.blobs["data"].data.copy()
    for names in ((), (), ("top",), ("deep",), ("mid",), ()):
        check(net, text, *names)
        np.testing.assert_array_equal(net.blobs["data"].data, data)


def fused(net):
    """The layers whose time is a convolution's."""
    net.time_layers(True)
    net._forward(0, len(net.layers) - 1)
    times = net.layer_times()[0]
    net.time_layers(False)
    return {name for name, spent in zip(net.layer_dict, times, strict=True) if spent == 0}


def test_what_is_computed_together():
    text = residual_net(True, "first", reads_input=False)
    assert fused(build_net(text, True)) == {"mid_relu", "bn", "scale"}
    net = build_net(text, False)
    assert fused(net) == {"mid_relu", "bn", "scale", "sum", "relu"}
    net.forward(blobs=["deep"])
    assert fused(net) == {"mid_relu", "bn", "scale"}
    loose = chain_net(("bn", "scale", "relu"), in_place=False)
    assert fused(build_net(loose, True)) == set()
    assert fused(build_net(loose, False)) == {"l0", "l1", "l2"}


WRITES = {
    "weights": lambda net: net.params["conv"][0].data.__imul__(-2),
    "bias": lambda net: net.params["conv"][1].data.__iadd__(1),
    "statistics": lambda net: net.params["l0"][0].data.__iadd__(3),
    "count": lambda net: net.params["l0"][2].data.__imul__(2),
    "factor": lambda net: net.params["l1"][0].data.__imul__(-2),
    "all": lambda net: net.flat_params.__imul__(1.5),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize("kept", [True, False])
def test_the_next_pass_sees_a_write(write, kept):
    text = chain_net(("bn", "scale", "relu"), in_place=True)
    net = build_net(text, keep_blobs=False)
    views = [blob.data for blobs in net.params.values() for blob in blobs] if kept else []
    before = at_once(net)["pool"]
    for _ in range(2):
        write(net)
        check(net, text)
    assert np.abs(at_once(net)["pool"] - before).max() > 1e-3
    assert bool(views) == kept


def test_shapes_may_change():
    text = residual_net(True, "first", reads_input=False)
    net = build_net(text, keep_blobs=False)
    check(net, text)
    data = np.random.default_rng(2).standard_normal((1, 16, 7, 9)).astype(np.float32)
    net.blobs["data"].reshape(*data.shape)
    single = build_net(text, keep_blobs=True)
    single.blobs["data"].reshape(*data.shape)
    single.blobs["data"].data[...] = data
    single.reshape()
    want = one_by_one(single)["pool"]
    np.testing.assert_allclose(net.forward(data=data)["pool"], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("chain", [("relu",), ("bn", "scale", "relu")])
@pytest.mark.parametrize("parts", [[(5, 0)], [(5, 3), (2, 0)], [(n, n) for n in range(5, -1, -1)]])
def test_the_way_back(chain, parts):
    text = chain_net(chain, in_place=True)
    found = []
    for whole in (True, False):
        net = build_net(text, keep_blobs=True)
        last = len(net.layers) - 1
        for _ in range(2):
            net.clear_param_diffs()
            if whole:
                net.forward()
            else:
                one_by_one(net)
            net.blobs["pool"].diff[...] = 1
            for first, end in parts if whole else [(last, 0)]:
                if end <= last:
                    net._backward(min(first, last), end)
        found.append([net.blobs["data"].diff.copy(), np.array(net.flat_diffs)])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_a_pass_that_starts_or_ends_within():
    text = chain_net(("bn", "scale", "relu"), in_place=True)
    nets = whole, single = [build_net(text, keep_blobs=True) for _ in range(2)]
    for net in nets:
        net.forward()
    whole.forward(start="l1")
    for number in range(single._layer_number("l1"), len(single.layers)):
        single._forward(number, number)
    np.testing.assert_allclose(
        nets[0].blobs["pool"].data, nets[1].blobs["pool"].data, rtol=1e-4, atol=1e-5
    )
    want = one_by_one(build_net(text, keep_blobs=True))
    for net in nets:
        net.forward(end="l0")
        net.forward(start="l1")
        np.testing.assert_allclose(net.blobs["pool"].data, want["pool"], rtol=1e-4, atol=1e-5)


def test_a_solvers_test_net_sees_weights_and_statistics():
    settings = parse_solver('base_lr: 0.001 lr_policy: "fixed" test_iter: 1 test_interval: 1000')
    settings.net_param.CopyFrom(parse_net(chain_net(("own bn", "scale", "relu"), in_place=True)))
    for layer in settings.net_param.layer:
        layer.batch_norm_param.ClearField("use_global_stats")
    settings.net_param.layer[-1].loss_weight.append(1)
    settings.snapshot_after_train = False
    solver = get_solver(settings)
    test, rng = solver.test_nets[0], np.random.default_rng(3)
    test.share_with(solver.net)
    plain = chain_net(("bn", "scale", "relu"), in_place=True).replace("eps: 0.01", "")
    data = rng.standard_normal(test.blobs["data"].shape)
    for _ in range(3):
        solver.net.blobs["data"].data[...] = rng.standard_normal(data.shape)
        solver.step(1)
        assert "l0" in fused(test)
        single = build_net(plain, keep_blobs=True)
        single.flat_params.copy_from(solver.net.flat_params)
        single.blobs["data"].data[...] = data
        want = one_by_one(single)["pool"]
        test.blobs["data"].data[...] = data
        np.testing.assert_allclose(at_once(test)["pool"], want, rtol=1e-4, atol=1e-5)


def test_threads_may_change():
    text = residual_net(True, "first", reads_input=False)
    net, before = build_net(text, keep_blobs=False), threads()
    try:
        for count in (1, 2, 1):
            set_threads(count)
            check(net, text)
    finally:
        set_threads(before)


@pytest.mark.parametrize("keep_blobs", [True, False])
def test_3_x_3_windows_with_fewer_products(keep_blobs):
    """Sizes at which the engine takes another way to the same sums."""
    text = residual_net(True, "second", reads_input=True)
    text = text.replace("dim: 16 dim: 10 dim: 10", "dim: 128 dim: 28 dim: 28")
    text = text.replace("num_output: 16", "num_output: 128")
    net = build_net(text, keep_blobs)
    for _ in range(2):
        check(net, text)
        net.flat_params.__imul__(0.9)
