"""Gradients against finite differences, as Caffe's own tests do (test_gradient_check_util.hpp)."""

from collections.abc import Sequence

import numpy as np

import sparknet.caffe as caffe
from sparknet.proto import parse_net


def input_layer(name: str, shape: Sequence[int]) -> str:
    dims = " ".join(f"dim: {size}" for size in shape)
    return (
        f'layer {{ name: "in_{name}" type: "Input" top: "{name}" '
        f"input_param {{ shape {{ {dims} }} }} }}\n"
    )


def build(layers, inputs, phase=0, *, force=True, **options):
    """A net of Input layers and the text, with all gradients if forced (`Net.from_proto`)."""
    text = "force_backward: true\n" if force else ""
    text += "".join(input_layer(name, np.shape(value)) for name, value in inputs.items())
    net = caffe.Net.from_proto(parse_net(text + layers), phase, **options)
    for name, value in inputs.items():
        net.blobs[name].data[...] = value
    return net


def run(layers, inputs, phase=0, **options):
    """Such a net after its forward pass."""
    net = build(layers, inputs, phase, **options)
    net.forward()
    return net


def biased(*names: str) -> str:
    """Each of these inputs, x, plus a bias of zeros, xb: x and no other has a gradient, without
    force_backward, and the bias has the same one."""
    return "".join(
        f'layer {{ name: "bias_{name}" type: "Bias" bottom: "{name}" top: "{name}b" '
        f"bias_param {{ axis: 0 num_axes: -1 }} }}\n"
        for name in names
    )


def check_gradients(
    layer,
    inputs,
    params=None,
    *,
    of=None,
    phase=0,
    step=1e-2,
    tolerance=1e-2,
    kinks=(),
    seed=1,
    force=True,
):
    """Compare every input and parameter gradient with central differences.

    The objective is a random weighting of all outputs (of the losses themselves
    where a top has a loss weight).  ``of`` names the inputs to check, all by
    default; values closer than 2 * ``step`` to one of ``kinks`` are skipped.
    """
    net = build(layer, inputs, phase, force=force)
    for name, values in (params or {}).items():
        for blob, value in zip(net.params[name], values, strict=True):
            blob.data[...] = value
    rng = np.random.default_rng(seed)
    weights = _weights(net, rng)
    _objective(net, weights)
    net.clear_param_diffs()
    for name, weight in weights.items():
        net.blobs[name].diff[...] = weight
    net.backward()
    checked = [(f"input {name}", net.blobs[name]) for name in (of if of is not None else inputs)]
    checked += [(f"{name}[{i}]", b) for name, own in net.params.items() for i, b in enumerate(own)]
    found = [(what, blob, np.array(blob.diff)) for what, blob in checked]
    for what, blob, got in found:
        _compare(net, weights, what, blob, got, step, tolerance, kinks)


def _weights(net, rng):
    net.forward()
    weights = {}
    for name in net.outputs:
        loss = net.blob_loss_weights[name]
        shape = net.blobs[name].data.shape
        weights[name] = np.full(shape, loss) if loss else rng.uniform(-1, 1, shape)
    return {name: weight.astype(np.float32) for name, weight in weights.items()}


def _objective(net, weights):
    net.forward()
    return sum(
        float(np.sum(net.blobs[name].data.astype(np.float64) * weight))
        for name, weight in weights.items()
    )


def _compare(net, weights, what, blob, got, step, tolerance, kinks):
    for place in np.ndindex(blob.data.shape):
        kept = float(blob.data[place])
        if any(abs(kept - kink) < 2 * step for kink in kinks):
            continue
        blob.data[place] = kept + step
        above = _objective(net, weights)
        blob.data[place] = kept - step
        below = _objective(net, weights)
        blob.data[place] = kept
        want = (above - below) / (2 * step)
        scale = max(abs(want), abs(float(got[place])), 1.0)
        assert abs(float(got[place]) - want) <= tolerance * scale, (
            f"{what}{place}: backward says {got[place]}, differences say {want}"
        )
