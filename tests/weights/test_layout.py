"""Where blobs lie in the flat buffer, at the edges of each."""

import warnings

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import ArrayError, WeightsError
from sparknet.native import NDArray
from sparknet.proto import parse_net
from sparknet.weights import LayerBlobs, Layout, WeightCollection, WeightsWarning
from sparknet.weights.files import check_layers
from sparknet.weights.layout import Layouts, Scattered


class Blob:
    def __init__(self, shape: tuple[int, ...], dtype: str = "float32") -> None:
        self.data, self.diff = np.zeros(shape, dtype), np.zeros(shape, dtype)


class Foreign:
    """What is asked of another module's net: parameters in memory of their own."""

    def __init__(self, **params: list[Blob]) -> None:
        self.params = params
        self.layer_dict = {}


def layout_of(*layers):
    layouts = Layouts()
    for name, shapes, keys in layers:
        layouts.add(name, "", shapes, keys)
    return layouts.done()


def test_each_place_belongs_to_one_blob():
    layout = layout_of(("a", [(2,), (1,)], [None, None]), ("b", [(2,)], [None]))
    found = [("a", 0), ("a", 0), ("a", 1), ("b", 0), ("b", 0)]
    assert [layout.locate(place) for place in range(5)] == found
    with pytest.raises(ArrayError, match="place 5 lies outside the 5 weights"):
        layout.locate(5)


def test_blobs_of_one_key_and_size_share_a_place():
    layout = layout_of(
        ("a", [(2,), (3,)], ["w", None]), ("b", [(2,), (3,)], ["w", None]), ("c", [(4,)], ["w"])
    )
    assert [one.begins for one in layout.layers] == [(0, 2), (0, 5), (8,)]
    assert layout.size == 12
    assert Layout(()).size == 0
    assert layout.shared == "b"
    with pytest.raises(ArrayError, match="no layers share"):
        _ = layout_of(("a", [(2,)], [None]), ("b", [(2,)], [None])).shared


def test_what_is_shared_in_one_and_not_in_the_other():
    """The values of the larger fit the smaller only by losing some."""
    tied = WeightCollection(layout_of(("a", [(2,)], ["w"]), ("b", [(2,)], ["w"])))
    apart = WeightCollection(layout_of(("a", [(2,)], [None]), ("b", [(2,)], [None])))
    with pytest.raises(WeightsError, match="layer 'b': shares parameters that the second has"):
        tied + apart
    tied.flat.copy_from(np.array([1, 2], np.float32))
    np.testing.assert_array_equal((apart + tied).flat.numpy(), [1, 2, 1, 2])


def test_spans_of_running_sums_that_touch_are_one():
    shapes = ((3,), (3,), (1,))
    layers = [LayerBlobs("a", shapes, (0, 3, 6), "BatchNorm")]
    layers += [LayerBlobs("b", shapes, (7, 10, 13), "BatchNorm")]
    layers += [LayerBlobs("c", ((2,),), (14,), "InnerProduct")]
    layers += [LayerBlobs("d", shapes, (16, 19, 22), "BatchNorm")]
    assert Layout(tuple(layers)).statistics == ((0, 14), (16, 23))


def test_parameters_in_memory_of_their_own_are_gathered_and_scattered():
    net = Foreign(one=[Blob((2, 2)), Blob((2,))], two=[Blob((3,))])
    weights = WeightCollection.of(net)
    assert list(weights) == ["one", "two"]
    gradients = Scattered.gradients(net, weights.layout)
    gradients.scatter(NDArray(np.arange(9, dtype=np.float32)))
    np.testing.assert_array_equal(net.params["one"][1].diff, [4, 5])
    np.testing.assert_array_equal(net.params["two"][0].diff, [6, 7, 8])
    assert not net.params["two"][0].data.any()
    flat = NDArray.zeros((9,))
    gradients.gather(flat)
    np.testing.assert_array_equal(flat.numpy(), np.arange(9))
    with pytest.raises(WeightsError, match="layer 'two': holds float64, not float32"):
        WeightCollection.of(Foreign(two=[Blob((3,), "float64")]))


def test_a_collection_says_how_large_it_is():
    weights = WeightCollection(layout_of(("a", [(2,), (1,)], [None, None]), ("b", [(2,)], [None])))
    assert repr(weights) == "<WeightCollection: 2 layers, 5 weights>"


def test_how_close_is_close_unless_one_says():
    one, other = (WeightCollection(layout_of(("a", [(1,)], [None]))) for _ in range(2))
    one.flat.fill(1.0)
    for difference, close in ((0.9e-5, True), (1.2e-5, False)):
        other.flat.fill(1 + difference)
        assert one.allclose(other) is close
    one.flat.fill(0)
    for difference, close in ((0.9e-8, True), (1.2e-8, False)):
        other.flat.fill(difference)
        assert one.allclose(other, rtol=0) is close
    assert one.allclose(other, 0, 2e-8)


@pytest.mark.parametrize(
    ("count", "said"), [(5, "'l3', 'l4', 'l5'"), (6, "'l3', 'l4', 'l5' and 1 more")]
)
def test_a_warning_lists_five_layers(count, said):
    layers = "".join(
        f'layer {{ name: "l{i}" type: "Scale" bottom: "x" top: "x" }}' for i in range(count + 1)
    )
    shape = "input_param { shape { dim: 1 dim: 2 } }"
    text = f'layer {{ name: "in" type: "Input" top: "x" {shape} }}' + layers
    net = caffe.Net.from_proto(parse_net(text), caffe.TEST)

    class File:
        @staticmethod
        def by_name():
            return {"l0": []}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_layers(net, {"f": File()})
    (one,) = caught
    assert one.category is WeightsWarning
    words = str(one.message)
    assert f"no weights for 'l1', 'l2', {said}, which keep" in words
    assert one.filename == __file__
