"""Images resized by chance before they are cropped: the fields of Intel's and NVIDIA's Caffe."""

import numpy as np
import pytest
from PIL import Image

from sparknet import caffe
from sparknet.errors import LayerError, SpecError
from sparknet.loaders.resize import resize
from sparknet.loaders.transform import Transform
from sparknet.proto import caffe_pb2, write_blob
from tests.layers.host.nets import images, lmdb, net, of_images, passes, source

SHAPE = (3, 12, 20)


def resized(pixels, size, way):
    return resize(np.ascontiguousarray(pixels.transpose(1, 2, 0)), size, way).transpose(2, 0, 1)


def middle(pixels, crop):
    top, left = ((side - crop) // 2 for side in pixels.shape[1:])
    return pixels[:, top : top + crop, left : left + crop]


@pytest.mark.parametrize(
    ("options", "size", "way"),
    [
        ("random_resize_param { min_size: 9 max_size: 9 }", (9, 15), "cv2.linear"),
        (
            "random_resize_param { min_size: 18 max_size: 18 resize_param { interp_mode: CUBIC } }",
            (18, 30),
            "cv2.cubic",
        ),
        ("img_rand_resize_lower: 9 img_rand_resize_upper: 9", (9, 15), "cv2.nearest"),
        (
            "img_rand_resize_lower: 9 img_rand_resize_upper: 9 interpolation_algo_down: INTER_AREA",
            (9, 15),
            "cv2.area",
        ),
        ("img_rand_resize_lower: 18 img_rand_resize_upper: 18", (12, 20), "cv2.nearest"),
        (
            "img_rand_resize_lower: 18 img_rand_resize_upper: 18 allow_upscale: true",
            (18, 30),
            "cv2.cubic",
        ),
        (
            "vertical_stretch_lower: 0.75 vertical_stretch_upper: 0.75 "
            "horizontal_stretch_lower: 0.5 horizontal_stretch_upper: 0.5",
            (9, 10),
            "cv2.nearest",
        ),
        (
            "rand_resize_ratio_lower: 1 rand_resize_ratio_upper: 1.0001",
            (12, 12),
            "cv2.nearest",
        ),
    ],
)
def test_one_size(tmp_path, options, size, way):
    pixels = images(3, *SHAPE)
    text = lmdb(of_images(tmp_path, pixels), 3, f"crop_size: 8 mean_value: 5 {options}")
    want = [middle(resized(one, size, way), 8).astype(np.float32) - 5 for one in pixels]
    np.testing.assert_array_equal(passes(net(text), 1)[0], np.stack(want))


def test_of_files(tmp_path):
    """Files of several sizes; the middle of a mean image is taken off."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(0, 255, (3, 10, 10)).astype(np.float32)
    write_blob(tmp_path / "mean", mean)
    want = []
    for number, size in enumerate(((12, 20), (30, 11))):
        pixels = rng.integers(0, 256, (*size, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
        bgr = pixels[:, :, ::-1].transpose(2, 0, 1)
        short = (9, 15) if number == 0 else (24, 9)
        want.append(middle(resized(bgr, short, "cv2.linear"), 8) - middle(mean, 8))
    (tmp_path / "list").write_text("0.png 0\n1.png 1\n")
    text = source(
        "ImageData",
        image_data_param=f"source: '{tmp_path / 'list'}' root_folder: '{tmp_path}/' batch_size: 2",
        transform_param=f"crop_size: 8 mean_file: '{tmp_path / 'mean'}' "
        "random_resize_param { min_size: 9 max_size: 9 }",
    )
    np.testing.assert_allclose(passes(net(text), 1)[0], np.stack(want), rtol=1e-6)


def test_sizes_by_chance(tmp_path):
    """A slope is the less steep the larger an image becomes; the same seed draws the same."""
    ramp = np.broadcast_to((np.arange(40) * 6).astype(np.uint8), (1, 3, 40, 40))
    path = of_images(tmp_path, ramp)
    text = lmdb(path, 1, "crop_size: 10 random_resize_param { min_size: 10 max_size: 80 }")
    found = passes(net(text, caffe.TRAIN, seed=4), 60)[:, 0, 0, 0]
    np.testing.assert_array_equal(found, passes(net(text, caffe.TRAIN, seed=4), 60)[:, 0, 0, 0])
    slopes = (found[:, 8] - found[:, 1]) / 7
    assert 24 >= slopes.max() > 18
    assert 3 <= slopes.min() < 4


def test_parts_with_other_proportions(tmp_path):
    """Parts of 8 to 100 % of the area, up to twice as high or wide, are stretched to the crop."""
    rows, columns = np.mgrid[:60, :60] * 4
    ramp = np.stack([rows, columns, rows]).astype(np.uint8)[None]
    options = (
        "random_aspect_ratio_param { min_area_ratio: 0.08 max_area_ratio: 1 "
        "aspect_ratio_change: 0.75 }"
    )
    text = lmdb(of_images(tmp_path, ramp), 1, f"crop_size: 20 {options}")
    found = passes(net(text, caffe.TRAIN), 80)[:, 0]
    high = (found[:, 0, 15, 10] - found[:, 0, 5, 10]) / 40 * 20
    wide = (found[:, 1, 10, 15] - found[:, 1, 10, 5]) / 40 * 20
    shares = high * wide / 3600
    assert 0.06 < shares.min() < 0.2 < 0.7 < shares.max() <= 1.02
    aspects = high / wide
    assert 0.5 < aspects.min() < 0.75 < 1.3 < aspects.max() < 1.95


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("random_resize_param { min_size: 9 }", "needs a crop_size in transform_param"),
        ("crop_size: 8 random_aspect_ratio_param { min_area_ratio: 0 }", "min_area_ratio and max"),
        ("crop_size: 8 random_resize_param { min_size: 7 max_size: 7 }", "smaller than the crop 8"),
        (
            "crop_size: 8 random_resize_param { min_size: 90000 max_size: 90000 }",
            "resized to 90000",
        ),
    ],
)
def test_settings(tmp_path, options, says):
    text = lmdb(of_images(tmp_path, images(1, *SHAPE)), 1, options)
    with pytest.raises(LayerError, match=f"layer 'src': Data: .*{says}"):
        net(text).forward()


def test_where_there_are_none():
    """Batches of arrays have one size."""
    options = caffe_pb2.TransformationParameter(crop_size=8)
    options.random_resize_param.min_size = 9
    with pytest.raises(SpecError, match="random_resize_param exists only in Intel's Caffe"):
        Transform(options)
