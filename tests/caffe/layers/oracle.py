"""Forward and backward of one layer, for comparison with slow numpy."""

import numpy as np

import sparknet.caffe as caffe
from sparknet import native
from tests.caffe.gradient import build


def layer_text(kind: str, options: str = "", bottom: str = "x", top: str = "y") -> str:
    bottoms = " ".join(f'bottom: "{name}"' for name in bottom.split())
    tops = " ".join(f'top: "{name}"' for name in top.split())
    return f'layer {{ name: "l" type: "{kind}" {bottoms} {tops} {options} }}\n'


def blocked(channels: int) -> str:
    """A convolution that hands `x` on as `x0`: what follows gets oneDNN's layout."""
    return (
        'layer { name: "front" type: "Convolution" bottom: "x" top: "x0" convolution_param '
        f"{{ num_output: {channels} kernel_size: 1 bias_term: false }} }}\n"
    )


def values(*shape, seed=0):
    """Values of which no two are closer than a gradient check's step."""
    count = int(np.prod(shape))
    order = np.random.default_rng(seed).permutation(count)
    return ((order + 0.5) * 0.06 - count * 0.03).reshape(shape).astype(np.float32)


def passes(text, inputs, top="y", phase=0, seed=5, **options):
    """Output, its random gradient, and the net after both passes."""
    net = build(text, inputs, phase, **options)
    if "front" in net.params:
        channels = net.params["front"][0].data.shape[0]
        net.params["front"][0].data[...] = np.eye(channels).reshape(channels, channels, 1, 1)
    net.forward()
    y = np.array(net.blobs[top].data)
    dy = np.random.default_rng(seed).uniform(-1, 1, y.shape).astype(np.float32)
    net.blobs[top].diff[...] = dy
    net.backward()
    return y, dy, net


def results(text, inputs, phase=0, **options):
    caffe.set_random_seed(3)
    y, _, net = passes(text, inputs, phase=phase, **options)
    gradients = [np.array(net.blobs[name].diff) for name in inputs]
    learned = [np.array(b.diff) for blobs in net.params.values() for b in blobs]
    return [y, *gradients, *learned]


def same_bits(run):
    """The arrays of a run are the same with one, two and three threads."""
    before, runs = native.threads(), []
    try:
        for count in (1, 2, 3):
            native.set_threads(count)
            runs.append([np.array(values) for values in run()])
    finally:
        native.set_threads(before)
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def same_in_any_number_of_threads(text, inputs, phase=0, **options):
    same_bits(lambda: results(text, inputs, phase, **options))
