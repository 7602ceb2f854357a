"""caffe.io: images, their sizes, and the transformer."""

import builtins

import numpy as np
import pytest

from sparknet.caffe import io
from sparknet.caffe.io import Transformer, resize_image
from sparknet.errors import ArrayError, FileError, MissingExtra, SparkNetError

Image = pytest.importorskip("PIL.Image")


def saved(folder, array, mode=None, name="x.png"):
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(folder / name)
    return folder / name


RGB = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [51, 51, 51]]], np.uint8)


def test_colour(tmp_path):
    image = io.load_image(saved(tmp_path, RGB))
    assert image.dtype == np.float32
    assert np.allclose(image, RGB / 255)


def test_colour_as_gray(tmp_path):
    image = io.load_image(saved(tmp_path, RGB), color=False)
    assert image.shape == (2, 2, 1)
    assert np.allclose(image[..., 0], [[0.2125, 0.7154], [0.0721, 0.2]])


def test_gray(tmp_path):
    path = saved(tmp_path, np.array([[0, 51], [102, 255]], np.uint8))
    assert np.allclose(io.load_image(str(path), False)[..., 0], [[0, 0.2], [0.4, 1]])
    assert io.load_image(path).shape == (2, 2, 3)
    assert np.allclose(io.load_image(path)[..., 2], [[0, 0.2], [0.4, 1]])


def test_sixteen_bits(tmp_path):
    path = saved(tmp_path, np.array([[0, 65535]], np.uint16))
    assert io.load_image(path, False).ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("mode", ["RGBA", "P", "LA", "1"])
def test_other_modes_become_rgb(tmp_path, mode):
    black_and_white = np.zeros((2, 2, 3), np.uint8)
    black_and_white[0] = 255
    image = io.load_image(saved(tmp_path, black_and_white, mode))
    assert np.array_equal(image, black_and_white / 255)


def test_coloured_palette(tmp_path):
    path = saved(tmp_path, RGB, "P")
    assert io.load_image(path).shape == (2, 2, 3)
    assert io.load_image(path, False).shape == (2, 2, 1)


def test_bad_files(tmp_path):
    with pytest.raises(FileError, match=r"nothing\.png: does not exist"):
        io.load_image(tmp_path / "nothing.png")
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(FileError, match="is no image that can be read"):
        io.load_image(tmp_path / "bad.png")
    cut = saved(tmp_path, np.zeros((64, 64, 3), np.uint8), name="cut.bmp")
    cut.write_bytes(cut.read_bytes()[:1000])
    with pytest.raises(FileError, match=r"cut\.bmp"):
        io.load_image(cut)


def test_pillow_is_an_extra(monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.startswith("PIL"):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtra, match=r"sparknet\[images\]"):
        io.load_image("x.png")


def test_oversample():
    image = np.arange(5 * 4, dtype=np.float32).reshape(5, 4, 1)
    crops = io.oversample([image, image + 100], (2, 3))
    assert crops.shape == (20, 2, 3, 1)
    corners = [crops[i, 0, 0, 0] for i in range(5)]
    assert corners == [0, 1, 12, 13, 4]
    assert np.array_equal(crops[5:10], crops[:5, :, ::-1])
    assert np.array_equal(crops[10:], crops[:10] + 100)
    with pytest.raises(ArrayError, match=r"no crop of \(6, 3\)"):
        io.oversample([image], (6, 3))
    with pytest.raises(ArrayError, match="oversample: images of"):
        io.oversample([image, image[1:]], (2, 2))


@pytest.mark.parametrize("crop", [(0, 3), (3, 0), (5, 3), (3, 7)])
def test_crops_that_no_image_has(crop):
    with pytest.raises(ArrayError, match=rf"no crop of \({crop[0]}, {crop[1]}\) from \(4, 6\)"):
        io.oversample([np.zeros((4, 6, 3))], crop)


def ramp(channels):
    return np.tile(np.array([[0.0, 10.0], [20.0, 30.0]], np.float32)[..., None], channels)


def test_linear_is_dark_beyond_the_border():
    row = resize_image(ramp(1), (4, 4))[1, :, 0]
    assert row.tolist() == [3.75, 7.5, 12.5, 11.25]
    assert resize_image(ramp(3), (4, 4)).dtype == np.float32


def test_other_channel_counts_align_corners():
    assert resize_image(ramp(2), (2, 3))[0, :, 1].tolist() == [0.0, 5.0, 10.0]
    assert resize_image(ramp(2), (1, 1))[0, 0].tolist() == [0.0, 0.0]
    assert resize_image(ramp(4), (2, 4), 0)[1, :, 3].tolist() == [20.0, 20.0, 30.0, 30.0]


def test_the_same_size_is_the_same_image():
    image = np.random.default_rng(0).normal(size=(5, 7, 3)).astype(np.float32)
    for order in (0, 1, 3):
        assert np.allclose(resize_image(image, (5, 7), order), image, atol=1e-6)


def test_a_flat_image():
    out = resize_image(np.full((2, 2, 3), 7.5), (3, 5))
    assert out.shape == (3, 5, 3)
    assert (out == 7.5).all()


def test_the_range_is_kept():
    image = np.random.default_rng(1).uniform(-3, 9, (6, 5, 3))
    for order in (0, 1, 3):
        out = resize_image(image, (11, 4), order)
        assert image.min() - 1e-6 <= out.min()
        assert out.max() <= image.max() + 1e-6


def test_cubic_and_nearest():
    line = np.repeat(np.array([0.0, 1, 4, 9, 16, 25]).reshape(1, 6, 1), 9, 0)
    half = resize_image(line, (9, 3), 3)[4, :, 0]
    assert half[1] == (-1 + 9 * 4 + 9 * 9 - 16) / 16
    assert resize_image(line, (9, 3), 0)[4, :, 0].tolist() == [1.0, 9.0, 25.0]


@pytest.mark.parametrize(
    ("shape", "dims", "order"),
    [
        ((2, 2), (3, 3), 1),
        ((2, 0, 3), (3, 3), 1),
        ((2, 2, 3), (3,), 1),
        ((2, 2, 3), (0, 3), 1),
        ((2, 2, 3), (3, 3), 2),
        ((2, 2, 4), (3, 3), 3),
    ],
)
def test_refusals(shape, dims, order):
    with pytest.raises(ArrayError, match="resize_image"):
        resize_image(np.zeros(shape), dims, order)


@pytest.fixture
def transformer():
    return Transformer({"data": (10, 3, 4, 5)})


def test_the_image_is_left_alone(transformer):
    transformer.set_raw_scale("data", 255)
    image = np.ones((4, 5, 3), np.float32)
    assert (transformer.preprocess("data", image) == 255).all()
    assert (image == 1).all()


def test_resizing(transformer):
    image = np.random.default_rng(0).random((9, 8, 3))
    got = transformer.preprocess("data", image)
    assert np.array_equal(got, resize_image(image.astype(np.float32), (4, 5)))
    listed = Transformer({"data": [10, 3, 9, 8]})
    assert np.array_equal(listed.preprocess("data", image), image.astype(np.float32))


def test_order_of_the_steps(transformer):
    image = np.random.default_rng(0).random((4, 5, 3)).astype(np.float32)
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_channel_swap("data", (1, 2, 0))
    transformer.set_raw_scale("data", 2.0)
    transformer.set_mean("data", np.array([1.0, 2, 3]))
    transformer.set_input_scale("data", 0.5)
    got = transformer.preprocess("data", image)
    assert np.allclose(got[0], (image[..., 1] * 2 - 1) * 0.5)
    assert np.allclose(got[2], (image[..., 0] * 2 - 3) * 0.5)
    assert np.allclose(transformer.deprocess("data", got[None]), image, atol=1e-6)


def test_a_mean_for_every_channel_alike(transformer):
    gray = Transformer({"data": (1, 1, 4, 5)})
    gray.set_transpose("data", (2, 0, 1))
    gray.set_mean("data", np.full((4, 5), 0.25))
    assert (gray.preprocess("data", np.ones((4, 5, 1))) == 0.75).all()


@pytest.mark.parametrize("shape", [(3, 9, 7), (1, 9, 7), (9, 7), (1, 4, 5), (4, 5)])
def test_a_mean_of_another_size_is_resized(transformer, shape):
    """The everyday case: a mean of 256 x 256 for an input of 227 x 227."""
    mean = np.random.default_rng(1).uniform(90, 130, shape)
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_mean("data", mean)
    whole = mean.reshape(-1, *shape[-2:]).transpose(1, 2, 0)
    low, high = whole.min(), whole.max()
    want = resize_image((whole - low) / (high - low), (4, 5)) * (high - low) + low
    got = transformer.preprocess("data", np.zeros((4, 5, 3)))
    np.testing.assert_allclose(got, np.broadcast_to(-want.transpose(2, 0, 1), (3, 4, 5)), rtol=1e-5)


def test_a_constant_mean_of_another_size(transformer):
    transformer.set_mean("data", np.full((3, 9, 7), 104.0))
    assert transformer.mean["data"].shape == (3, 4, 5)
    assert (transformer.mean["data"] == 104).all()


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("transpose", (0, 1), "a transpose order of 3 axes"),
        ("transpose", (0, 1, 1), "a transpose order of 3 axes"),
        ("channel_swap", (0, 1), "an order of 3 channels"),
        ("channel_swap", (0, 1, 3), "an order of 3 channels"),
        ("mean", np.zeros(4), r"a mean of shape \(4,\)"),
        ("mean", np.zeros(1), r"a mean of shape \(1,\)"),
        ("mean", np.zeros((4, 4, 5)), r"a mean of shape \(4, 4, 5\)"),
        ("mean", np.zeros(()), r"a mean of shape \(\)"),
        ("mean", np.zeros((1, 3, 4, 5)), "a mean of shape"),
    ],
)
def test_refused_settings(transformer, setting, value, message):
    with pytest.raises(SparkNetError, match=f"input 'data'.*{message}") as caught:
        getattr(transformer, f"set_{setting}")("data", value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("setting", ["transpose", "channel_swap", "mean", "raw_scale"])
def test_unknown_inputs(transformer, setting):
    with pytest.raises(SparkNetError, match=r"'dat' is not an input of the net.*'data'"):
        getattr(transformer, f"set_{setting}")("dat", (1, 2, 3))
    with pytest.raises(SparkNetError, match="'dat' is not an input"):
        transformer.preprocess("dat", np.zeros((4, 5, 3)))


def test_a_mean_that_does_not_meet_the_image(transformer):
    transformer.set_mean("data", np.zeros(3))
    with pytest.raises(SparkNetError, match="a mean of shape"):
        transformer.preprocess("data", np.zeros((4, 5, 3)))
