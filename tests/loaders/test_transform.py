"""The transformation of batches, against the same arithmetic in numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.errors import ArrayError, FileError, SpecError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords
from sparknet.loaders.transform import Transform
from sparknet.proto import caffe_pb2, write_blob

TEST: int = caffe_pb2.TEST
DTYPES = ["u1", "f4", "f8", "i2", ">f4", "?"]


def images(dtype="u1", shape=(6, 3, 7, 9)):
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_scale_mean_and_central_crop_of_any_type_and_layout(dtype, layout):
    batch = images(dtype)
    values = (1.5, 2.5, 3.5)
    transform = Transform(phase=TEST, layout=layout, scale=0.5, mean_values=values, crop_size=4)
    stored = batch if layout == "NCHW" else np.ascontiguousarray(batch.transpose(0, 2, 3, 1))
    got = transform(stored)
    cut = batch[:, :, 1:5, 2:6].astype(np.float32)
    want = (cut - np.float32(values)[:, None, None]) * np.float32(0.5)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)


def test_views_of_any_stride_are_read_in_place():
    batch = images()[::-2, ::-1, :, 1:8:2]
    np.testing.assert_array_equal(Transform(phase=TEST)(batch), batch.astype(np.float32))


def test_grey_images_may_lack_the_axis_of_channels():
    batch = images()[:, 0]
    np.testing.assert_array_equal(Transform(phase=TEST)(batch)[:, 0], batch.astype(np.float32))


def test_a_mean_image_is_cropped_with_the_item(tmp_path):
    batch, mean = images(), images("f4", (3, 7, 9)) / 3
    write_blob(tmp_path / "mean.binaryproto", mean)
    parameter = caffe_pb2.TransformationParameter(
        crop_size=5, scale=2, mean_file=str(tmp_path / "mean.binaryproto")
    )
    want = ((batch - mean) * np.float32(2))[:, :, 1:6, 2:7]
    np.testing.assert_array_equal(Transform(parameter, TEST)(batch), want)
    np.testing.assert_array_equal(
        Transform(phase=TEST, crop_size=5, scale=2, mean=mean)(batch), want
    )


def windows(image, size):
    """Every crop of an image, mirrored or not."""
    found = {}
    for top in range(image.shape[1] - size + 1):
        for left in range(image.shape[2] - size + 1):
            cut = image[:, top : top + size, left : left + size].astype(np.float32)
            found[cut.tobytes()] = (top, left, False)
            found[cut[:, :, ::-1].tobytes()] = (top, left, True)
    return found


def test_random_crops_and_mirrors_reach_every_place_in_training():
    batch = np.broadcast_to(images(shape=(1, 3, 5, 5)), (2000, 3, 5, 5))
    places = windows(batch[0], 3)
    assert len(places) == 18
    got = Transform(crop_size=3, mirror=True, seed=5)(batch)
    counts = {}
    for item in got:
        place = places[item.tobytes()]
        counts[place] = counts.get(place, 0) + 1
    # 111 each are expected, give or take 10.
    assert len(counts) == 18
    assert 60 < min(counts.values()) <= max(counts.values()) < 170


def test_testing_mirrors_and_does_not_move_the_crop():
    batch = np.broadcast_to(images(shape=(1, 3, 5, 5)), (100, 3, 5, 5))
    places = windows(batch[0], 3)
    got = Transform(phase=TEST, crop_size=3, mirror=True)(batch)
    assert {places[item.tobytes()] for item in got} == {(1, 1, False), (1, 1, True)}


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(-(2**64), 2**64))
def test_item_n_looks_the_same_in_whatever_batch_it_comes(cuts, seed):
    batch = np.broadcast_to(images(shape=(1, 1, 6, 6)), (sum(cuts) + 3, 1, 6, 6))
    whole = Transform(crop_size=2, mirror=True, seed=seed)(batch)
    pieces = Transform(crop_size=2, mirror=True, seed=seed)
    got = [pieces(batch[:count]) for count in cuts]
    cursor = pieces.cursor
    assert cursor == sum(cuts)
    again = Transform(crop_size=2, mirror=True, seed=seed)
    again.seek(cursor)
    np.testing.assert_array_equal(np.concatenate([*got, again(batch[:3])]), whole)
    np.testing.assert_array_equal(again(batch[:3], first=cursor), whole[cursor:])
    assert again.cursor == cursor + 3


def test_batches_resume_with_the_same_crops():
    records = ArrayRecords(data=images(shape=(7, 1, 6, 6)), label=np.arange(7))
    transform = Transform(crop_size=3, mirror=True, seed=3)
    with Batches(records, 2, Order(7), transforms={"data": transform}) as batches:
        for _ in range(5):
            batches.next()
        cursor = batches.cursor
        want = [batches.next()["data"] for _ in range(3)]
        batches.seek(cursor)
        for batch in want:
            np.testing.assert_array_equal(batches.next()["data"], batch)


@pytest.mark.parametrize(
    ("settings", "batch", "message"),
    [
        ({"crop_size": 8}, images(), "crop_size 8 is larger than the images, 3 x 7 x 9"),
        ({"mean_values": (1, 2)}, images(), "2 mean values for 3 channels"),
        ({"mean": np.zeros((3, 5, 5))}, images(), "the mean is 3 x 5 x 5, but the images are 3"),
        ({}, np.zeros((2, 3)), "has 3 or 4 axes, not 2"),
        ({}, np.zeros((2, 3, 4, 4), "U3"), "images of type <U3"),
    ],
)
def test_batches_that_do_not_fit(settings, batch, message):
    with pytest.raises(ArrayError, match=message):
        Transform(**settings)(batch)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layout": "HWCN"}, "layout 'HWCN'"),
        ({"crop": 3}, "cannot be made of"),
        ({"crop_size": -3}, "cannot be made of"),
        ({"mean": np.zeros((1, 2, 2)), "mean_values": (1,)}, "not both"),
        ({"parameter": caffe_pb2.TransformationParameter(), "scale": 2}, "not both"),
        (
            {"parameter": caffe_pb2.TransformationParameter(crop_h=3)},
            "transform_param.crop_h belongs to SSD",
        ),
    ],
)
def test_transforms_that_cannot_be(settings, message):
    with pytest.raises(SpecError, match=message):
        Transform(**settings)


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (1, 1, 3, 4, 4)])
def test_a_mean_file_holds_one_image(tmp_path, shape):
    write_blob(tmp_path / "mean", np.zeros(shape, np.float32))
    with pytest.raises(FileError, match="not one image"):
        Transform(mean_file=str(tmp_path / "mean"))
