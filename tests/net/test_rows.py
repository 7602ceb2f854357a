"""Data of any kind: what a net sees of it, and what is said where it does not fit."""

from collections import namedtuple
from itertools import cycle, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet import NDArray, Net
from sparknet.errors import DataError, FileError, SpecError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords
from sparknet.net.rows import Stream, open_rows
from tests.net.nets import NET, solver_text

X = np.arange(40, dtype=np.float32).reshape(20, 2)
Y = np.arange(20) % 3
Point = namedtuple("Point", ["label", "data"])


def parts(size):
    return [(X[i : i + size], Y[i : i + size]) for i in range(0, 20, size)]


class Again:
    """Can be iterated again and again, and has no length."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return self.items()


STRUCTURED = np.zeros(20, [("data", np.float32, 2), ("label", np.int64)])
STRUCTURED["data"], STRUCTURED["label"] = X, Y

KINDS = {
    "columns": lambda: {"data": X, "label": Y, "other": Y},
    "tuple of columns": lambda: (X, Y),
    "named tuple of columns": lambda: Point(Y, X),
    "NDArrays": lambda: (NDArray(X), NDArray(Y)),
    "structured": lambda: STRUCTURED,
    "records": lambda: ArrayRecords(data=X, label=Y),
    "list of tuples": lambda: [(X[i], Y[i]) for i in range(20)],
    "list of lists": lambda: [[X[i].tolist(), int(Y[i])] for i in range(20)],
    "list of dicts": lambda: [{"label": Y[i], "data": NDArray(X[i])} for i in range(20)],
    "named tuples": lambda: [Point(Y[i], X[i]) for i in range(20)],
    "generator of records": lambda: ((X[i], Y[i]) for i in range(20)),
    "generator of batches": lambda: iter(parts(5)),
    "list of batches": lambda: parts(3),
    "batches as dicts": lambda: [{"data": x, "label": y} for x, y in parts(7)],
    "records and batches": lambda: [*parts(7)[:2], *[(X[i], Y[i]) for i in range(14, 20)]],
    "iterated again": lambda: Again(lambda: iter(parts(8))),
    "a column too many axes": lambda: (X.reshape(20, 1, 2), Y.reshape(20, 1)),
    "endless": lambda: cycle([(X[i], Y[i]) for i in range(20)]),
    "batches of a loader": lambda: Batches(
        ArrayRecords(data=X, label=Y), 8, Order(20, shuffle=False)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_is_the_same_data(kind):
    net = Net(solver_text())
    net.set_training_data(KINDS[kind]())
    for step in range(2):
        assert net.fill() == 8
        rows = np.arange(8 * step, 8 * step + 8)
        np.testing.assert_array_equal(net.net.blobs["data"].data, X[rows])
        np.testing.assert_array_equal(net.net.blobs["label"].data, Y[rows])


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("endless", "batches of a loader")]
)
def test_every_kind_of_data_is_tested_whole(kind):
    net = Net(solver_text(test_iter=100, test_interval=1))
    net.set_validation_data(KINDS[kind]())
    whole = net.forward((X, Y))
    for name, value in net.test().items():
        assert value == pytest.approx(float(whole[name]), rel=1e-5)


def test_a_path_is_opened_by_the_loaders(tmp_path):
    np.savez(tmp_path / "points.npz", data=X, label=Y)
    net = Net(solver_text())
    net.set_training_data(tmp_path / "points.npz")
    net.fill()
    np.testing.assert_array_equal(net.net.blobs["data"].data, X[:8])
    with pytest.raises(FileError, match="nowhere"):
        net.set_training_data(str(tmp_path / "nowhere.npz"))


def test_training_goes_round_and_round():
    """Behind the last record comes the first, in the same batch."""
    for kind in ("columns", "records", "list of tuples", "iterated again"):
        net = Net(solver_text())
        net.set_training_data(KINDS[kind]())
        seen = []
        for _ in range(10):
            net.fill()
            seen.append(net.net.blobs["data"].data.copy())
        np.testing.assert_array_equal(np.concatenate(seen), np.tile(X, (4, 1)))
        assert net.taken == 80


def test_what_cannot_be_had_again_ends_with_a_shorter_batch_and_a_sentence():
    net = Net(solver_text())
    net.set_training_data(iter(parts(5)))
    net.train(3)
    assert net.net.blobs["data"].shape == (4, 2)
    with pytest.raises(DataError, match="the training data ended after 20 records"):
        net.train(1)
    net.set_training_data((X, Y))
    net.train(1)
    assert net.net.blobs["data"].shape == (8, 2)


def test_nothing_is_taken_from_an_iterator_before_it_is_needed():
    """So the cursor of a loader's batches is where training is."""
    batches = KINDS["batches of a loader"]()
    net = Net(solver_text())
    net.set_training_data(batches)
    assert batches.cursor == Order(20, shuffle=False).cursor
    net.train(2)
    order = Order(20, shuffle=False)
    order.next(16)
    assert batches.cursor == order.cursor


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 12))
def test_no_size_of_batch_loses_a_record(sizes, batch):
    ends = np.cumsum([0, *sizes])
    items = [(np.arange(a, b), -np.arange(a, b)) for a, b in pairwise(ends)]
    entries = Net(NET).tested.entries
    batches = [{"label": labels, "data": np.stack([x, x], 1)} for x, labels in items]
    rows = open_rows(batches, lambda: entries, [])
    stream, seen = Stream(rows, endless=False, what="data"), []
    while (block := stream.take(batch)) is not None:
        seen.append(block)
        assert len(block["label"]) == len(block["data"]) <= batch
    found = [-label for block in seen for label in block["label"]]
    assert found == list(range(sum(sizes)))
    assert all(len(block["label"]) == batch for block in seen[:-1])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"data": X}, "the training data has no column 'label'; it has 'data'"),
        (X, "the training data has no column 'label'; it has 'data'"),
        ([{"data": X[0], "y": 1}], "has no column 'label'; it has 'data', 'y'"),
        ((X, Y, Y), "a record has 3 parts, the net's inputs are 'data', 'label'"),
        ((X, Y[:7]), "differ in their number of records: 'data' has 20, 'label' has 7"),
        ((X[:0], Y[:0]), "the data is empty"),
        ([{}], "has no column 'data'; it has none"),
        ([], "the data is empty"),
        (ArrayRecords(data=X[:0], label=Y[:0]), "the data is empty"),
        (7, "a int is not data: it cannot be iterated"),
        (b"train", "a bytes is not data"),
    ],
)
def test_what_is_no_data_is_refused_at_once(data, message):
    with pytest.raises(DataError, match=message):
        Net(solver_text()).set_training_data(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((np.ones((20, 3)), Y), "column 'data': a record is 3, the net wants 2"),
        ([(np.ones((2, 2)), 1)], r"column 'label' is array\(1\), not one value for each record"),
        (
            [(np.ones((2, 2)), [1])],
            "number of records: 'data' has 2, 'label' has 1",
        ),
        ([(X[0], 1), (X[0, :1], 1)], "column 'data': a record is 1, one before it is 2"),
        ((X, Y + 0.5), "column 'label': the label 0.5 is no whole number"),
        (
            (X, np.full(20, "cat")),
            "column 'label' holds values such as 'cat', not numbers: number the classes from 0",
        ),
        ((X, np.eye(20)), "column 'label': a record is 20, the net wants one number"),
        (iter([]), "the training data ended after 0 records"),
        (({"data": x} for x in X), "the training data has no column 'label'; it has 'data'"),
        ([{"data": X[0], "label": 1}, {"data": X[0]}], "record 1 of a batch has no column 'label'"),
        ((X, Y + 5), "label"),
    ],
)
def test_what_does_not_fit_is_named(data, message):
    net = Net(solver_text())
    net.set_training_data(data)
    with pytest.raises((DataError, SpecError), match=message) as caught:
        net.train(3)
    assert "\n" not in str(caught.value)


def test_a_generator_is_tested_for_so_many_steps_or_to_its_end():
    net = Net(NET)
    net.set_validation_data(KINDS["endless"]())
    with pytest.raises(SpecError, match="the data may have no end: say how many steps"):
        net.test()
    net.test(7)
    net.set_validation_data(KINDS["generator of records"]())
    whole = net.forward((X, Y))
    assert net.test(100)["loss"] == pytest.approx(float(whole["loss"]), rel=1e-5)
    with pytest.raises(DataError, match="the data has come to its end"):
        net.test(1)
    with pytest.raises(SpecError, match="at least 1 step, not 0"):
        net.test(0)


def test_inputs_of_unlike_batch_sizes_are_for_forward():
    text = """
    layer { name: "image" type: "Input" top: "data"
      input_param { shape { dim: 1 dim: 2 dim: 8 dim: 8 } } }
    layer { name: "boxes" type: "Input" top: "rois" input_param { shape { dim: 3 dim: 5 } } }
    layer { name: "pool" type: "ROIPooling" bottom: "data" bottom: "rois" top: "pool"
      roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: 1 } }
    """
    net = Net(text, phase=0)
    boxes = np.array([[0, 0, 0, 7, 7]] * 6)
    assert net.forward((np.ones((1, 2, 9, 9)), boxes))["pool"].shape == (6, 2, 2, 2)
    net.set_training_data((np.ones((1, 2, 8, 8)), boxes[:1]))
    with pytest.raises(DataError, match=r"differ in their batch size \('data' 1, 'rois' 3\)"):
        net.fill()


def test_forward_says_what_is_missing():
    net = Net(NET)
    with pytest.raises(DataError, match="none of the net's inputs data, label: it has 'image'"):
        net.forward({"image": X})
    with pytest.raises(DataError, match="'loss' needs the column 'label', which is not given"):
        net.forward({"data": X}, ["loss"])
    with pytest.raises(SpecError, match="the net has no blob 'los'; did you mean 'loss'"):
        net.forward((X, Y), ["los"])
    assert set(net.forward((X, Y), ["ip", "data"])) == {"ip", "data"}
    assert net.forward((X[0], Y[0]), ["ip"])["ip"].shape == (1, 3)


def test_a_batch_that_does_not_fit_leaves_the_net_as_it_was():
    net = Net(NET, seed=1)
    first = net.forward((X, Y))
    with pytest.raises(SpecError, match=r"layer 'ip'.* do not fit parameter 0"):
        net.forward((np.ones((5, 7)), Y[:5]))
    second = net.forward((X, Y))
    np.testing.assert_array_equal(first["loss"], second["loss"])


def test_grey_images_need_no_axis_of_channels():
    text = """
    layer { name: "d" type: "Data" top: "data" top: "label" data_param { source: "x" batch_size: 4 }
      transform_param { scale: 0.5 crop_size: 6 } }
    """
    pixels = np.random.default_rng(0).integers(0, 256, (10, 8, 8), np.uint8)
    for data in ((pixels, np.arange(10)), zip(pixels, range(10), strict=True)):
        net = Net(text)
        net.set_validation_data(data)
        net.fill()
        np.testing.assert_array_equal(net.net.blobs["data"].data[:, 0], pixels[:4, 1:7, 1:7] / 2)


def test_only_class_numbers_must_be_whole():
    text = 'layer { name: "l" type: "EuclideanLoss" bottom: "data" bottom: "label" top: "loss" }'
    inputs = """
    layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 8 } } }
    layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 8 } } }
    """
    out = Net(inputs + text).forward((X[:, 0], X[:, 0] + 0.5))
    assert float(out["loss"]) == pytest.approx(0.125)


CRNN = """
layer { name: "in" type: "Input" top: "image" top: "cont" top: "label" input_param {
  shape { dim: [4, 1, 3, 5] } shape { dim: [5, 4] } shape { dim: [5, 4] } } }
layer { name: "conv" type: "Convolution" bottom: "image" top: "conv" convolution_param {
  num_output: 2 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "columns" type: "Permute" bottom: "conv" top: "columns"
  permute_param { order: [3, 0, 1, 2] } }
layer { name: "lstm" type: "LSTM" bottom: "columns" bottom: "cont" top: "lstm"
  recurrent_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "lstm" top: "ip"
  inner_product_param { num_output: 3 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
  softmax_param { axis: 2 } }
"""


def test_images_that_become_sequences():
    """CRNN: records are first in the images, and side by side behind time in what follows."""
    net = Net(CRNN, seed=1)
    rng = np.random.default_rng(0)
    images, cont = rng.normal(size=(9, 1, 3, 5)), np.tile([0, 1, 1, 1, 1], (9, 1))
    label = rng.integers(0, 3, (9, 5))
    assert {name: entry.axis for name, entry in net.inputs.items()} == {
        "image": 0,
        "cont": 1,
        "label": 1,
    }
    net.set_validation_data([(i, c, y) for i, c, y in zip(images, cont, label, strict=True)])
    assert net.batch_size == net.fill() == 4
    blobs = net.net.blobs
    np.testing.assert_allclose(blobs["image"].data, images[:4], rtol=1e-6)
    np.testing.assert_array_equal(blobs["label"].data, label[:4].T)
    whole = net.forward({"image": images, "cont": cont}, ["ip"])["ip"]
    assert whole.shape == (5, 9, 3)
    for number in (0, 8):
        alone = net.forward({"image": images[number], "cont": cont[number]}, ["ip"])["ip"]
        np.testing.assert_allclose(alone[:, 0], whole[:, number], rtol=1e-5, atol=1e-6)
    loss = net.test()["loss"]
    exps = np.exp(whole - whole.max(2, keepdims=True))
    right = np.take_along_axis(exps / exps.sum(2, keepdims=True), label.T[..., None], 2)
    assert loss == pytest.approx(-np.log(right).mean(), rel=1e-4)


def picture_net(layers: str) -> str:
    return f"""
    layer {{ name: "in" type: "Input" top: "image"
      input_param {{ shape {{ dim: [2, 3, 8, 8] }} }} }}
    {layers}
    layer {{ name: "ip" type: "InnerProduct" bottom: "image" top: "ip"
      inner_product_param {{ num_output: 2 weight_filler {{ type: "xavier" }} }} }}
    """


def fed(net, data):
    net.set_validation_data(data)
    net.fill()


WAYS = {
    "forward": lambda net, rows: net.forward({"image": rows}),
    "forward one": lambda net, rows: net.forward({"image": rows[0]}),
    "set data": lambda net, rows: fed(net, {"image": rows}),
    "records": lambda net, rows: fed(net, [{"image": row} for row in rows]),
    "batches": lambda net, rows: fed(net, iter([{"image": rows}])),
}


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 4, 16), "a record is 3 x 4 x 16, the net wants 3 x 8 x 8; resize or crop it"),
        ((8, 8, 3), "a record is 8 x 8 x 3, the net wants 3 x 8 x 8; channels come first"),
        ((12, 4, 4), "a record is 12 x 4 x 4, the net wants 3 x 8 x 8"),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_as_many_values_in_another_shape_are_other_values(shape, message, way):
    net = Net(picture_net(""))
    rows = np.zeros((2, *shape), np.float32)

    with pytest.raises(DataError, match=f"column 'image': {message}"):
        WAYS[way](net, rows)
    assert net.forward({"image": np.zeros((5, 3, 8, 8))})["ip"].shape == (5, 2)


LOSS = """
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: [2] } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize(("shape", "hint"), [((8, 8, 3), "; channels"), ((12, 4, 4), "")])
def test_another_shape_is_refused_where_labels_are_missing(rows, shape, hint):
    """Whether or not there are as many records as in the net's own batch."""
    net = Net(picture_net("") + LOSS)
    with pytest.raises(DataError, match=f"the net wants 3 x 8 x 8{hint}"):
        net.forward({"image": np.zeros((rows, *shape), np.float32)}, ["ip"])


def test_a_shape_is_taken_or_refused_each_time():
    """What was found of one shape is remembered, and says nothing of another one."""
    pool = """layer { name: "pool" type: "SPP" bottom: "image" top: "pooled"
      spp_param { pyramid_height: 1 } }"""
    open_net = Net(
        picture_net(pool).replace('bottom: "image" top: "ip"', 'bottom: "pooled" top: "ip"')
    )
    flat = Net(picture_net(""))
    for _ in range(3):
        for size in (9, 5):
            image = np.random.default_rng(size).random((1, 3, size, size + 1), np.float32)
            got = open_net.forward({"image": image}, ["pooled"])["pooled"]
            np.testing.assert_array_equal(got, image.max((2, 3), keepdims=True))
        with pytest.raises(DataError, match="a record is 12 x 4 x 4, the net wants 3 x 8 x 8"):
            flat.forward({"image": np.zeros((1, 12, 4, 4), np.float32)})


def test_image_files_with_their_channels_last_are_told_of_any_size():
    with pytest.raises(DataError, match="9 x 7 x 3, the net wants 3 x 8 x 8; channels come first"):
        Net(picture_net("")).forward({"image": np.zeros((2, 9, 7, 3), np.float32)})


def test_a_frame_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b", "c", "d"], "label": [0, 1, 1, 0]})
    frame["image"] = list(np.random.default_rng(0).normal(size=(4, 192)))
    net = Net(picture_net("") + LOSS, seed=1)
    net.set_validation_data(frame)
    net.fill()
    wanted = np.stack(frame["image"])[:2].reshape(2, 3, 8, 8)
    np.testing.assert_allclose(net.net.blobs["image"].data, wanted, rtol=1e-6)
    assert net.net.blobs["label"].data.tolist() == [0, 1]
    with pytest.raises(DataError, match="the data has no column 'image'; it has 'id'"):
        net.set_validation_data(frame[["id"]])


@pytest.mark.parametrize("way", WAYS)
def test_a_plain_list_has_the_shape_that_the_net_wants(way):
    """As columns of lists in Spark: a file's lists have no other shape."""
    net = Net(picture_net(""))
    pictures = np.arange(2 * 192, dtype=np.float32).reshape(2, 3, 8, 8)
    rows = pictures.reshape(2, 192)

    WAYS[way](net, rows)
    count = 1 if way == "forward one" else 2
    np.testing.assert_array_equal(net.net.blobs["image"].data[:count], pictures[:count])


def test_the_other_columns_say_how_many_records_there_are():
    label = """layer { name: "more" type: "Input" top: "label" input_param { shape { dim: 2 } } }
        layer { name: "silence" type: "Silence" bottom: "label" }"""
    net = Net(picture_net(label))
    net.set_validation_data(iter([{"image": np.zeros((2, 190)), "label": np.zeros(2)}]))
    with pytest.raises(DataError, match="'image': a record is 190, the net wants 3 x 8 x 8"):
        net.fill()


def test_shapes_are_compared_where_weights_know_each_place():
    """A net that is all convolution takes pictures of any size, of as many values too."""
    net = Net(
        picture_net("")
        .replace("InnerProduct", "Convolution")
        .replace(
            "inner_product_param { num_output: 2",
            "convolution_param { kernel_size: 3 num_output: 2",
        )
    )
    for height, width in ((8, 8), (4, 16), (9, 10)):
        found = net.forward({"image": np.zeros((2, 3, height, width))})["ip"]
        assert found.shape == (2, 2, height - 2, width - 2)
