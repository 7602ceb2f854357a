"""WeightCollection: a net's weights by layer name, over one flat buffer."""

import pickle
import tracemalloc

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import ArrayError, FileError, WeightsError
from sparknet.native import NDArray
from sparknet.proto import parse_net
from sparknet.weights import LayerBlobs, Layout, WeightCollection

NET = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "a"
  convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "a" top: "b" }
layer { name: "one" type: "InnerProduct" bottom: "b" top: "c" param { name: "w" }
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "two" type: "InnerProduct" bottom: "b" top: "d" param { name: "w" }
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
"""


def test_a_new_folder_and_a_name_of_another_format(tmp_path):
    weights = WeightCollection.of(make_net())
    for name in ("new/folder/m.caffemodel", "other/m.h5"):
        weights.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 4 * weights.flat.size
    for name in ("m.pt", "m.onnx", "m.HDF5"):
        with pytest.raises(FileError, match="caffemodel by another name: name it"):
            weights.save(tmp_path / name)


def make_net(seed: int = 1) -> caffe.Net:
    return caffe.Net.from_proto(parse_net(NET), caffe.TRAIN, seed=seed)


def collection(seed: int = 1) -> WeightCollection:
    return WeightCollection.of(make_net(seed))


def plain(*layers: tuple[str, tuple[int, ...]]) -> WeightCollection:
    """One parameter a layer, with values 0, 1, 2 …"""
    blobs, begin = [], 0
    for name, shape in layers:
        blobs.append(LayerBlobs(name, (shape,), (begin,)))
        begin += int(np.prod(shape))
    return WeightCollection(Layout(tuple(blobs)), NDArray(np.arange(begin, dtype=np.float32)))


def test_layers_are_views_of_one_buffer():
    weights = collection()
    assert list(weights) == ["conv", "bn", "one", "two"]
    assert [view.shape for view in weights["conv"]] == [(3, 3, 1, 1), (3,)]
    weights["conv"][1].fill(7)
    np.testing.assert_array_equal(weights.flat.numpy()[9:12], 7)


def test_a_shared_parameter_lies_in_the_buffer_once():
    net, weights = make_net(), collection()
    assert weights.layout.size == net.flat_params.size == 12 + 7 + 240 + 5 + 5
    weights["one"][0].fill(3)
    np.testing.assert_array_equal(weights["two"][0].numpy(), 3)
    assert weights["one"][1].address != weights["two"][1].address


def test_statistics_are_the_spans_of_batch_norm():
    assert collection().layout.statistics == ((12, 19),)


def test_of_copies_or_lends_the_memory_of_the_net():
    net = make_net()
    copied, lent = WeightCollection.of(net), WeightCollection.of(net, copy=False)
    lent *= 0
    assert not net.params["conv"][0].data.any()
    assert copied.norm() > 0
    copied.to_net(net)
    np.testing.assert_array_equal(net.params["conv"][0].data, copied["conv"][0].numpy())


def test_a_net_that_shares_some_weights_of_another_is_read_where_they_lie():
    small = NET[: NET.index('layer { name: "two"')]
    one = caffe.Net.from_proto(parse_net(small), caffe.TRAIN, seed=1)
    two = make_net(2)
    two.share_with(one)
    weights = WeightCollection.of(two)
    np.testing.assert_array_equal(weights["conv"][0].numpy(), one.params["conv"][0].data)
    with pytest.raises(ArrayError, match="only copies are to be had"):
        WeightCollection.of(two, copy=False)
    (2 * weights).to_net(two)
    np.testing.assert_array_equal(2 * weights["conv"][0].numpy(), one.params["conv"][0].data)


def test_arithmetic():
    one, two = plain(("a", (2, 2)), ("b", (3,))), plain(("a", (2, 2)), ("b", (3,)))
    two *= 3
    values = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal((one + two).flat.numpy(), 4 * values)
    np.testing.assert_array_equal((one - two).flat.numpy(), -2 * values)
    np.testing.assert_array_equal((2 * -one).flat.numpy(), -2 * values)
    np.testing.assert_array_equal((two / 2).flat.numpy(), 1.5 * values)
    two -= one
    two += one
    two /= 3
    assert two.allclose(one)
    assert one.distance(3 * one) == pytest.approx(2 * float(np.linalg.norm(values)))
    assert one.norm() == pytest.approx(float(np.linalg.norm(values)))


def test_mean():
    one = plain(("a", (2, 2)))
    np.testing.assert_array_equal(
        WeightCollection.mean([one, 5 * one]).flat.numpy(), 3 * one.flat.numpy()
    )
    np.testing.assert_array_equal(
        WeightCollection.mean([one, 5 * one], [3, 1]).flat.numpy(), 2 * one.flat.numpy()
    )
    with pytest.raises(ArrayError, match="no mean of 0 weight collections"):
        WeightCollection.mean([])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (plain(("a", (2, 2))), "layer 'b': the second has no such layer"),
        (plain(("a", (4,)), ("b", (3,))), "layer 'a': parameter 0 is 2 x 2, in the second it is 4"),
        (plain(("a", (2, 2)), ("b", (3,)), ("c", (1,))), "layer 'c': only the second has this"),
        (
            WeightCollection(Layout((LayerBlobs("a", ((2, 2), (1,)), (0, 4)),))),
            "layer 'a': has 1 parameters, the second has 2",
        ),
    ],
)
def test_disagreement_names_the_layer_and_how(other, message):
    one = plain(("a", (2, 2)), ("b", (3,)))
    with pytest.raises(WeightsError, match=message):
        WeightCollection.mean([one, other])
    with pytest.raises(WeightsError, match=message):
        one.distance(other)


def test_layers_are_matched_by_name_whatever_their_order():
    one, two = plain(("a", (2,)), ("b", (1,))), plain(("b", (1,)), ("a", (2,)))
    np.testing.assert_array_equal((one + two).flat.numpy(), [0 + 1, 1 + 2, 2 + 0])


@pytest.mark.parametrize("name", ["net.caffemodel", "net.caffemodel.h5"])
def test_files(tmp_path, name):
    weights = plain(("z", (2, 2)), ("a", (3,)))
    weights.save(tmp_path / name)
    assert weights.allclose(WeightCollection.load(tmp_path / name), 0, 0)


def test_a_caffemodel_keeps_statistics_and_sharing(tmp_path):
    weights = collection()
    weights.save(tmp_path / "mine.caffemodel")
    make_net().save(tmp_path / "theirs.caffemodel")
    for name in ("mine.caffemodel", "theirs.caffemodel"):
        loaded = WeightCollection.load(tmp_path / name)
        assert loaded.layout == weights.layout
        assert loaded.layout.statistics == weights.layout.statistics
        assert loaded.allclose(weights, 0, 0)


def test_hdf5_with_shared_parameters_is_for_a_net(tmp_path):
    collection().save(tmp_path / "w.h5")
    with pytest.raises(WeightsError, match=r"layer 'two': .* load it into a net"):
        WeightCollection.load(tmp_path / "w.h5")


def test_of_layers_with_one_name_the_last_counts(tmp_path):
    layer = 'layer { name: "a" type: "Bias" blobs { shape { dim: 1 } data: %d } }'
    model = parse_net(layer % 1 + layer % 2)
    (tmp_path / "w.caffemodel").write_bytes(model.SerializeToString())
    weights = WeightCollection.load(tmp_path / "w.caffemodel")
    np.testing.assert_array_equal(weights.flat.numpy(), [2])


def test_pickles_as_one_buffer():
    """244 MB (AlexNet's weights) leave out of band, uncopied, and arrive as they are."""
    weights = plain(("fc", (61_000_000,)))
    buffers: list[pickle.PickleBuffer] = []
    tracemalloc.start()
    head = pickle.dumps(weights, 5, buffer_callback=buffers.append)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert len(head) < 2000
    assert [buffer.raw().nbytes for buffer in buffers] == [244_000_000]
    arrived = pickle.loads(head, buffers=buffers)
    assert arrived.flat.address == weights.flat.address


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickles_in_band(protocol):
    weights = collection()
    data = pickle.dumps(weights, protocol)
    assert len(data) < weights.flat.nbytes + 2000
    arrived = pickle.loads(data)
    assert arrived.layout == weights.layout
    assert arrived.layout.statistics == weights.layout.statistics
    assert arrived.allclose(weights, 0, 0)
    arrived.flat.fill(0)
    assert weights.norm() > 0


def test_what_is_not_finite_is_named():
    weights = collection()
    weights.check_finite()
    weights["two"][1][2] = float("nan")
    assert not weights.is_finite()
    with pytest.raises(WeightsError, match="layer 'two': parameter 1 holds nan"):
        weights.check_finite()


def test_misuse_is_one_sentence():
    weights = collection()
    with pytest.raises(ArrayError, match="a list is no WeightCollection"):
        weights.distance([1.0])
    with pytest.raises(ArrayError, match="scaled by a number, not by a str"):
        weights * "2"
    with pytest.raises(
        ArrayError, match="weights of 269 numbers cannot lie in a buffer of shape 3"
    ):
        WeightCollection(weights.layout, NDArray.zeros((3,)))
