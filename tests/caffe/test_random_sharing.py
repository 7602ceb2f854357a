"""Random nets whose blobs share memory, against the same nets that keep theirs."""

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.test_random_nets import _close, _set_params, _values, drafts


def _nets(d, rng):
    """The same net twice, with the same parameters: one keeps its blobs, one does not."""
    text = "\n".join([input_layer(name, shape) for name, shape in d.inputs.items()] + d.lines)
    note(text)
    nets = [
        caffe.Net.from_proto(parse_net(text), caffe.TEST, keep_blobs=keep) for keep in (True, False)
    ]
    _set_params(nets[0], rng)
    nets[1].flat_params.copy_from(nets[0].flat_params)
    return nets


@settings(
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(drafts(), st.integers(0, 2**32 - 1), st.data())
def test_blobs_that_are_asked_for_agree(d, seed, data):
    rng = np.random.default_rng(seed)
    kept, shared = _nets(d, rng)
    names = [name for name in kept.blobs if "_split_" not in name]
    for _ in range(3):
        expected = data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        inputs = _values(d, rng)
        want = kept.forward(blobs=names, **inputs)
        for name, got in shared.forward(blobs=expected, **inputs).items():
            _close(name, got, want[name])
