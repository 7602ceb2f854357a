"""Net and Blob, by what pycaffe's own interface promises."""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import ArrayError, FileError, LayerError, SpecError
from tests.caffe.nets import TEXT, make, small


def write(folder: Path, text: str, name: str = "net.prototxt") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


# -- constructors ------------------------------------------------------------------------


def test_every_way_to_make_a_net(tmp_path):
    path, weights = write(tmp_path, TEXT), str(tmp_path / "net.caffemodel")
    first = caffe.Net(path, caffe.TRAIN)
    first.save(weights)
    made = [
        caffe.Net(path, weights, caffe.TRAIN),
        caffe.Net(path, caffe.TEST, weights=weights),
        caffe.Net(network_file=path, phase=caffe.TEST, level=0, stages=[], weights=weights),
        caffe.Net(path, caffe.TRAIN, 0, None, weights),
        caffe.Net(path, caffe.TRAIN, 0, ("x",), weights),
        caffe.Net(tmp_path / "net.prototxt", tmp_path / "net.caffemodel", caffe.TEST),
    ]
    for net in made:
        for name, blobs in first.params.items():
            for number, blob in enumerate(blobs):
                np.testing.assert_array_equal(net.params[name][number].data, blob.data)
    assert [net.graph.phase for net in made] == [0, 1, 1, 0, 0, 1]
    assert first.name == "testnet"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("net.prototxt",), "phase must be caffe.TRAIN or caffe.TEST"),
        (("net.prototxt", 2), "phase must be caffe.TRAIN or caffe.TEST; it is 2"),
        (("net.prototxt", "none.caffemodel", caffe.TEST), "none.caffemodel"),
        (("none.prototxt", caffe.TEST), "none.prototxt"),
    ],
)
def test_what_makes_no_net(words, message, tmp_path, monkeypatch):
    write(tmp_path, TEXT)
    monkeypatch.chdir(tmp_path)
    with pytest.raises((SpecError, FileError), match=message):
        caffe.Net(*words)


def test_stages_and_levels(tmp_path):
    rules = ["phase: TRAIN", 'stage: "a"', 'stage: "a" stage: "b"', 'not_stage: "b"']
    rules += ["min_level: 2", "max_level: 1", ""]
    text = 'input: "x" input_shape { dim: 1 }\n'
    for number, rule in enumerate(rules):
        text += (
            f'layer {{ name: "{number}" type: "Power" bottom: "x" top: "t{number}" '
            f"include {{ {rule} }} }}\n"
        )
    path = write(tmp_path, text)

    def layers(*words, **options):
        names = caffe.Net(path, *words, **options)._layer_names
        return "".join(name for name in names if name.isdigit())

    assert layers(caffe.TEST) == "356"
    assert layers(caffe.TRAIN) == "0356"
    assert layers(caffe.TEST, stages=["a"]) == "1356"
    assert layers(caffe.TEST, stages=["b", "a"]) == "1256"
    assert layers(caffe.TEST, level=2) == "346"
    assert layers(caffe.TRAIN, 2, ["a", "b"]) == "01246"


# -- what a net shows --------------------------------------------------------------------


def test_names_and_lists():
    net = make()
    assert list(net.blobs) == net._blob_names == ["data", "label", "conv", "ip_blob", "loss"]
    assert isinstance(net.blobs, OrderedDict)
    assert list(net._layer_names) == list(net.layer_dict) == ["in", "conv", "ip", "loss"]
    assert [layer.type for layer in net.layers] == [
        "Input", "Convolution", "InnerProduct", "SoftmaxWithLoss",
    ]  # fmt: skip
    assert [len(layer.blobs) for layer in net.layers] == [0, 2, 2, 0]
    assert net.layer_dict["conv"] is net.layers[1]
    assert net.layers[1].blobs[0].data is net.params["conv"][0].data
    assert list(net.params) == ["conv", "ip"]
    assert net.inputs == ["data", "label"]
    assert net.outputs == ["loss"]
    assert (net._inputs, net._outputs) == ([0, 1], [4])
    assert net._blobs[2] is net.blobs["conv"]
    assert net.top_names == OrderedDict(
        [("in", ["data", "label"]), ("conv", ["conv"]), ("ip", ["ip_blob"]), ("loss", ["loss"])]
    )
    assert net.bottom_names["loss"] == ["ip_blob", "label"]
    assert net.bottom_names["in"] == []
    assert (net._bottom_ids(3), net._top_ids(3)) == ([3, 1], [4])
    assert net.blob_loss_weights == OrderedDict(
        [("data", 0), ("label", 0), ("conv", 0), ("ip_blob", 0), ("loss", 0.5)]
    )


def test_blob():
    blob = make().blobs["data"]
    assert (blob.num, blob.channels, blob.height, blob.width, blob.count) == (5, 2, 3, 4, 120)
    assert list(blob.shape) == [5, 2, 3, 4]
    assert blob.data.shape == blob.diff.shape == (5, 2, 3, 4)
    assert blob.data.dtype == blob.diff.dtype == np.float32
    label = make().blobs["label"]
    assert (label.num, label.channels, label.height, label.width) == (5, 1, 1, 1)
    loss = make().blobs["loss"]
    assert (loss.count, loss.data.shape, float(loss.data)) == (1, (), 0)
    blob.reshape(1, 2, 3, 4, 5)
    assert blob.data.shape == (1, 2, 3, 4, 5)
    with pytest.raises(ArrayError, match="at most 4 axes"):
        _ = blob.num
    for shape in [(-1, 2), (1 << 40,), (1 << 33, 1 << 33), (1,) * 40]:
        with pytest.raises(ArrayError, match="no blob can have the shape"):
            blob.reshape(*shape)
    with pytest.raises(TypeError):
        blob.reshape(2.5, 2)
    blob.reshape(*np.array([5, 2, 3, 4]))
    assert blob.shape == (5, 2, 3, 4)
    with pytest.raises(AttributeError):
        blob.data = np.zeros(3)


# -- passes ------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_forward_and_backward():
    net = make()
    out = net.forward()
    assert list(out) == ["loss"]
    scores = softmax(net.blobs["ip_blob"].data.astype(np.float64))
    labels = net.blobs["label"].data.astype(int)
    want = -np.log(scores[range(5), labels]).mean()
    assert float(out["loss"]) == pytest.approx(want, rel=1e-5)
    grads = net.backward()
    assert list(grads) == ["data", "label"]
    scores[range(5), labels] -= 1
    diff = 0.5 / 5 * scores
    np.testing.assert_allclose(net.blobs["ip_blob"].diff, diff, atol=1e-6)
    np.testing.assert_allclose(net.params["ip"][1].diff, diff.sum(0), atol=1e-6)
    assert np.abs(grads["data"]).max() > 0


def test_forward_from_here_to_there():
    net = small()
    x, more = np.ones((4, 3), np.float32), np.full((4, 2), 2, np.float32)
    out = net.forward(data=x, more=more)
    w, b = (blob.data for blob in net.params["ip"])
    np.testing.assert_allclose(out["sum"], x @ w.T + b + 2, rtol=1e-6)
    assert sorted(net.forward(blobs=["ip", "data"])) == ["data", "ip", "sum"]
    net.blobs["more"].data[...] = 5
    part = net.forward(end="ip")
    assert list(part) == ["ip"]
    np.testing.assert_allclose(net.blobs["sum"].data, x @ w.T + b + 2, rtol=1e-6)
    net.blobs["ip"].data[...] = 1
    assert (net.forward(start="sum")["sum"] == 6).all()
    assert sorted(net.forward(["more"], start="sum", end="sum")) == ["more", "sum"]
    assert net._forward(2, 2) == 0


def test_backward_from_here_to_there():
    net = small()
    net.forward()
    ones = np.ones((4, 2), np.float32)
    grads = net.backward(sum=3 * ones, diffs=["ip"])
    assert sorted(grads) == ["data", "ip", "more"]
    assert (grads["more"] == 3).all()
    w = net.params["ip"][0].data
    np.testing.assert_allclose(grads["data"], 3 * ones @ w, rtol=1e-5)
    net.blobs["ip"].diff[...] = ones
    grads = net.backward(start="ip")
    np.testing.assert_allclose(grads["data"], ones @ w, rtol=1e-5)
    assert list(net.backward(end="sum")) == ["ip", "more"]
    np.testing.assert_allclose(
        net.backward(start="ip", ip=2 * ones)["data"], 2 * ones @ w, rtol=1e-5
    )
    net.backward(start="ip", sum=7 * ones)  # pycaffe takes the net's outputs, whatever the start
    assert (net.blobs["sum"].diff == 7).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: net.forward(data=np.ones((4, 3))), "are not those of the net"),
        (lambda net: net.forward(data=1, more=2), "not batch sized"),
        (
            lambda net: net.forward(data=np.ones((3, 3)), more=np.ones((4, 2))),
            "input 'data' is 3 x 3, not batch sized: the blob is 4 x 3",
        ),
        (
            lambda net: net.forward(data=np.ones((4, 5)), more=np.ones((4, 2))),
            "input 'data' is 4 x 5; the blob is 4 x 3",
        ),
        (lambda net: net.forward(start="sums"), "layer 'sums': the net has no such layer"),
        (lambda net: net.forward(end="data"), "layer 'data': the net has no such layer"),
        (lambda net: net.forward(blobs=["y"]), "the net has no blob 'y'"),
        (lambda net: net.backward(ip=np.ones((4, 2))), "output gradient"),
        (lambda net: net.backward(sum=np.ones((1, 2))), "not batch sized"),
        (lambda net: net.backward(diffs=["y"]), "the net has no blob 'y'"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((SpecError, LayerError), match=message):
        call(small())


def test_a_bad_label_names_the_layer_and_leaves_the_net_usable():
    net = make()
    want = float(net.forward()["loss"])
    good = net.blobs["label"].data.copy()
    net.blobs["label"].data[2] = 13
    with pytest.raises(LayerError, match=r"layer 'loss'.*13"):
        net.forward()
    net.blobs["label"].data[...] = good
    assert float(net.forward()["loss"]) == want


# -- shapes ------------------------------------------------------------------------------


def test_a_net_is_not_pickled():
    import pickle

    with pytest.raises(TypeError, match="a Net cannot be pickled"):
        pickle.dumps(make())


def test_programs_put_attributes_of_their_own_on_nets_and_blobs():
    """As py-faster-rcnn's test_net.py does with ``net.name``."""
    net = make()
    assert net.name == "testnet"
    net.name, net.classes = "vgg16_iter_70000", ["cat", "dog"]
    net.blobs["conv"].title = "first"
    assert (net.name, net.classes, net.blobs["conv"].title) == (
        "vgg16_iter_70000",
        ["cat", "dog"],
        "first",
    )


def test_callbacks():
    net, seen = small(), list[tuple[str, int]]()
    want = net.forward()["sum"].copy()
    for name in ("before_forward", "after_forward", "before_backward", "after_backward"):
        getattr(net, name)(lambda layer, name=name: seen.append((name, layer)))
    np.testing.assert_array_equal(net.forward()["sum"], want)
    assert seen == [(f"{when}_forward", n) for n in range(3) for when in ("before", "after")]
    seen.clear()
    net.backward(end="ip")
    assert seen == [(f"{when}_backward", n) for n in (2, 1) for when in ("before", "after")]
    net.before_forward(lambda layer: net.blobs["ip"].data.fill(layer) if layer == 2 else None)
    assert (net.forward()["sum"] == net.blobs["more"].data + 2).all()


def test_callbacks_keep_the_loss():
    net = make()
    loss = net._forward(0, 3)
    assert loss == pytest.approx(0.5 * float(net.blobs["loss"].data))
    net.after_forward(lambda layer: None)
    assert net._forward(0, 3) == pytest.approx(loss)


def test_forward_all_cuts_the_padding_off():
    net = small()
    rng = np.random.default_rng(2)
    for count in (1, 4, 7, 8):
        x, more = rng.normal(size=(count, 3)), rng.normal(size=(count, 2))
        outs = net.forward_all(data=x, more=more, blobs=["ip"])
        w, b = (blob.data for blob in net.params["ip"])
        np.testing.assert_allclose(outs["ip"], x @ w.T + b, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(outs["sum"], x @ w.T + b + more, rtol=1e-4, atol=1e-6)


def test_forward_all_gives_a_loss_for_each_batch():
    net = make()
    x, labels = np.random.default_rng(2).normal(size=(7, 2, 3, 4)), np.arange(7)
    losses = net.forward_all(data=x, label=labels)["loss"]
    assert losses.shape == (2,)
    assert losses[0] == net.forward(data=x[:5], label=labels[:5])["loss"]


def test_forward_backward_all():
    net = small()
    rng = np.random.default_rng(3)
    x, more, top = (rng.normal(size=(6, n)).astype(np.float32) for n in (3, 2, 2))
    outs, grads = net.forward_backward_all(data=x, more=more, sum=top, blobs=["ip"], diffs=["ip"])
    w, b = (blob.data for blob in net.params["ip"])
    np.testing.assert_allclose(outs["sum"], x @ w.T + b + more, rtol=1e-4, atol=1e-6)
    assert sorted(outs) == ["ip", "sum"]
    assert sorted(grads) == ["data", "ip", "more"]
    np.testing.assert_array_equal(grads["more"], top)
    np.testing.assert_allclose(grads["data"], top @ w, rtol=1e-4, atol=1e-6)
