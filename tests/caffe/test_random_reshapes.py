"""Random nets whose blobs are reshaped at random between passes over random parts of them, against
each layer by itself in a net made for the shapes that it finds."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.proto import caffe_pb2, parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.test_random_nets import Draft, _close, _set_params, drafts

FUZZ = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


def _message(d: Draft) -> caffe_pb2.NetParameter:
    text = "force_backward: true\n"
    text += "\n".join([input_layer(name, shape) for name, shape in d.inputs.items()] + d.lines)
    note(text)
    return parse_net(text)


def _look(net, name):
    """A blob's values, without a view that stays."""
    return np.array(net._runtime.engine.blob_array(net._blob_names.index(name)))


def _put(net, name, values):
    np.asarray(net._runtime.engine.blob_array(net._blob_names.index(name)))[...] = values


class Alone:
    """One layer in a net of its own."""

    def __init__(self, net, number, phase):
        node = net.graph.nodes[number]
        self.tops = list(dict.fromkeys(node.tops))
        self.inputs = {name: _look(net, name) for name in dict.fromkeys(node.bottoms)}
        message = parse_net(
            "\n".join(input_layer(name, value.shape) for name, value in self.inputs.items())
        )
        message.layer.add().CopyFrom(node.layer.parameter)
        self.net = caffe.Net.from_proto(message, phase)
        pairs = zip(self.net.params.get(node.name, ()), net.params.get(node.name, ()), strict=True)
        for mine, theirs in pairs:
            if mine.data.shape != theirs.data.shape:
                raise LayerError(node.name, "its parameters have other shapes")
            mine.data[...] = theirs.data

    def forward(self):
        for name, value in self.inputs.items():
            _put(self.net, name, value)
        self.net._forward(0, len(self.net.layers) - 1)
        return {name: _look(self.net, name) for name in self.tops}


def _check_pass(net, first, last, phase):
    """Layers one by one in nets of their own, then together; whether all of them fit."""
    start = {name: _look(net, name) for name in net.blobs}
    names = list(net.graph.layers)
    shadow = _twin(net, phase)
    for name, values in start.items():
        shadow.blobs[name].reshape(*values.shape)
    for name, values in start.items():
        _put(shadow, name, values)
    expected = {}
    try:
        for number in range(first, last + 1):
            if net.graph.nodes[number].bottoms:
                found = Alone(shadow, number, phase).forward()
                for name, values in found.items():
                    shadow.blobs[name].reshape(*values.shape)
                    _put(shadow, name, values)
                expected |= found
    except LayerError as error:
        _refuses(net, first, last, error.layer)
        return False
    net._forward(first, last)
    for name, values in expected.items():
        _close(f"{name} of {names[first]} … {names[last]}", _look(net, name), values)
    return True


def _refuses(net, first, last, layer):
    with pytest.raises(LayerError) as caught:
        net._forward(first, last)
    assert caught.value.layer == layer


def _twin(net, phase):
    twin = caffe.Net.from_proto(net.graph.parameter, phase)
    twin.flat_params.copy_from(net.flat_params)
    return twin


def _reshape(net, name, shape, rng):
    blob, before = net.blobs[name], _look(net, name).ravel()
    blob.reshape(*shape)
    now = _look(net, name)
    assert now.shape == shape
    kept = min(before.size, now.size)
    np.testing.assert_array_equal(now.ravel()[:kept], before[:kept])
    _put(net, name, rng.uniform(-1, 1, shape))


@FUZZ
@given(drafts(), st.sampled_from([caffe.TRAIN, caffe.TEST]), st.integers(0, 2**31), st.data())
def test_any_blob_before_any_part(d, phase, seed, data):
    message = _message(d)
    net, rng = caffe.Net.from_proto(message, phase), np.random.default_rng(seed)
    _set_params(net, rng)
    for name in d.inputs:
        _put(net, name, rng.uniform(-1, 1, d.inputs[name]))
    last = len(net.layers) - 1
    net._forward(0, last)
    free = [name for name in net.blobs if name not in d.labels and net.blobs[name].shape]
    for _ in range(data.draw(st.integers(1, 4))):
        for name in data.draw(st.lists(st.sampled_from(free), max_size=2, unique=True)):
            shape = list(net.blobs[name].shape)
            axis = data.draw(st.integers(0, len(shape) - 1))
            shape[axis] = data.draw(st.integers(1, 7))
            note(f"{name} becomes {shape}")
            _reshape(net, name, tuple(shape), rng)
        first = data.draw(st.integers(0, last))
        end = data.draw(st.integers(first, last))
        note(f"forward {first} to {end}")
        _check_pass(net, first, end, phase)
        if data.draw(st.booleans()):
            first = data.draw(st.integers(0, last))
            with suppress(LayerError):  # where it has other shapes than its last forward pass
                net._backward(first, data.draw(st.integers(0, first)))


@FUZZ
@given(
    drafts(),
    st.sampled_from([caffe.TRAIN, caffe.TEST]),
    st.booleans(),
    st.integers(0, 2**31),
    st.data(),
)
def test_other_inputs_after_passes_over_parts(d, phase, keep, seed, data):
    """Whatever ran before, a whole pass gives what a net made for these inputs gives."""
    message = _message(d)
    keep = keep or phase == caffe.TEST
    net = caffe.Net.from_proto(message, phase, keep_blobs=keep)
    rng = np.random.default_rng(seed)
    _set_params(net, rng)
    last = len(net.layers) - 1
    for _ in range(data.draw(st.integers(1, 3))):
        axis = data.draw(st.sampled_from([0, 2, 3]))
        size = data.draw(st.integers(1, 7))
        inputs = {
            name: tuple(size if number == axis else old for number, old in enumerate(shape))
            for name, shape in d.inputs.items()
        }
        for name, shape in inputs.items():
            net.blobs[name].reshape(*shape)
            _put(net, name, _input(d, name, shape, rng))
        if data.draw(st.booleans()):
            with suppress(LayerError):
                net._forward(0, data.draw(st.integers(0, last)))
        _compare_whole(net, d, inputs, phase, rng)


def _input(d, name, shape, rng):
    return rng.integers(0, d.labels[name], shape) if name in d.labels else rng.uniform(-1, 1, shape)


def _build(text, phase):
    with suppress(LayerError):
        return caffe.Net.from_proto(parse_net("force_backward: true\n" + text), phase)
    return None


def _compare_whole(net, d, shapes, phase, rng):
    text = "\n".join([input_layer(name, shape) for name, shape in shapes.items()] + d.lines)
    fresh = _build(text, phase)
    if fresh is None or [p.shape for p in fresh.graph.params] != [
        p.shape for p in net.graph.params
    ]:
        with pytest.raises(LayerError):
            net._forward(0, len(net.layers) - 1)
        return
    fresh.flat_params.copy_from(net.flat_params)
    values = {name: _input(d, name, shape, rng) for name, shape in shapes.items()}
    tops = [name for name in net.outputs if not net.blob_loss_weights[name]]
    for one in (net, fresh):
        for name, value in values.items():
            one.blobs[name].data[...] = value
        one._want([*one.blobs])
        one._forward(0, len(one.layers) - 1)
    top_diffs = {name: rng.uniform(-1, 1, fresh.blobs[name].shape) for name in tops}
    for one in (net, fresh):
        for name, diff in top_diffs.items():
            one.blobs[name].diff[...] = diff
        one.clear_param_diffs()
        one._backward(len(one.layers) - 1, 0)
    scale = max(1.0, float(np.abs(np.asarray(fresh.flat_diffs)).max(initial=0)))
    for name in fresh.blobs:
        _close(name, net.blobs[name].data, fresh.blobs[name].data)
    _close("gradients", np.asarray(net.flat_diffs), np.asarray(fresh.flat_diffs), scale)
    for name in shapes:
        if name not in d.labels:
            _close(f"gradient of {name}", net.blobs[name].diff, fresh.blobs[name].diff, scale)
