"""Images of any size and kind as arrays: as caffe.io, Pillow and OpenCV have them."""

import io

import numpy as np
import pytest

from sparknet.caffe.io import load_image, resize_image
from sparknet.errors import DataError, FileError
from sparknet.loaders.image_arrays import ImageArrays, stacked
from sparknet.loaders.preprocessing import Preprocessing
from tests.loaders.random_images import KINDS, SIZES, encoded, pixels

Image = pytest.importorskip("PIL.Image")


def decode(data, channels, **settings):
    return ImageArrays(Preprocessing(**settings), channels).of_file(data, "it")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("way", "order"), [("nearest", 0), ("linear", 1), ("cubic", 3)])
def test_as_caffe_io_reads_and_resizes(kind, channels, way, order, tmp_path):
    for size in SIZES:
        data = encoded(kind, *size)
        (tmp_path / "it.png").write_bytes(data)
        got = decode(data, channels, resize=(20, 32), interpolation=f"caffe.{way}")
        image = load_image(str(tmp_path / "it.png"), channels == 3)
        wanted = 255 * resize_image(image, (20, 32), order)
        assert got.shape == (channels, 20, 32)
        np.testing.assert_allclose(got, wanted.transpose(2, 0, 1)[::-1], rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", ["RGB", "L", "RGBA", "LA", "P", "CMYK"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_as_pillow_reads_and_resizes(kind, mode):
    data = encoded(kind, 30, 41)
    picture = Image.open(io.BytesIO(data)).convert(mode).resize((32, 20), Image.Resampling.BOX)
    channels = len(mode) if mode == "RGB" else 1
    settings = {"resize": (20, 32), "interpolation": "pil.box"}
    got = decode(data, channels, color="rgb" if channels == 3 else "grey", **settings)
    assert got.dtype == np.uint8
    wanted = np.asarray(picture).reshape(20, 32, channels).transpose(2, 0, 1)
    np.testing.assert_array_equal(got, wanted)
    if channels == 3:
        np.testing.assert_array_equal(decode(data, 3, **settings), wanted[::-1])


def test_a_photograph_is_turned_where_that_is_asked_for():
    data = encoded("turned", 24, 90)
    stored = decode(data, 3, interpolation="pil.box")
    assert stored.shape == (3, 24, 90)
    turned = decode(data, 3, interpolation="pil.box", upright=True)
    np.testing.assert_array_equal(turned, np.rot90(stored, -1, (1, 2)))


@pytest.mark.parametrize("mode", ["exact", "shorter", "fit"])
@pytest.mark.parametrize(("kind", "channels"), [("RGB", 3), ("L", 1), ("CMYK", 3), ("turned", 3)])
@pytest.mark.parametrize("way", ["pil.bilinear", "pil.bicubic", "cv2.area", "cv2.linear"])
def test_a_jpeg_is_decoded_in_the_detail_that_its_new_size_needs(way, kind, channels, mode):
    """An eighth of 601 x 801 is 76 x 101; the picture differs by less than 1.2 of 255."""
    settings = {"resize": (70, 75), "resize_mode": mode, "interpolation": way, "upright": True}
    data = encoded(kind, 600 if kind == "turned" else 601, 800 if kind == "turned" else 801)
    whole, reduced = (decode(data, channels, exact=exact, **settings) for exact in (True, False))
    assert whole.shape == reduced.shape == (channels, 70, 75)
    apart = np.abs(whole.astype(float) - reduced.astype(float)).mean()
    assert 0 < apart < 1.2
    default = decode(data, channels, **settings)
    np.testing.assert_array_equal(default, whole if way == "cv2.linear" else reduced)


def test_files_without_a_scale_are_decoded_in_full():
    data = encoded("P", 601, 801)
    settings = {"resize": 75, "interpolation": "pil.bilinear"}
    np.testing.assert_array_equal(
        decode(data, 3, **settings), decode(data, 3, exact=True, **settings)
    )


def test_16_bits():
    deep = np.array([[0, 255, 256], [257, 65534, 65535]], np.uint16)
    file = io.BytesIO()
    Image.fromarray(deep).save(file, "png")
    for library, wanted in (("caffe.linear", deep / 257.0), ("cv2.linear", deep >> 8)):
        got = decode(file.getvalue(), 1, interpolation=library)
        np.testing.assert_allclose(got[0], wanted, rtol=1e-6)
        struct = ImageArrays(Preprocessing(interpolation=library), 1).of_pixels(
            deep[..., None], "it"
        )
        np.testing.assert_array_equal(struct, got)


@pytest.mark.parametrize("library", ["caffe.linear", "cv2.linear", "pil.bilinear"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["L", "RGB", "RGBA"])
def test_pixels_are_what_their_file_is(library, channels, kind):
    drawn = pixels(25, 31, 4)
    rows = {"L": drawn[..., :1], "RGB": drawn[..., :3], "RGBA": drawn}[kind]
    file = io.BytesIO()
    Image.fromarray(rows[..., 0] if kind == "L" else rows).save(file, "png")
    how = ImageArrays(Preprocessing(resize=(12, 40), interpolation=library), channels)
    swapped = rows if kind == "L" else rows[..., [2, 1, 0, *range(3, rows.shape[2])]]
    got = how.of_pixels(swapped, "it")
    np.testing.assert_array_equal(got, how.of_file(file.getvalue(), "it"))


def test_floating_pixels_stay():
    rows = np.random.default_rng(0).normal(size=(4, 5, 3))
    got = ImageArrays(Preprocessing(), 3).of_pixels(rows, "it")
    np.testing.assert_array_equal(got, rows.astype(np.float32).transpose(2, 0, 1))


@pytest.mark.parametrize("size", [(30, 40), (64, 33), (33, 64), (90, 24), (24, 24)])
def test_the_shorter_side_and_its_centre(size):
    """A crop of it is the centre of the whole resized image, for odd rests too."""
    data = encoded("RGB", *size)
    picture = Image.open(io.BytesIO(data))
    scale = 32 / min(size)
    whole = picture.resize(
        (int(size[1] * scale + 1e-9), int(size[0] * scale + 1e-9)), Image.Resampling.BILINEAR
    )
    for crop in (24, 27, 32):
        how = Preprocessing(
            resize=32,
            resize_mode="shorter",
            crop=crop,
            interpolation="pil.bilinear",
            color="rgb",
        )
        stored = ImageArrays(how, 3).of_file(data, "it")
        assert stored.shape == (3, 32, 32)
        begin = (32 - crop) // 2
        got = stored[:, begin : begin + crop, begin : begin + crop]
        top, left = (whole.height - crop) // 2, (whole.width - crop) // 2
        wanted = np.asarray(whole)[top : top + crop, left : left + crop]
        np.testing.assert_array_equal(got, wanted.transpose(2, 0, 1))


@pytest.mark.parametrize("size", [(30, 40), (64, 33), (33, 64), (24, 24), (7, 91)])
def test_fitted_between_bars(size):
    from PIL import ImageOps

    data = encoded("RGB", *size)
    picture = Image.open(io.BytesIO(data))
    wanted = ImageOps.pad(picture, (40, 32), Image.Resampling.BICUBIC, color=(1, 2, 3))
    got = decode(
        data,
        3,
        resize=(32, 40),
        resize_mode="fit",
        pad=(1, 2, 3),
        interpolation="pil.bicubic",
        color="rgb",
        exact=True,
    )
    np.testing.assert_array_equal(got, np.asarray(wanted).transpose(2, 0, 1))


def test_each_image_has_its_array_or_its_error():
    good = encoded("RGB", 30, 40)
    images = [good, None, b"nothing", good[:-300], encoded("L", 10, 15), good]
    found = ImageArrays(Preprocessing(resize=(8, 8)), 3).all(images, lambda row: f"row {row}")
    kinds = [type(one) for one in found]
    assert kinds == [np.ndarray, DataError, FileError, FileError, np.ndarray, np.ndarray]
    assert str(found[1]) == "row 1 is null"
    assert str(found[2]) == "row 2: is no image that can be read"
    assert str(found[3]).startswith("row 3: is a damaged image")
    assert stacked([one for one in found if isinstance(one, np.ndarray)]).shape == (3, 3, 8, 8)


def test_images_of_their_own_size_are_cut_to_the_crop():
    how = Preprocessing(crop=(8, 10))
    data = encoded("RGB", 30, 40)
    whole = decode(data, 3)
    cut = ImageArrays(how, 3).of_file(data, "it")
    np.testing.assert_array_equal(cut, whole[:, 11:19, 15:25])
    np.testing.assert_array_equal(ImageArrays(how, 3, training=True).of_file(data, "it"), whole)
    with pytest.raises(DataError, match="it is 6 x 90, smaller than the crop of 8 x 10: give res"):
        ImageArrays(how, 3).of_file(encoded("RGB", 6, 90), "it")


def test_sizes_are_checked_before_memory_is_taken():
    file = io.BytesIO()
    Image.new("L", (60000, 2)).save(file, "png")
    with pytest.raises(FileError, match="it: would become 4096 x 122880000 pixels"):
        decode(file.getvalue(), 1, resize=4096, resize_mode="shorter")
