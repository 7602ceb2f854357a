"""Two LSTMs of one stream that run at the same time, against float64."""

from multiprocessing import get_context

import numpy as np
import pytest

from sparknet import caffe, native
from sparknet.errors import LayerError
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.caffe.layers.test_lstm_threads import NEAR, expected

STEPS = 20
SIZES = [(96, 192), (33, 12), (260, 20)]
"""Units and inputs."""


@pytest.fixture(autouse=True)
def two_threads():
    before = native.threads()
    native.set_threads(2)
    yield
    native.set_threads(before)


def lstm(name: str, bottom: str, units: int, more: str = "") -> str:
    filler = "weight_filler { type: 'xavier' } bias_filler { type: 'uniform' min: -1 max: 1 }"
    return f"""layer {{ name: "{name}" type: "LSTM" bottom: "{bottom}" bottom: "cont"
        top: "{name}" {more} recurrent_param {{ num_output: {units} {filler} }} }}"""


def reversed_steps(bottom: str, top: str) -> str:
    return f'layer {{ name: "{top}" type: "Reverse" bottom: "{bottom}" top: "{top}" }}'


def build(text, inputs, **more):
    inputs_text = input_layer("x", (STEPS, 1, inputs)) + input_layer("cont", (STEPS, 1))
    return caffe.Net.from_proto(parse_net(inputs_text + text), caffe.TEST, seed=1, **more)


def random_inputs(inputs):
    rng = np.random.default_rng(0)
    marks = (rng.random((STEPS, 1)) > 0.1).astype(np.float32)
    marks[0] = 0
    return rng.standard_normal((STEPS, 1, inputs), np.float32), marks


def twins(net):
    """By layer: the one that runs at the same time."""
    said = {
        name: net._runtime.engine.methods(number).get("forward", "")
        for number, name in enumerate(net._layer_names)
    }
    return {name: text.split("'")[1] for name, text in said.items() if "same time" in text}


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("precision", NEAR)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_two_directions(sizes, precision, keep):
    if precision == "bf16" and not has_bf16():
        pytest.skip("this processor has no bfloat16")
    units, inputs = sizes
    text = lstm("there", "x", units) + reversed_steps("x", "back")
    text += lstm("turned", "back", units) + reversed_steps("turned", "again")
    net = build(text, inputs, precision=precision, keep_blobs=keep)
    for streams in (1, 3, 1):
        data = np.random.default_rng(streams).standard_normal((STEPS, streams, inputs), np.float32)
        marks = np.ones((STEPS, streams), np.float32)
        marks[0] = 0
        net.blobs["x"].reshape(*data.shape)
        net.blobs["cont"].reshape(STEPS, streams)
        net.reshape()
        assert twins(net) == ({"there": "turned", "turned": "there"} if streams == 1 else {})
        for _ in range(2):
            actual = net.forward(x=data, cont=marks, blobs=["there", "again"])
            want = expected(net.params["there"], data, marks)
            np.testing.assert_allclose(actual["there"], want, rtol=0, atol=NEAR[precision])
            want = expected(net.params["turned"], data[::-1], marks)[::-1]
            np.testing.assert_allclose(actual["again"], want, rtol=0, atol=NEAR[precision])


SQUARED = 'layer { name: "squared" type: "Power" bottom: "%s" top: "%s" power_param { %s } }'
NETS = {
    "one behind the other": (lstm("a", "x", 12) + lstm("b", "a", 12), {}),
    "read before the second": (
        lstm("a", "x", 12) + SQUARED % ("a", "squared", "power: 2") + lstm("b", "x", 12),
        {},
    ),
    "changed in place before the second": (
        lstm("a", "x", 12) + SQUARED % ("a", "a", "power: 2") + lstm("b", "x", 12),
        {},
    ),
    "three": (
        lstm("a", "x", 12) + lstm("b", "x", 12) + lstm("c", "x", 12),
        {"a": "b", "b": "a"},
    ),
    "two and two": (
        lstm("a", "x", 12)
        + lstm("b", "x", 12)
        + 'layer { name: "s" type: "Eltwise" bottom: "a" bottom: "b" top: "s" }'
        + lstm("c", "s", 12)
        + lstm("d", "s", 12),
        {"a": "b", "b": "a", "c": "d", "d": "c"},
    ),
}


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_which_run_at_the_same_time(name, keep):
    """Whether or not, the results are those of one thread, where one comes after the other."""
    text, pairs = NETS[name]
    data, marks = random_inputs(9)
    found = []
    for threads in (1, 2):
        native.set_threads(threads)
        net = build(text, 9, keep_blobs=keep)
        assert twins(net) == pairs
        tops = [one for one in ("a", "squared", "b", "c", "d") if one in net.blobs]
        for _ in range(2):
            made_now = net.forward(x=data, cont=marks, blobs=tops)
            found.append({one: np.array(made_now[one]) for one in tops})
    for other in found[1:]:
        for top, values in found[0].items():
            np.testing.assert_allclose(other[top], values, rtol=0, atol=1e-6, err_msg=top)


def test_none_in_training():
    net = caffe.Net.from_proto(
        parse_net(
            input_layer("x", (STEPS, 1, 9))
            + input_layer("cont", (STEPS, 1))
            + lstm("a", "x", 12)
            + lstm("b", "x", 12)
        ),
        caffe.TRAIN,
        seed=1,
    )
    assert twins(net) == {}


@pytest.mark.parametrize("judged", ["a", "b"])
def test_one_whose_values_are_a_loss(judged):
    """What the pass returns is the sum of its values, of this pass."""
    frozen = 3 * "param { lr_mult: 0 } "  # what learns has a gradient of its loss, and no twin
    weight = {one: frozen + "loss_weight: 2" * (one == judged) for one in "ab"}
    net = build("".join(lstm(one, "x", 12, weight[one]) for one in "ab"), 9)
    assert bool(twins(net)) == (judged == "b")
    data, marks = random_inputs(9)
    net.blobs["x"].data[...], net.blobs["cont"].data[...] = data, marks
    want = 2 * expected(net.params[judged], data, marks).sum()
    assert net._runtime.forward(0, len(net.layers) - 1) == pytest.approx(want, rel=1e-4)


def test_part_of_a_pass():
    net = build(lstm("a", "x", 12) + lstm("b", "x", 12), 9)
    assert twins(net) == {"a": "b", "b": "a"}
    data, marks = random_inputs(9)
    want = {name: expected(net.params[name], data, marks) for name in "ab"}
    for passes in ([("a", "a"), ("b", "b")], [("a", "b")], [("b", "b"), ("a", "a")]):
        net.blobs["x"].data[...], net.blobs["cont"].data[...] = data, marks
        for name in "ab":
            net.blobs[name].data[...] = 0
        for start, end in passes:
            net.forward(start=start, end=end)
            np.testing.assert_allclose(net.blobs[end].data, want[end], rtol=0, atol=1e-5)
        for name in "ab":
            np.testing.assert_allclose(net.blobs[name].data, want[name], rtol=0, atol=1e-5)


def test_a_refusal_between_them_leaves_nothing_behind():
    """The second one is refused its blobs, and the next pass is right."""
    embed = """layer { name: "e" type: "Embed" bottom: "number" top: "e"
        embed_param { num_output: 9 input_dim: 5 bias_term: false } }"""
    text = input_layer("number", (STEPS, 1)) + lstm("a", "x", 12) + embed + lstm("b", "e", 12)
    net = build(text, 9)
    assert twins(net) == {"a": "b", "b": "a"}
    data, marks = random_inputs(9)
    numbers = np.arange(STEPS, dtype=np.float32)[:, None] % 5
    want = np.array(net.forward(x=data, cont=marks, number=numbers, blobs=["a", "b"])["a"])
    with pytest.raises(LayerError, match="Embed"):
        net.forward(x=data, cont=marks, number=numbers + 4)
    made_again = net.forward(x=data, cont=marks, number=numbers, blobs=["a", "b"])
    np.testing.assert_array_equal(made_again["a"], want)
    np.testing.assert_allclose(made_again["a"], expected(net.params["a"], data, marks), atol=1e-5)


def test_in_a_forked_process_that_has_one_thread():
    net = build(lstm("a", "x", 12) + lstm("b", "x", 12), 9)
    data, marks = random_inputs(9)
    want = expected(net.params["a"], data, marks)
    net.forward(x=data, cont=marks)

    def again():
        np.testing.assert_allclose(net.forward(x=data, cont=marks, blobs=["a"])["a"], want, 0, 1e-5)

    child = get_context("fork").Process(target=again)
    child.start()
    child.join(60)
    assert child.exitcode == 0
