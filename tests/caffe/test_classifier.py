"""Classifier and Detector against the same crops, put together by hand."""

from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import FileError, MissingExtra, SpecError

NET = """
input: "data" input_shape { dim: 4 dim: 3 dim: 6 dim: 8 }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 0.02 } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


def files(folder: Path) -> tuple[str, str]:
    model, weights = folder / "deploy.prototxt", folder / "net.caffemodel"
    model.write_text(NET)
    caffe.Net(model, caffe.TEST).save(weights)
    return str(model), str(weights)


def images(count, height, width):
    rng = np.random.default_rng(0)
    return [rng.random((height, width, 3), np.float32) for _ in range(count)]


def by_hand(net, crops):
    """Crops in RGB from 0 to 1 → probabilities, for mean 100, 110, 120 in BGR of 255."""
    x = 255 * np.asarray(crops, np.float64)[..., ::-1] - [100, 110, 120]
    w, b = (blob.data.astype(np.float64) for blob in net.params["ip"])
    e = np.exp(x.transpose(0, 3, 1, 2).reshape(len(x), -1) @ w.T + b)
    return e / e.sum(1, keepdims=True)


def make(folder, **options):
    return caffe.Classifier(
        *files(folder),
        mean=np.array([100, 110, 120]),
        raw_scale=255,
        channel_swap=(2, 1, 0),
        **options,
    )


def test_whole_images(tmp_path):
    net = make(tmp_path)
    assert isinstance(net, caffe.Net)
    assert net.crop_dims.tolist() == net.image_dims.tolist() == [6, 8]
    inputs = images(3, 6, 8)
    got = net.predict(inputs, oversample=False)
    assert got.shape == (3, 5)
    np.testing.assert_allclose(got, by_hand(net, inputs), rtol=1e-3, atol=1e-6)


def test_the_centre(tmp_path):
    net = make(tmp_path, image_dims=(11, 12))
    inputs = images(6, 11, 12)
    got = net.predict(inputs, oversample=False)
    want = by_hand(net, [image[2:8, 2:10] for image in inputs])
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)


def test_ten_crops(tmp_path):
    net = make(tmp_path, image_dims=(9, 12))
    inputs = images(3, 9, 12)
    got = net.predict(inputs)
    for image, probabilities in zip(inputs, got, strict=True):
        places = [(0, 0), (0, 4), (3, 0), (3, 4), (1, 2)]
        crops = [image[y : y + 6, x : x + 8] for y, x in places]
        want = by_hand(net, crops + [crop[:, ::-1] for crop in crops]).mean(0)
        np.testing.assert_allclose(probabilities, want, rtol=1e-3, atol=1e-6)


def test_images_of_other_sizes_are_resized(tmp_path):
    net = make(tmp_path, image_dims=(6, 8))
    inputs = images(1, 13, 17) + images(1, 6, 8)
    want = by_hand(net, [caffe.io.resize_image(inputs[0], (6, 8)), inputs[1]])
    got = net.predict(inputs, oversample=False)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)


def test_a_mean_of_the_images_size(tmp_path):
    """What classify.py does by default: images and their mean are larger than the input."""
    mean = np.random.default_rng(2).uniform(90, 130, (3, 9, 12))
    options = {"image_dims": [9, 12], "raw_scale": 255.0, "channel_swap": [2, 1, 0]}
    written = files(tmp_path)
    net = caffe.Classifier(*written, mean=mean, input_scale=None, **options)
    plain = caffe.Classifier(*written, **options)
    small = caffe.io.resize_image(mean.transpose(1, 2, 0), (6, 8)).transpose(2, 0, 1)
    plain.transformer.set_mean("data", small)
    inputs = images(2, 20, 16)
    np.testing.assert_array_equal(net.predict(inputs), plain.predict(inputs))


def test_wrong_use_is_a_sentence(tmp_path):
    model, _ = files(tmp_path)
    with pytest.raises(SpecError, match="at least one image"):
        make(tmp_path).predict([])
    with pytest.raises(FileError, match=r"none\.caffemodel"):
        caffe.Classifier(model, str(tmp_path / "none.caffemodel"))


Image = pytest.importorskip("PIL.Image")

DETECTOR = """
input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }
layer { name: "mean" type: "Pooling" bottom: "data" top: "mean"
  pooling_param { pool: AVE global_pooling: true } }
"""


def make_detector(folder, text=DETECTOR, **options):
    model, weights = folder / "deploy.prototxt", folder / "net.caffemodel"
    model.write_text(text)
    caffe.Net(model, caffe.TEST).save(weights)
    return caffe.Detector(str(model), str(weights), **options)


def picture(folder):
    rng = np.random.default_rng(0)
    path = folder / "image.png"
    pixels = rng.integers(0, 256, (20, 30, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return str(path), pixels / np.float32(255)


WINDOWS = np.array([[0, 0, 8, 8], [5, 10, 13, 18], [12, 22, 20, 30]])


def test_windows(tmp_path):
    net = make_detector(tmp_path, raw_scale=255, channel_swap=(2, 1, 0), mean=np.array([1.0, 2, 3]))
    path, image = picture(tmp_path)
    actual = net.detect_windows([(path, WINDOWS), (path, WINDOWS[:1])])
    assert [entry["filename"] for entry in actual] == [path] * 4
    for entry, window in zip(actual, [*WINDOWS, WINDOWS[0]], strict=True):
        assert entry["window"].tolist() == window.tolist()
        y0, x0, y1, x1 = window
        want = 255 * image[y0:y1, x0:x1].mean((0, 1))[::-1] - [1, 2, 3]
        np.testing.assert_allclose(entry["prediction"].ravel(), want, rtol=1e-4)


def test_windows_are_warped(tmp_path):
    net = make_detector(tmp_path)
    path, image = picture(tmp_path)
    (actual,) = net.detect_windows([(path, [(2, 3, 19, 12)])])
    want = caffe.io.resize_image(image[2:19, 3:12], (8, 8)).mean((0, 1))
    np.testing.assert_allclose(actual["prediction"].ravel(), want, rtol=1e-4)


def test_no_windows(tmp_path):
    path, _ = picture(tmp_path)
    assert make_detector(tmp_path).detect_windows([(path, [])]) == []


def test_surroundings_inside_the_image(tmp_path):
    """A pad of 2 in 8 shows twice the window: 4 pixels of 8 are the window itself."""
    net = make_detector(tmp_path, context_pad=2)
    _, image = picture(tmp_path)
    window = np.array([8, 8, 11, 11])  # both ends belong to it: 4 x 4
    want = caffe.io.resize_image(image[6:14, 6:14], (8, 8))
    np.testing.assert_allclose(net.crop(image, window), want, atol=1e-6)


def test_beyond_the_image_is_the_mean(tmp_path):
    mean = np.array([51.0, 102, 153])
    net = make_detector(tmp_path, context_pad=2, mean=mean, raw_scale=255, channel_swap=(2, 1, 0))
    assert net.crop_dims.tolist() == [8, 8, 3]
    np.testing.assert_allclose(net.crop_mean[0, 0], [0.6, 0.4, 0.2], rtol=1e-6)
    crop = net.crop(np.ones((20, 30, 3), np.float32), np.array([0, 0, 3, 3]))
    assert crop.shape == (8, 8, 3)
    np.testing.assert_allclose(crop[:2], np.broadcast_to([0.6, 0.4, 0.2], (2, 8, 3)), rtol=1e-6)
    np.testing.assert_allclose(crop[:, :2], np.broadcast_to([0.6, 0.4, 0.2], (8, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(crop[2:, 2:], 1)


@pytest.mark.parametrize("mean", [None, np.array([51.0])])
def test_a_net_of_one_channel(mean, tmp_path):
    grey = DETECTOR.replace("dim: 3", "dim: 1")
    net = make_detector(tmp_path, grey, context_pad=2, mean=mean, raw_scale=255)
    assert net.crop_dims.tolist() == [8, 8, 1]
    beyond = 0 if mean is None else 0.2
    np.testing.assert_allclose(net.crop_mean, np.full((8, 8, 1), beyond), rtol=1e-6)
    path, _ = picture(tmp_path)
    shade = caffe.io.load_image(path, color=False)
    window = np.array([8, 8, 11, 11])
    want = caffe.io.resize_image(shade[6:14, 6:14], (8, 8))
    np.testing.assert_allclose(net.crop(shade, window), want, atol=1e-6)
    (actual,) = net.detect_windows([(path, [window])])
    pooled = 255 * (want.mean() - beyond)
    np.testing.assert_allclose(actual["prediction"].ravel(), [pooled], rtol=1e-4)


def test_what_is_not_there(tmp_path):
    net = make_detector(tmp_path)
    with pytest.raises(FileError, match=r"none\.png"):
        net.detect_windows([(str(tmp_path / "none.png"), WINDOWS)])
    with pytest.raises(MissingExtra, match="selective_search_ijcv_with_python"):
        net.detect_selective_search(["image.png"])
