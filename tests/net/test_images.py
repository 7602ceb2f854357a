"""Images into a Net: by its keywords, by its transform_param, and by hand."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import Net, caffe, train
from sparknet.caffe import io as caffe_io
from sparknet.errors import DataError, SpecError
from sparknet.loaders import ArrayRecords, Batches, Order, Subset, open_records
from sparknet.loaders.preprocessing import Preprocessing
from tests.loaders.random_images import files

MEAN = (104.0, 117.0, 123.0)
LAYERS = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 4 kernel_size: 5 stride: 3 weight_filler { type: "gaussian" std: 0.01 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param {
  num_output: 5 weight_filler { type: "gaussian" std: 0.01 } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


def deploy(channels: int = 3, size: int = 24) -> str:
    return f"""
name: "small"
layer {{ name: "data" type: "Input" top: "data"
  input_param {{ shape {{ dim: 1 dim: {channels} dim: {size} dim: {size} }} }} }}
{LAYERS}
"""


ECHO = """
name: "echo"
layer { name: "data" type: "%s" top: "data" top: "label" %s
  data_param { batch_size: 6 backend: LMDB source: "nowhere" } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param {
  num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def by_caffe(paths, net, channels=3):
    """What a script with caffe.io gets: resized to 32 x 32, the centre of 24 x 24, one by one."""
    old = caffe.Net.from_proto(net.described, caffe.TEST)
    net.get_weights().to_net(old)
    transformer = caffe_io.Transformer({"data": (1, channels, 24, 24)})
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_raw_scale("data", 255)
    if channels == 3:
        transformer.set_channel_swap("data", (2, 1, 0))
    transformer.set_mean("data", np.array(MEAN[:channels]))
    found = []
    for path in paths:
        image = caffe_io.resize_image(caffe_io.load_image(str(path), channels == 3), (32, 32))
        old.blobs["data"].data[0] = transformer.preprocess("data", image[4:28, 4:28])
        found.append(old.forward()["prob"][0].copy())
    return np.array(found)


@pytest.mark.parametrize("channels", [1, 3])
def test_files_score_as_by_caffe_io(channels, tmp_path):
    pytest.importorskip("PIL")
    paths = list(files(tmp_path))
    net = Net(deploy(channels), seed=1, resize=32, crop=24, mean=MEAN[:channels])
    wanted = by_caffe(paths, net, channels)
    assert wanted.std(0).max() > 0.03
    of_paths = net.forward({"data": [str(path) for path in paths]})["prob"]
    np.testing.assert_allclose(of_paths, wanted, rtol=0, atol=1e-5)
    of_bytes = net.forward({"data": [path.read_bytes() for path in paths]})["prob"]
    np.testing.assert_array_equal(of_bytes, of_paths)
    one = net.forward({"data": paths[3].read_bytes()})["prob"]
    np.testing.assert_allclose(one[0], wanted[3], rtol=0, atol=1e-5)
    # The crop is the net's own where the size is larger.
    without = Net(deploy(channels), net.get_weights(), resize=(32, 32), mean=MEAN[:channels])
    np.testing.assert_array_equal(without.forward({"data": paths_(paths)})["prob"], of_paths)


def paths_(paths: list[Path]) -> list[str]:
    return [str(path) for path in paths]


def test_the_terms_of_classifier(tmp_path):
    pytest.importorskip("PIL")
    from sparknet.proto import write_text

    paths = list(files(tmp_path))[:10]
    net = Net(deploy(), seed=1)
    write_text(tmp_path / "net.prototxt", net.described)
    net.save(tmp_path / "net.caffemodel")
    terms = {
        "image_dims": (32, 32),
        "mean": np.array(MEAN),
        "input_scale": 0.017,
        "raw_scale": 255,
        "channel_swap": (2, 1, 0),
    }
    old = caffe.Classifier(
        str(tmp_path / "net.prototxt"), str(tmp_path / "net.caffemodel"), **terms
    )
    wanted = old.predict([caffe_io.load_image(str(path)) for path in paths], oversample=False)
    how = Preprocessing.of_classifier(**terms, crop=24)
    assert how == Preprocessing(resize=(32, 32), crop=(24, 24), color="bgr", mean=MEAN, scale=0.017)
    got = Net(deploy(), net.get_weights(), preprocessing=how).forward({"data": paths_(paths)})
    np.testing.assert_allclose(got["prob"], wanted, rtol=0, atol=1e-5)


def test_arrays_are_resized_cropped_and_normalized():
    rng = np.random.default_rng(0)
    net = Net(deploy(), seed=1, resize=32, crop=24, mean=MEAN, scale=0.5, std=(2, 4, 8))
    rows = rng.integers(0, 256, (5, 3, 32, 32), np.uint8)
    net.forward({"data": rows})
    wanted = rows[:, :, 4:28, 4:28] - np.array(MEAN, np.float32).reshape(3, 1, 1)
    wanted = wanted * 0.5 / np.array([2, 4, 8], np.float32).reshape(3, 1, 1)
    np.testing.assert_allclose(net.net.blobs["data"].data, wanted, rtol=1e-6)
    large = rows.repeat(2, 2).repeat(2, 3)
    net.forward({"data": large})
    np.testing.assert_allclose(net.net.blobs["data"].data, wanted, rtol=1e-6)


@pytest.mark.parametrize("size", [32, 24])
def test_a_mean_image_is_subtracted_where_it_lies(size):
    """One of the resized image before the crop, one of the crop after it."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(3, size, size)).astype(np.float32)
    net = Net(deploy(), seed=1, resize=32, crop=24, mean=mean)
    rows = rng.integers(0, 256, (2, 3, 32, 32), np.uint8)
    net.forward({"data": rows})
    wanted = rows[:, :, 4:28, 4:28] - (mean[:, 4:28, 4:28] if size == 32 else mean)
    np.testing.assert_array_equal(net.net.blobs["data"].data, wanted)


def test_keywords_train_as_a_transform_param_does():
    """The same random crops and mirrors, record by record, and in the thread of `Batches`."""
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 256, (20, 3, 10, 12), np.uint8), rng.integers(0, 2, 20)
    param = "crop_size: 8 mirror: true mean_value: 5 mean_value: 6 mean_value: 7 scale: 0.5"
    own = Net(ECHO % ("Data", f"transform_param {{ {param} }}"), phase=caffe.TRAIN, seed=4)
    text = ECHO % ("Data", "")
    asked = Net(text, phase=caffe.TRAIN, seed=4, crop=8, mirror=True, mean=(5, 6, 7), scale=0.5)
    seen = []
    for net in (own, asked):
        net.set_training_data((rows, labels))
        batches = []
        for _ in range(4):
            net.fill()
            batches.append(np.array(net.net.blobs["data"].data))
        seen.append(np.array(batches))
    np.testing.assert_array_equal(*seen)
    assert len({batch.tobytes() for batch in seen[0]}) == 4
    records = ArrayRecords(data=rows, label=labels)
    order = Order(20, shuffle=False)
    with Batches(records, 6, order, transforms=asked.transforms) as ahead:
        np.testing.assert_array_equal(ahead.next()["data"], seen[0][0])
    # Neither happens by chance when the net is tested.
    tested = Net(text, phase=caffe.TEST, seed=4, crop=8, mirror=True, mean=(5, 6, 7), scale=0.5)
    tested.set_validation_data((rows, labels))
    tested.test(1)
    wanted = (rows[:6, :, 1:9, 2:10] - np.array([5, 6, 7], np.float32)[:, None, None]) * 0.5
    np.testing.assert_array_equal(tested.tested.net.blobs["data"].data, wanted)


def test_training_on_a_folder_of_images(tmp_path):
    """Of several sizes and kinds, by several workers, with random crops."""
    pytest.importorskip("PIL")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        list(files(tmp_path / name))
    solver = f"base_lr: 0.001 lr_policy: 'fixed' net_param {{ {ECHO % ('Data', '')} }}"
    settings = {"resize": 20, "resize_mode": "shorter", "crop": (16, 16)}
    trained = train(
        solver, str(tmp_path), workers=2, steps=6, seed=1, mean=MEAN, mirror=True, **settings
    )
    assert trained.outcome.iteration == 6
    assert trained.net.preprocessing == Preprocessing(**settings, mean=MEAN, mirror=True)
    entry = trained.net.inputs["data"]
    assert entry.record == (3, 16, 16)
    with pytest.raises(SpecError, match="no keyword 'rezise'"):
        train(solver, str(tmp_path), workers=1, steps=1, rezise=20)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"crop": 20}, "crop gives images of 20 x 20; the net's input 'data' is 3 x 24 x 24"),
        ({"resize": (24, 20)}, "resize gives images of 24 x 20; the net's input 'data' is"),
        ({"mean": (1, 2)}, "mean has 2 values for 3 channels"),
        ({"color": "grey"}, "color is 'grey' for 3 channels"),
        ({"preprocessing": Preprocessing(), "crop": 24}, "give preprocessing, or crop; not both"),
        ({"cropp": 24}, "no keyword 'cropp'; did you mean 'crop'"),
    ],
)
def test_what_does_not_fit_is_refused(settings, told):
    with pytest.raises(SpecError, match=told):
        Net(deploy(), **settings)


def test_a_transform_param_decides_what_it_can_say():
    param = "transform_param { crop_size: 8 mirror: true }"
    refused = Net(ECHO % ("Data", param), mean=3, std=2)
    refused.set_validation_data((np.zeros((6, 3, 9, 9), np.uint8), np.zeros(6)))
    with pytest.raises(SpecError, match=r"has a transform_param for 'data', .*leave std out"):
        refused.test(1)
    net = Net(ECHO % ("Data", param), seed=1, resize=(10, 12))
    net.set_validation_data((np.zeros((6, 3, 19, 19), np.uint8), np.zeros(6, int)))
    net.test(1)
    how = net.tested.entries[0].preprocessing
    assert how is not None
    assert (how.resize, how.crop, how.way, how.mirror) == ((10, 12), (8, 8), "cv2.linear", "always")


def test_a_net_without_images_takes_no_preprocessing():
    text = (
        'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 8 dim: 2 } } }'
    )
    with pytest.raises(SpecError, match="no input takes images"):
        Net(text + 'layer { name: "r" type: "ReLU" bottom: "data" top: "r" }', crop=2)


def test_images_of_several_sizes_need_a_size():
    pytest.importorskip("PIL")
    from tests.loaders.random_images import encoded

    net = Net(deploy(), crop=24, seed=1)
    images = [encoded("RGB", 30, 40), encoded("RGB", 24, 90)]
    assert net.forward({"data": images})["prob"].shape == (2, 5)
    with pytest.raises(DataError, match="image 1 is 10 x 90, smaller than the crop of 24 x 24"):
        net.forward({"data": [images[0], encoded("RGB", 10, 90)]})


GREY = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [2, 1, 8, 8] } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.mark.parametrize(
    "how", [{}, {"color": "grey"}, {"resize": 8}, {"resize": 8, "color": "grey"}], ids=str
)
def test_a_net_of_one_channel_takes_photographs_in_grey(how, tmp_path):
    """A folder of them, by path and as records; docs/images.md: grey for one channel."""
    image = pytest.importorskip("PIL.Image")
    for name, value in (("dark", 30), ("light", 220)):
        (tmp_path / name).mkdir()
        image.fromarray(np.full((8, 8), value, np.uint8)).save(tmp_path / name / "a.png")
    solver = f'base_lr: 0.1 lr_policy: "fixed" net_param {{ {GREY} }}'
    for data in (str(tmp_path), open_records(tmp_path), Subset(open_records(tmp_path), [0, 1])):
        if isinstance(data, str) or not how:
            train(solver, data, steps=1, workers=1, **how)
        net = Net(solver, **how)
        net.set_training_data(data)
        net.fill()
        found = net.net.blobs["data"].data[:, 0, 0, 0]
        assert found.tolist() == [30, 220]


def test_the_names_of_colours(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "only").mkdir()
    image.fromarray(np.full((8, 8), 7, np.uint8)).save(tmp_path / "only" / "a.png")
    shapes = [
        open_records(tmp_path, color=color).columns["data"].shape
        for color in ("grey", False, "bgr", True, None)
    ]
    assert shapes == [(1, 8, 8), (1, 8, 8), (3, 8, 8), (3, 8, 8), (1, 8, 8)]
    with pytest.raises(SpecError, match=r"color is 'rgb': True or 'bgr', False or 'grey', or None"):
        open_records(tmp_path, color="rgb")
