"""Gradients that PyTorch computes where drawn nets say nothing; the others: test_drawn_nets.py."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.proto import parse_net
from sparknet.torch.engine import translated
from sparknet.torch.layer import SOURCES, VIEWS
from sparknet.torch.translations import TABLE
from tests.caffe.gradient import input_layer
from tests.fuzz.layer_cases import CASES as SMALL

WITHOUT = {name for name, one in TABLE.items() if one.no_gradient}


@pytest.mark.parametrize("kind", sorted(WITHOUT))
def test_a_type_without_a_gradient_says_so(kind):
    small = SMALL[kind][0]
    inputs = tuple(np.ones(shape, np.float32) for shape in small.shapes)
    lines = [input_layer(f"x{n}", one.shape) for n, one in enumerate(inputs)]
    names = [f'bottom: "x{n}" propagate_down: {str(n == 0).lower()}' for n in range(len(inputs))]
    text = "force_backward: true\n" + "".join(lines)
    text += f'layer {{ name: "l" type: "{kind}" {" ".join(names)} top: "y" {small.options} }}'
    net = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, device="cpu")
    net.forward()
    with pytest.raises(LayerError, match=f"layer 'l': {kind}: has no gradient"):
        net.backward()


def test_records_weigh_the_gradient_of_a_loss():
    text = "force_backward: true\n" + "".join(
        input_layer(name, shape) for name, shape in [("x", (64, 10)), ("t", (64, 10)), ("w", (64,))]
    )
    text += """
        layer { name: "weights" type: "RecordWeights" bottom: "x" bottom: "w" top: "x1"
          propagate_down: true propagate_down: false }
        layer { name: "loss" type: "EuclideanLoss" bottom: "x1" bottom: "t" top: "loss" }
    """
    net = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, device="cpu")
    draw = np.random.default_rng(5)
    for blob in (net.blobs[name] for name in "xtw"):
        blob.data[...] = draw.uniform(0.5, 1.5, blob.shape)
    net.forward()
    net.backward()
    x, t, w = (np.array(net.blobs[name].data, np.float64) for name in "xtw")
    assert float(net.blobs["loss"].data) == pytest.approx((w[:, None] * (x - t) ** 2).sum() / 128)
    np.testing.assert_allclose(net.blobs["x"].diff, w[:, None] * (x - t) / 64, rtol=1e-4, atol=1e-8)


def test_every_type_is_drawn():
    """A type that is added later has to be drawn, too."""
    types = {*TABLE, *VIEWS}
    assert all(map(translated, types))
    assert types - {"RecordWeights"} <= set(SMALL)
    assert not types & SOURCES
