"""PyTorch's nets compute what ours do.  Only where PyTorch is installed (extra `bench`)."""

import numpy as np
import pytest

from benchmarks.peers.contests import CONTESTS, Contest

SMALL = 2


def ours(contest):
    from benchmarks.peers.nets import inference_net
    from benchmarks.peers.ours import fill
    from sparknet.caffe import Net

    net = Net.from_proto(inference_net(contest), seed=3)
    rng = np.random.default_rng(4)
    for node, blobs in zip(net.graph.nodes, net._runtime.params, strict=True):
        for number, blob in enumerate(blobs):
            if node.layer.freezes_by_default:
                blob.data[...] = number > 0  # mean 0, variance 1, counted once
            else:
                fans = blob.count / blob.shape[0] if len(blob.shape) > 1 else 25
                blob.data[...] = rng.standard_normal(blob.shape) * np.sqrt(2 / fans)
    fill(net, contest)
    return net, np.array(net.forward()["prob"])


def trained(net):
    for node, blobs in zip(net.graph.nodes, net._runtime.params, strict=True):
        if not node.layer.freezes_by_default:
            yield from (np.array(blob.data) for blob in blobs)


def theirs(contest, weights, data):
    import torch

    from benchmarks.peers.torch_nets import NETS

    net = NETS[contest.name]().eval()
    slots = {name: part for name, part in net.named_parameters() if "heads." not in name}
    if contest.words:
        take_lstm(weights, slots)
    with torch.no_grad():
        for name, part in slots.items():
            values = weights.pop(0)
            assert values.shape == tuple(part.shape), name
            part.copy_(torch.from_numpy(values))
        assert not weights
        return net(torch.from_numpy(data.astype(np.int64) if contest.words else data)).numpy()


def take_lstm(weights, slots):
    """Ours: input, bias, hidden, gates i f o g.  Theirs: input, hidden, two biases, i f g o."""
    order = [0, 1, 3, 2]
    inputs, bias, hidden = (
        np.concatenate([np.split(weights[place], 4)[gate] for gate in order]) for place in (1, 2, 3)
    )
    weights[1:4] = [inputs, hidden, bias, np.zeros_like(bias)]


@pytest.mark.parametrize("name", CONTESTS)
def test_they_compute_the_same(name):
    pytest.importorskip("torch", reason="torch is not installed")
    full = CONTESTS[name]
    contest = Contest(name, SMALL, full.shape, full.classes, full.scores, full.words)
    net, expected = ours(contest)
    found = theirs(contest, list(trained(net)), np.array(net.blobs["data"].data))
    assert expected.reshape(found.shape).std() > 1e-6
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-2, atol=1e-5)
