"""Whoever writes parameters between two passes, the next pass uses the new ones."""

from threading import Thread

import numpy as np
import pytest

from sparknet import WeightCollection
from sparknet.caffe import TEST, TRAIN, Net
from sparknet.proto import parse_net

NET = """
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 2 dim: 16 dim: 6 dim: 6 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 32 kernel_size: 3 weight_filler { type: "xavier" }
                            bias_filler { type: "uniform" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "up" type: "Deconvolution" bottom: "conv" top: "up"
        convolution_param { num_output: 16 kernel_size: 2 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "up" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
IMAGE = np.random.default_rng(0).standard_normal((2, 16, 6, 6)).astype(np.float32)


def build_net(phase=TEST, seed=1, **options):
    return Net.from_proto(parse_net(NET), phase, seed=seed, **options)


def scores(net):
    return net.forward(data=IMAGE)["ip"].copy()


def fresh(net):
    """What a net that has never run says with the same weights."""
    other = build_net(seed=9)
    for name, blobs in net.params.items():
        for mine, theirs in zip(other.params[name], blobs, strict=True):
            mine.data[...] = theirs.data
    return scores(other)


def through_kept_view(net, tmp_path):
    net.kept = net.params["conv"][0].data
    net.kept[...] *= -2


def through_file(net, tmp_path):
    build_net(seed=2).save(tmp_path / "other.caffemodel")
    net.copy_from(tmp_path / "other.caffemodel")


def through_thread(net, tmp_path):
    writer = Thread(target=lambda: net.flat_params.fill(0.25))
    writer.start()
    writer.join()


WRITES = {
    "view": lambda net, _: net.params["conv"][0].data.__imul__(2),
    "kept view": through_kept_view,
    "flat numpy": lambda net, _: np.asarray(net.flat_params).__imul__(-2),
    "flat array": lambda net, _: net.flat_params.__imul__(3.0),
    "part": lambda net, _: net.flat_params[5:700].fill(0.5),
    "collection": lambda net, _: WeightCollection.of(build_net(seed=4)).to_net(net),
    "lent collection": lambda net, _: WeightCollection.of(net, copy=False).__imul__(0.5),
    "file": through_file,
    "shared": lambda net, _: net.share_with(build_net(seed=5)),
    "thread": through_thread,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
@pytest.mark.parametrize("phase", [TRAIN, TEST])
def test_the_next_pass_sees_a_write(phase, write, tmp_path):
    net = build_net(phase)
    before = [scores(net) for _ in range(2)]
    np.testing.assert_array_equal(*before)
    for _ in range(2):
        write(net, tmp_path)
        after = scores(net)
        np.testing.assert_allclose(after, fresh(net), rtol=1e-5, atol=1e-6)
    assert np.abs(after - before[0]).max() > 1e-3


def test_a_net_that_shares_weights_sees_the_other_ones_writes():
    net, other = build_net(seed=1), build_net(seed=2)
    other.share_with(net)
    writes = [
        lambda: net.flat_params.fill(0.1),
        lambda: other.params["conv"][0].data.fill(1),
    ]
    for write in writes:
        scores(other)
        write()
        np.testing.assert_array_equal(scores(other), scores(net))
        np.testing.assert_allclose(scores(other), fresh(net), rtol=1e-5, atol=1e-6)
