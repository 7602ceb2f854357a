"""Layers that users write in Python, between layers of the engine."""

import gc
import weakref

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.proto import parse_net
from tests.caffe.user_layers import OwnError, Shift, TimesTen


def python(layer: str, bottoms: str = "", tops: str = "", more: str = "", text: str = "") -> str:
    blobs = " ".join(f'bottom: "{name}"' for name in bottoms.split())
    blobs += " ".join(f' top: "{name}"' for name in tops.split())
    return (
        f'layer {{ name: "{layer.lower()}_{tops}" type: "Python" {blobs} {more} python_param '
        f'{{ module: "tests.caffe.user_layers" layer: "{layer}" param_str: "{text}" }} }}\n'
    )


def source(shape: str = "dim: 4 dim: 3", names: str = "x") -> str:
    tops = " ".join(f'top: "{name}"' for name in names.split())
    shapes = f"shape {{ {shape} }}"
    return f'layer {{ name: "in" type: "Input" {tops} input_param {{ {shapes} }} }}\n'


def fully(bottom: str, top: str, outputs: int = 3) -> str:
    return (
        f'layer {{ name: "{top}" type: "InnerProduct" bottom: "{bottom}" top: "{top}" '
        f"inner_product_param {{ num_output: {outputs} "
        f'weight_filler {{ type: "gaussian" std: 1 }} }} }}\n'
    )


def make(text: str, phase: int = caffe.TRAIN, force: bool = True) -> caffe.Net:
    net = parse_net(("force_backward: true " if force else "") + text)
    return caffe.Net.from_proto(net, phase, seed=1)


def x() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def test_accuracy():
    inputs = source("dim: 4 dim: 3", "x") + (
        'layer { name: "labels" type: "Input" top: "y" input_param { shape { dim: 4 } } }\n'
    )
    net = make(inputs + python("Accuracy", "x y", "accuracy"), caffe.TEST, force=False)
    scores = x()
    labels = scores.argmax(1)
    labels[0] = (labels[0] + 1) % 3
    assert net.forward(x=scores, y=labels)["accuracy"].tolist() == [0.75]


def test_between_segments_of_the_engine():
    text = source() + fully("x", "a") + python("TimesTen", "a", "b") + fully("b", "c")
    text += python("TimesTen", "c", "d") + 'layer { name: "r" type: "ReLU" bottom: "d" top: "d" }'
    net = make(text)
    out = net.forward(x=x())["d"]
    (wa, ba), (wc, bc) = ([blob.data for blob in net.params[name]] for name in "ac")
    want = 10 * (10 * (x() @ wa.T + ba) @ wc.T + bc)
    np.testing.assert_allclose(out, np.maximum(want, 0), rtol=1e-4, atol=1e-4)
    top = np.ones((4, 3), np.float32)
    grads = net.backward(d=top)
    want_c = 10 * (want > 0)
    np.testing.assert_allclose(net.params["c"][1].diff, want_c.sum(0), rtol=1e-5)
    np.testing.assert_allclose(grads["x"], 10 * (want_c @ wc) @ wa, rtol=1e-4, atol=1e-3)
    part = net.forward(start="timesten_d", end="timesten_d")["d"]
    np.testing.assert_allclose(part, want, rtol=1e-4, atol=1e-4)


def test_a_chain_follows_its_inputs_shape():
    net = make(source() + python("TimesTen", "x", "y") + python("TimesTen", "y", "z"))
    net.blobs["x"].reshape(2, 2, 2, 2)
    net.blobs["x"].data[...] = 3
    assert (net.forward()["z"] == np.full((2, 2, 2, 2), 300)).all()
    assert (net.backward(z=np.ones((2, 2, 2, 2)))["x"] == 100).all()


def test_in_place():
    net = make(source() + fully("x", "a") + python("TimesTen", "a", "a"))
    w, b = (blob.data for blob in net.params["a"])
    np.testing.assert_allclose(net.forward(x=x())["a"], 10 * (x() @ w.T + b), rtol=1e-5, atol=1e-5)


def test_a_source_and_its_param_str():
    text = python("Counting", "", "n", text="5") + fully("n", "a")
    text += 'layer { name: "l" type: "Reduction" bottom: "a" top: "l" loss_weight: 1 }'
    net = make(text, force=False)
    for begin in (5, 13):
        net.forward()
        np.testing.assert_array_equal(
            net.blobs["n"].data, np.arange(begin, begin + 8).reshape(4, 2)
        )
    net.backward()
    np.testing.assert_array_equal(net.params["a"][1].diff, [4, 4, 4])


def test_reshaping_in_forward():
    net = make(python("Growing", "", "n") + fully("n", "a", 2) + python("TimesTen", "a", "b"))
    w, b = (blob.data for blob in net.params["a"])
    for rows in (1, 2, 3):
        out = net.forward()["b"]
        assert out.shape == (rows, 2)
        np.testing.assert_allclose(out, 10 * (np.full((rows, 3), rows) @ w.T + b), rtol=1e-5)
        assert net.blobs["a"].data.shape == (rows, 2)


def test_tops_that_reshape_leaves_alone():
    """py-faster-rcnn: shapes come from `setup` and `forward`, while the input's size changes."""
    text = python("Growing", "", "n") + python("Target", "n", "t") + fully("t", "a", 2)
    text += fully("n", "s") + python("Pieces", "s", "p") + fully("p", "b", 2)
    net = make(text, force=False)
    w, b = (blob.data for blob in net.params["a"])
    for rows in (1, 2, 3):
        out = net.forward()
        np.testing.assert_allclose(out["a"], np.full((1, 3), rows) @ w.T + b, rtol=1e-5)
        assert out["b"].shape == (rows, 2)
        assert net.blobs["p"].shape == (rows, 1)
    net.reshape()
    assert net.blobs["t"].shape == (1, 3)
    assert net.blobs["p"].shape == (3, 1)
    again = make(text, force=False)
    before = again.layer_dict["target_t"].reshaped
    again.forward()
    again.forward()
    assert again.layer_dict["target_t"].reshaped == before + 2


def test_a_python_loss_whose_top_grows_keeps_its_weight():
    text = source() + python("Growing", "", "n", "loss_weight: 2") + fully("x", "a")
    net = make(text, force=False)
    for rows in (1, 2, 3):
        assert net._forward(0, len(net.layers) - 1) == 2 * rows * rows * 3
        assert (net.blobs["n"].diff == 2).all()


def test_a_loss():
    text = source(names="x y") + fully("x", "a") + python("Absolute", "a y", "l", "loss_weight: 2")
    net = make(text, force=False)
    y = np.full((4, 3), 0.5, np.float32)
    net.blobs["x"].data[...], net.blobs["y"].data[...] = x(), y
    loss = net._forward(0, len(net.layers) - 1)
    w, b = (blob.data for blob in net.params["a"])
    diff = x() @ w.T + b - y
    assert loss == pytest.approx(2 * np.abs(diff).sum(), rel=1e-5)
    assert net.blob_loss_weights["l"] == 2
    net.backward()
    np.testing.assert_allclose(net.params["a"][1].diff, 2 * np.sign(diff).sum(0))
    np.testing.assert_allclose(net.params["a"][0].diff, 2 * np.sign(diff).T @ x(), rtol=1e-4)


def test_a_layer_that_learns(tmp_path):
    text = source() + fully("x", "a") + python("Shift", "a", "b")
    net = make(text)
    name = "shift_b"
    layer = net.layers[list(net._layer_names).index(name)]
    assert isinstance(layer, Shift)
    assert layer is net.layer_dict[name]
    assert (layer.type, layer.blobs[0].data.tolist()) == ("Python", [1, 2, 3])
    assert layer.blobs[0].data is net.params[name][0].data
    assert np.shares_memory(layer.blobs[0].data, np.asarray(net.flat_params))
    w, b = (blob.data for blob in net.params["a"])
    np.testing.assert_allclose(
        net.forward(x=x())["b"], x() @ w.T + b + [1, 2, 3], rtol=1e-5, atol=1e-5
    )
    for times in (1, 2):
        net.backward(b=np.ones((4, 3)))
        assert layer.blobs[0].diff.tolist() == [4 * times] * 3
    layer.blobs[0].data[...] = 0
    net.save(tmp_path / "net.caffemodel")
    other = make(text)
    other.copy_from(tmp_path / "net.caffemodel")
    assert other.params[name][0].data.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(other.forward(x=x())["b"], net.forward(x=x())["b"])


def test_a_solver_trains_a_layer_that_learns():
    text = source() + python("Shift", "x", "b") + (
        'layer { name: "l" type: "Reduction" bottom: "b" top: "l" loss_weight: 1 }'
    )  # fmt: skip
    solver = caffe.solver_from_text('base_lr: 0.25 lr_policy: "fixed"', net=parse_net(text))
    solver.step(2)
    np.testing.assert_allclose(solver.net.params["shift_b"][0].data, [-1, 0, 1])


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_phase(phase):
    assert make(python("Phase", "", "p"), phase, force=False).forward()["p"] == phase


@pytest.mark.parametrize("place", ["setup", "reshape", "forward", "backward"])
def test_errors_keep_their_type_and_name_the_layer(place):
    def use():
        net = make(source() + fully("x", "a") + python("Failing", "a", "b", text=place))
        net.forward(x=x())
        net.backward(b=np.ones((4, 3)))

    with pytest.raises(OwnError, match=f"layer 'failing_b': .*no luck in {place}") as caught:
        use()
    assert isinstance(caught.value, LayerError)
    assert caught.value.layer == "failing_b"
    assert isinstance(caught.value.__cause__, OwnError)


def test_builtin_errors_keep_their_type():
    for text, kind in (("shape", ValueError), ("key", KeyError)):
        net = make(source() + python("Failing", "x", "b", text=text))
        with pytest.raises(kind, match="layer 'failing_b'"):
            net.forward(x=x())
        assert make(source() + fully("x", "a")).forward(x=x())["a"].shape == (4, 3)


def test_an_interrupt_passes():
    net = make(source() + python("Failing", "x", "b", text="stop"))
    with pytest.raises(KeyboardInterrupt):
        net.forward(x=x())


def test_nothing_of_a_net_stays():
    net = make(source() + python("TimesTen", "x", "y"))
    layer = weakref.ref(net.layers[1])
    assert isinstance(layer(), TimesTen)
    del net
    gc.collect()
    assert layer() is None


def test_layers_of_2015():
    for phase, factor in ((caffe.TRAIN, 3), (caffe.TEST, 6)):
        net = make(source() + python("Of2015", "x", "y", text="3"), phase)
        np.testing.assert_array_equal(net.forward(x=x())["y"], factor * x())
    with pytest.raises(AttributeError, match="'Of2015' object has no attribute 'backward'"):
        net.backward(y=x())
