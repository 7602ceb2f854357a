"""Detector: windows of image files, with and without their surroundings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import FileError, MissingExtra

Image = pytest.importorskip("PIL.Image")

NET = """
input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }
layer { name: "mean" type: "Pooling" bottom: "data" top: "mean"
  pooling_param { pool: AVE global_pooling: true } }
"""


def make(folder: Path, text: str = NET, **options: Any) -> caffe.Detector:
    model, weights = folder / "deploy.prototxt", folder / "net.caffemodel"
    model.write_text(text)
    caffe.Net(model, caffe.TEST).save(weights)
    return caffe.Detector(str(model), str(weights), **options)


def picture(folder: Path) -> tuple[str, Any]:
    rng = np.random.default_rng(0)
    path = folder / "image.png"
    pixels = rng.integers(0, 256, (20, 30, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return str(path), pixels / np.float32(255)


WINDOWS = np.array([[0, 0, 8, 8], [5, 10, 13, 18], [12, 22, 20, 30]])


def test_windows(tmp_path: Path) -> None:
    net = make(tmp_path, raw_scale=255, channel_swap=(2, 1, 0), mean=np.array([1.0, 2, 3]))
    path, image = picture(tmp_path)
    found = net.detect_windows([(path, WINDOWS), (path, WINDOWS[:1])])
    assert [entry["filename"] for entry in found] == [path] * 4
    for entry, window in zip(found, [*WINDOWS, WINDOWS[0]], strict=True):
        assert entry["window"].tolist() == window.tolist()
        y0, x0, y1, x1 = window
        want = 255 * image[y0:y1, x0:x1].mean((0, 1))[::-1] - [1, 2, 3]
        np.testing.assert_allclose(entry["prediction"].ravel(), want, rtol=1e-4)


def test_windows_are_warped(tmp_path: Path) -> None:
    net = make(tmp_path)
    path, image = picture(tmp_path)
    (found,) = net.detect_windows([(path, [(2, 3, 19, 12)])])
    want = caffe.io.resize_image(image[2:19, 3:12], (8, 8)).mean((0, 1))
    np.testing.assert_allclose(found["prediction"].ravel(), want, rtol=1e-4)


def test_no_windows(tmp_path: Path) -> None:
    path, _ = picture(tmp_path)
    assert make(tmp_path).detect_windows([(path, [])]) == []


def test_surroundings_inside_the_image(tmp_path: Path) -> None:
    """A pad of 2 in 8 shows twice the window: 4 pixels of 8 are the window itself."""
    net = make(tmp_path, context_pad=2)
    _, image = picture(tmp_path)
    window = np.array([8, 8, 11, 11])  # both ends belong to it: 4 x 4
    want = caffe.io.resize_image(image[6:14, 6:14], (8, 8))
    np.testing.assert_allclose(net.crop(image, window), want, atol=1e-6)


def test_beyond_the_image_is_the_mean(tmp_path: Path) -> None:
    mean = np.array([51.0, 102, 153])
    net = make(tmp_path, context_pad=2, mean=mean, raw_scale=255, channel_swap=(2, 1, 0))
    assert net.crop_dims.tolist() == [8, 8, 3]
    np.testing.assert_allclose(net.crop_mean[0, 0], [0.6, 0.4, 0.2], rtol=1e-6)
    crop = net.crop(np.ones((20, 30, 3), np.float32), np.array([0, 0, 3, 3]))
    assert crop.shape == (8, 8, 3)
    np.testing.assert_allclose(crop[:2], np.broadcast_to([0.6, 0.4, 0.2], (2, 8, 3)), rtol=1e-6)
    np.testing.assert_allclose(crop[:, :2], np.broadcast_to([0.6, 0.4, 0.2], (8, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(crop[2:, 2:], 1)


@pytest.mark.parametrize("mean", [None, np.array([51.0])])
def test_a_net_of_one_channel(mean: Any, tmp_path: Path) -> None:
    grey = NET.replace("dim: 3", "dim: 1")
    net = make(tmp_path, grey, context_pad=2, mean=mean, raw_scale=255)
    assert net.crop_dims.tolist() == [8, 8, 1]
    beyond = 0 if mean is None else 0.2
    np.testing.assert_allclose(net.crop_mean, np.full((8, 8, 1), beyond), rtol=1e-6)
    path, _ = picture(tmp_path)
    shade = caffe.io.load_image(path, color=False)
    window = np.array([8, 8, 11, 11])
    want = caffe.io.resize_image(shade[6:14, 6:14], (8, 8))
    np.testing.assert_allclose(net.crop(shade, window), want, atol=1e-6)
    (found,) = net.detect_windows([(path, [window])])
    pooled = 255 * (want.mean() - beyond)
    np.testing.assert_allclose(found["prediction"].ravel(), [pooled], rtol=1e-4)


def test_what_is_not_there(tmp_path: Path) -> None:
    net = make(tmp_path)
    with pytest.raises(FileError, match=r"none\.png"):
        net.detect_windows([(str(tmp_path / "none.png"), WINDOWS)])
    with pytest.raises(MissingExtra, match="selective_search_ijcv_with_python"):
        net.detect_selective_search(["image.png"])
