"""Nets with data layers are taken as they are: records enter where the layers' tops are."""

import h5py
import numpy as np
import pytest
from PIL import Image

from sparknet import Net, caffe, train
from sparknet.errors import DataError, SpecError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords
from sparknet.net.description import MeanWarning
from sparknet.proto import parse_net, write_blob
from tests.layers.host.nets import images, lmdb, of_images, source
from tests.net.nets import LAYERS, solver_text

TAIL = """
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 40 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
LABELS = np.arange(30)


def entered(net, steps=3):
    """What enters a net in some training passes."""
    seen, labels = [], []
    for _ in range(steps):
        net.fill()
        seen.append(net.net.blobs["data"].data.copy())
        labels.append(net.net.blobs["label"].data.copy())
    return np.concatenate(seen), np.concatenate(labels)


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
@pytest.mark.parametrize("how", ["crop_size: 4 mirror: true scale: 0.5", "mean_value: 7", "mean"])
def test_transform_param_applies_as_in_the_layer(phase, how, tmp_path):
    """The same pixels from the layer's own database and from Python: the same numbers go in."""
    pixels = images(30, 3, 6, 7)
    if how == "mean":
        write_blob(tmp_path / "mean", np.full((3, 6, 7), 9, np.float32), legacy=True)
        how = f"mean_file: '{tmp_path / 'mean'}' crop_size: 5 mirror: true"
    text = lmdb(of_images(tmp_path, pixels), 10, how)
    layer = caffe.Net.from_proto(parse_net(text), phase, seed=3)
    net = Net(text, phase=phase, seed=3)
    assert net.inputs["data"].shape == tuple(layer.blobs["data"].shape)
    net.set_training_data((pixels, LABELS))
    for _ in range(4):
        layer.forward()
        net.fill()
        for name in ("data", "label"):
            np.testing.assert_array_equal(net.net.blobs[name].data, layer.blobs[name].data)


def test_without_data_the_layers_read_their_own_files(tmp_path):
    """As pycaffe trains the same solver, to the last bit."""
    text = solver_text(lmdb(of_images(tmp_path, images(30, 3, 6, 7)), 10, "scale: 0.01") + TAIL)
    net, solver = Net(text), caffe.solver_from_text(text)
    net.train(5)
    solver.step(5)
    np.testing.assert_array_equal(net.flat_weights, solver.net.flat_params)
    assert net.taken == 50


def test_tests_on_its_own_files_need_a_number_of_steps(tmp_path):
    data = lmdb(of_images(tmp_path, images(30, 3, 6, 7)), 10, "scale: 0.01")
    with pytest.raises(SpecError, match="say how many steps to test"):
        Net(solver_text(data + TAIL)).test()
    net = Net(solver_text(data + TAIL, test_iter=3, test_interval=1))
    reference = Net(data + TAIL, seed=1)
    reference.set_validation_data((images(30, 3, 6, 7), LABELS))
    reference.set_weights(net.get_weights())
    assert net.test()["loss"] == pytest.approx(reference.test()["loss"], rel=1e-6)
    assert net.test(3)["loss"] == pytest.approx(reference.test()["loss"], rel=1e-6)


def test_a_file_that_is_not_there_is_not_needed():
    """The data says what the file would have said."""
    text = lmdb("nowhere", 10, "crop_size: 5 scale: 0.1") + TAIL
    net = Net(solver_text(text))
    with pytest.raises(
        SpecError, match=r"layer 'src': .*'nowhere' cannot be read.* set data first"
    ):
        net.get_weights()
    net.set_training_data((images(30, 3, 6, 7), LABELS))
    assert net.inputs["data"].shape == (10, 3, 5, 5)
    net.train(1)
    assert net.forward({"data": images(4, 3, 6, 7)})["ip"].shape == (4, 40)


@pytest.mark.parametrize("kind", ["records", "batches", "generator"])
def test_shapes_are_learnt_from_any_data(kind):
    pixels = images(30, 3, 6, 7)
    data = [{"data": pixels[i], "label": i} for i in range(30)]
    if kind == "batches":
        data = [(pixels[:20], LABELS[:20]), (pixels[20:], LABELS[20:])]
    if kind == "generator":
        data = iter(data)
    net = Net(solver_text(lmdb("nowhere", 10) + TAIL))
    net.set_training_data(data)
    seen, labels = entered(net)
    np.testing.assert_array_equal(seen, pixels)
    np.testing.assert_array_equal(labels, LABELS)


def test_memory_data():
    text = source(
        "MemoryData",
        memory_data_param="batch_size: 10 channels: 3 height: 6 width: 7",
        transform_param="scale: 0.5",
    )
    net, pixels = Net(text, phase=caffe.TRAIN), images(30, 3, 6, 7)
    with pytest.raises(DataError, match="no data is set, and 'data' has none of its own"):
        net.fill()
    net.set_training_data((pixels, LABELS))
    np.testing.assert_array_equal(entered(net)[0], pixels * np.float32(0.5))


def test_image_data(tmp_path):
    pixels = images(5, 6, 7, 3)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    (tmp_path / "list").write_text("".join(f"{n}.png {n}\n" for n in range(5)))
    options = f"source: '{tmp_path}/list' root_folder: '{tmp_path}/' batch_size: 5"
    text = source("ImageData", image_data_param=options, transform_param="mean_value: 1")
    own, fed = Net(text, phase=caffe.TRAIN), Net(text, phase=caffe.TRAIN)
    fed.set_training_data((pixels[..., ::-1].transpose(0, 3, 1, 2), np.arange(5)))
    for one, two in zip(entered(own, 1), entered(fed, 1), strict=True):
        np.testing.assert_array_equal(one, two)


def test_hdf5_data(tmp_path):
    values, labels = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32), np.arange(8)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["data"], file["label"] = values, labels
    (tmp_path / "list").write_text(f"{tmp_path}/rows.h5\n")
    there = source("HDF5Data", hdf5_data_param=f"source: '{tmp_path}/list' batch_size: 4")
    absent = source("HDF5Data", hdf5_data_param="source: 'nowhere' batch_size: 4")
    own, fed = Net(there, phase=caffe.TRAIN), Net(absent, phase=caffe.TRAIN)
    fed.set_training_data({"data": values, "label": labels})
    for one, two in zip(entered(own, 2), entered(fed, 2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_dummy_data_fills_itself_unless_it_is_fed():
    text = """
    layer { name: "dummy" type: "DummyData" top: "data" top: "weight"
      dummy_data_param { shape { dim: 4 dim: 2 } data_filler { type: "constant" value: 3 } } }
    layer { name: "sum" type: "Eltwise" bottom: "data" bottom: "weight" top: "sum" }
    """
    net = Net(text, phase=caffe.TRAIN)
    net.fill()
    np.testing.assert_array_equal(net.net.forward()["sum"], np.full((4, 2), 6))
    out = net.forward({"data": np.ones((3, 2))})["sum"]
    np.testing.assert_array_equal(out, np.full((3, 2), 4))
    both = net.forward((np.ones((2, 2)), np.ones((2, 2))))["sum"]
    np.testing.assert_array_equal(both, np.full((2, 2), 2))


def test_a_loader_may_transform_ahead(tmp_path):
    """The thread of `Batches` draws the same crops and mirrors as the net itself."""
    pixels = images(30, 3, 6, 7)
    text = lmdb("nowhere", 10, "crop_size: 4 mirror: true mean_value: 2")
    plain, ahead = Net(text, phase=caffe.TRAIN, seed=5), Net(text, phase=caffe.TRAIN, seed=5)
    plain.set_training_data((pixels, LABELS))
    records = ArrayRecords(data=pixels, label=LABELS)
    ahead.set_training_data(records)
    order = Order(30, shuffle=False)
    with Batches(records, ahead.batch_size, order, transforms=ahead.transforms) as batches:
        ahead.set_training_data(batches, transformed=True)
        np.testing.assert_array_equal(entered(plain)[0], entered(ahead)[0])
        assert batches.cursor["epoch"] == 1


def test_forward_transforms_whatever_the_data_is():
    pixels = images(30, 3, 6, 7)
    text = lmdb("nowhere", 10, "crop_size: 4 mean_value: 2") + TAIL
    net = Net(text, seed=1)
    net.set_validation_data((pixels, LABELS))
    loss = net.test()["loss"]
    cut = pixels[:, :, 1:5, 1:5] - np.float32(2)
    net.set_validation_data((cut, LABELS), transformed=True)
    assert net.test()["loss"] == loss
    assert float(net.forward((pixels, LABELS))["loss"]) == pytest.approx(loss)


def test_random_crops_go_on_where_they_were():
    pixels = images(30, 3, 6, 7)
    text = lmdb("nowhere", 10, "crop_size: 4 mirror: true")
    one, two = Net(text, phase=caffe.TRAIN, seed=5), Net(text, phase=caffe.TRAIN, seed=5)
    one.set_training_data((pixels, LABELS))
    two.set_training_data((pixels, LABELS))
    entered(one)
    two.taken = one.taken
    np.testing.assert_array_equal(entered(one)[0], entered(two)[0])


def test_train_and_test_nets_have_layers_of_their_own(tmp_path):
    """Other batch sizes and transformations by phase, as in a train_val.prototxt."""

    def phase(text: str, name: str) -> str:
        return text.rstrip()[:-1] + f" include {{ phase: {name} }} }}"

    text = phase(lmdb("train db", 10, "crop_size: 4 mirror: true"), "TRAIN")
    text += phase(lmdb("test db", 7, "crop_size: 4"), "TEST") + TAIL
    net = Net(solver_text(text, test_iter=5, test_interval=100))
    pixels = images(30, 3, 6, 7)
    net.set_training_data((pixels, LABELS))
    net.set_validation_data((pixels, LABELS))
    net.train(1)
    found = net.test()
    test_net = net._nets.tests[0].net
    assert tuple(test_net.blobs["data"].shape) == (2, 3, 4, 4)  # 30 = 4 * 7 + 2
    whole = net.forward((pixels, LABELS))
    np.testing.assert_array_equal(test_net.blobs["data"].data, pixels[:, :, 1:5, 1:5])
    assert found["loss"] == pytest.approx(float(whole["loss"]), rel=1e-5)


def test_python_layers_bring_their_own_records():
    layer = """
    layer { name: "points" type: "Python" top: "data" top: "label"
      python_param { module: "tests.net.python_source" layer: "Points" } }
    """
    net = Net(solver_text(layer + LAYERS, test_iter=4, test_interval=9))
    assert net.inputs == {}
    assert net.train(30) > net.train(10)
    assert net.taken == 320
    assert net.test()["accuracy"] > 0.8


UNREAD = """
layer { name: "images" type: "Data" top: "data" top: "label"
  data_param { source: "some_lmdb" batch_size: 4 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
"""


def test_labels_that_nothing_reads_are_neither_input_nor_output():
    """A data layer brings them; who feeds the net needs not, and may."""
    net = Net(UNREAD)
    images = np.random.default_rng(0).integers(0, 256, (6, 1, 3, 3), np.uint8)
    found = net.forward({"data": images})
    assert list(net.inputs) == list(net.net.inputs) == ["data"]
    assert list(found) == ["ip"]
    for data in ({"data": images, "label": np.zeros(6)}, (images, np.zeros(6)), (images,)):
        np.testing.assert_array_equal(net.forward(data)["ip"], found["ip"])
    net.set_validation_data((images,))
    assert net.fill() == 4
    assert repr(net) == "<Net '', inputs: data>"


def test_labels_that_only_a_test_net_reads_are_asked_for_in_training():
    """Both are fed from the same columns."""
    accuracy = """layer { name: "a" type: "Accuracy" bottom: "ip" bottom: "label" top: "a"
      include { phase: TEST } }"""
    net = Net(f"net_param {{ {UNREAD + accuracy} }} base_lr: 0.1 lr_policy: 'fixed'")
    net.set_validation_data({"data": np.zeros((4, 1, 3, 3)), "label": np.zeros(4)})
    assert list(net.inputs) == ["data", "label"]


def test_dummy_data_of_another_number_of_records_stays_as_it_is():
    """It says nothing of the batch."""
    net = Net("""
    layer { name: "in" type: "Input" top: "data" input_param { shape { dim: [4, 2] } } }
    layer { name: "fixed" type: "DummyData" top: "fixed" dummy_data_param {
      shape { dim: [3, 2] } data_filler { value: 5 } } }
    layer { name: "both" type: "Concat" bottom: "data" bottom: "fixed" top: "both"
      concat_param { axis: 0 } }""")
    assert net.batch_size == 4
    found = net.forward({"data": np.ones((6, 2))})["both"]
    np.testing.assert_array_equal(found[:, 0], [1] * 6 + [5] * 3)
    net.set_validation_data({"data": np.ones((5, 2))})
    assert (net.fill(), net.net.blobs["fixed"].data.shape) == (4, (3, 2))


def test_a_net_alone_needs_no_mean_file_either(tmp_path):
    data = """layer { name: "data" type: "Data" top: "data" top: "label"
      transform_param { mean_file: "no.binaryproto" }
      data_param { source: "no_lmdb" batch_size: 4 backend: LMDB } }"""
    (tmp_path / "net.prototxt").write_text(data + TAIL)
    with pytest.warns(MeanWarning, match=r"no mean file 'no.binaryproto': unless mean= is"):
        net = Net(tmp_path / "net.prototxt", mean=(1, 1, 1), trusted=True)
    net.set_validation_data((np.full((4, 3, 6, 6), 101, np.uint8), LABELS[:4]))
    net.test(1)
    np.testing.assert_array_equal(net.net.blobs["data"].data, 100.0)


def test_a_mean_file_of_other_data_that_is_not_there(tmp_path):
    """Caffe's own solvers name files that nobody has; net.md: they are not needed."""
    data = """layer { name: "data" type: "Data" top: "data" top: "label"
      transform_param { crop_size: 6 scale: 0.5 mean_file: "no.binaryproto" }
      data_param { source: "no_lmdb" batch_size: 4 backend: LMDB } }"""
    (tmp_path / "net.prototxt").write_text(data + TAIL)
    solver = tmp_path / "solver.prototxt"
    solver.write_text(f'net: "{tmp_path / "net.prototxt"}" base_lr: 0.01 lr_policy: "fixed"')
    rows = np.full((30, 3, 6, 6), 101, np.uint8), LABELS
    for how, value in (({}, 50.5), ({"mean": (1, 1, 1)}, 50.0)):
        with pytest.warns(MeanWarning, match=r"no mean file 'no.binaryproto': unless mean= is"):
            net = Net(str(solver), **how)
        net.set_training_data(rows)
        assert (entered(net)[0] == value).all()
    with pytest.warns(MeanWarning):
        trained = train(str(solver), rows, steps=2, workers=1)
    assert trained.outcome.iteration == 2
    trained.save(tmp_path / "model")
    assert (
        not parse_net((tmp_path / "model" / "net.prototxt").read_text())
        .layer[0]
        .HasField("input_param")
    )
