"""Data: order, transformation, encoded and odd records, damage."""

import io

import numpy as np
import pytest
from PIL import Image

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.proto import write_blob
from tests.layers.host.nets import database, datum, images, lmdb, net, of_images, passes
from tests.loaders.databases import database as leveldb


def _png(pixels: np.ndarray, kind: str = "png") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def _encoded(pixels: np.ndarray, kind: str = "png", **fields: int) -> bytes:
    """A record with an image of height x width (x 3: red, green, blue)."""
    return datum(data=_png(pixels, kind), encoded=True, **fields)


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("crop", [0, 5])
def test_one_transformation_for_each_item(phase, mirror, crop, tmp_path):
    """(value - mean) * scale of some crop, mirrored or not, the mean cropped alike."""
    pixels = images(40, 3, 8, 9)
    mean = np.random.default_rng(5).normal(100, 30, (3, 8, 9)).astype(np.float32)
    write_blob(tmp_path / "mean", mean, legacy=True)
    text = f"mean_file: '{tmp_path / 'mean'}' scale: 0.3 mirror: {str(mirror).lower()}"
    text += f" crop_size: {crop}" if crop else ""
    got = passes(net(lmdb(of_images(tmp_path, pixels), 10, text), phase), 4)
    high, wide = (crop, crop) if crop else (8, 9)
    whole = (pixels - mean) * np.float32(0.3)
    seen = set()
    for item, image in enumerate(got.reshape(40, 3, high, wide)):
        for top in range(9 - high):
            for left in range(10 - wide):
                for step in (1, -1):
                    part = whole[item, :, top : top + high, left : left + wide][..., ::step]
                    if np.array_equal(part, image):
                        seen.add((item, top, left, step))
    assert len({item for item, *_ in seen}) == 40
    assert {step for *_, step in seen} == ({1, -1} if mirror else {1})
    centre = {((8 - high) // 2, (9 - wide) // 2)}
    places = {(top, left) for _, top, left, _ in seen}
    assert places == centre if phase == caffe.TEST or not crop else len(places) > 12


def test_the_seed_decides_and_batches_do_not(tmp_path):
    path = of_images(tmp_path, images(30, 1, 9, 9))
    text = "crop_size: 4 mirror: true"

    def values(batch: int, seed: int) -> np.ndarray:
        made = net(lmdb(path, batch, text), caffe.TRAIN, seed)
        return np.asarray(passes(made, 60 // batch).reshape(60, 4, 4))

    first = values(10, 3)
    np.testing.assert_array_equal(first, values(10, 3))
    np.testing.assert_array_equal(first, values(6, 3))
    assert not np.array_equal(first, values(10, 4))
    assert not np.array_equal(first[:30], first[30:])


@pytest.mark.parametrize(("force", "channels"), [("", 3), ("force_gray: true", 1)])
def test_encoded_colour_is_blue_green_red(force, channels, tmp_path):
    pixels = images(4, 6, 5, 3)
    made = net(lmdb(database(tmp_path, map(_encoded, pixels)), 4, force))
    made.forward()
    got = made.blobs["data"].data
    assert got.shape == (4, channels, 6, 5)
    if channels == 3:
        np.testing.assert_array_equal(got, pixels[..., ::-1].transpose(0, 3, 1, 2))
    else:
        weighted = (pixels * np.array([0.299, 0.587, 0.114])).sum(-1)
        assert np.abs(got[:, 0] - weighted).max() <= 0.51


@pytest.mark.parametrize(("force", "channels"), [("", 1), ("force_color: true", 3)])
def test_encoded_grey(force, channels, tmp_path):
    pixels = images(3, 4, 5)
    records = [_encoded(image, label=7) for image in pixels]
    made = net(lmdb(database(tmp_path, records), 3, force + " crop_size: 4 scale: 2"))
    made.forward()
    want = np.repeat(pixels[:, np.newaxis, :, :4] * 2.0, channels, axis=1)
    np.testing.assert_array_equal(made.blobs["data"].data, want)
    assert made.blobs["label"].data.tolist() == [7, 7, 7]


def test_jpeg_of_several_sizes_give_batches_of_several_shapes(tmp_path):
    """The first item of a batch decides (Caffe: data_layer.cpp, load_batch)."""
    sizes = [(8, 9), (5, 12), (8, 9)]
    records = [_encoded(images(1, *size, 3)[0], "jpeg") for size in sizes]
    made = net(lmdb(database(tmp_path, records), 1))
    for size in sizes * 2:
        made.forward()
        assert made.blobs["data"].shape == (1, 3, *size)


def test_floats_however_they_are_spelled(tmp_path):
    values = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    shape = datum(channels=1, height=2, width=2)
    single = b"".join(b"\x35" + value.tobytes() for value in values[0])
    packed = b"\x32\x10" + values[1].tobytes()
    scattered = b"\x32\x08" + values[2, :2].tobytes() + single[:0]
    scattered += b"\x28\x05" + b"".join(b"\x35" + v.tobytes() for v in values[2, 2:])
    records = [shape + single, packed + shape, scattered + shape]
    made = net(lmdb(database(tmp_path, records), 3, "scale: 2"))
    made.forward()
    np.testing.assert_array_equal(made.blobs["data"].data.reshape(3, 4), values * 2)
    assert made.blobs["label"].data.tolist() == [0, 0, 5]


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (b"\xff\xff", "is no Datum"),
        (b"\x22\x7f\x00", "is no Datum"),
        (b"\x0b", "is no Datum"),
        (datum(channels=1, height=2, width=2, data=b"123"), "says 1 x 2 x 2 and holds 3 values"),
        (datum(channels=1, height=-2, width=-2, data=b"1234"), "says 1 x -2 x -2"),
        (datum(channels=1 << 30, height=1 << 30, width=16), "and holds 0 values"),
        (datum(channels=1, height=4, width=1, data=b"1234"), "is 1 x 4 x 1; others"),
        (datum(channels=2, height=2, width=2, data=b"12345678"), "is 2 x 2 x 2; others"),
        (datum(data=b"no image", encoded=True), "is no image"),
        (_encoded(images(1, 60, 60, 3)[0])[:9000], "is no Datum"),
        (datum(data=_png(images(1, 60, 60, 3)[0])[:9000], encoded=True), "is a damaged image"),
    ],
)
def test_damage_names_layer_file_and_record(record, says, tmp_path):
    good = datum(channels=1, height=2, width=2, data=b"abcd")
    path = database(tmp_path, [good, good, good, record])
    made = net(lmdb(path, 2))
    made.forward()
    for _ in range(2):
        with pytest.raises(LayerError) as caught:
            made.forward()
        for part in ("layer 'src': Data: ", path, "record b'00003'", says):
            assert part in str(caught.value)
        assert "\n" not in str(caught.value)
    assert made.blobs["data"].data[0, 0].ravel().tolist() == [97, 98, 99, 100]


def test_a_crop_needs_room_in_every_record(tmp_path):
    records = [_encoded(images(1, *size, 3)[0]) for size in ((8, 8), (3, 9))]
    with pytest.raises(LayerError, match=r"record b'00001' is 3 x 3 x 9; the crop is 3 x 5 x 5"):
        net(lmdb(database(tmp_path, records), 2, "crop_size: 5")).forward()


def test_a_shuffled_leveldb(tmp_path):
    """Each round has all records of tables and log, with their labels, in an order of its own."""
    pixels = images(9, 1, 2, 2)
    rows = [
        (b"%05d" % n, n + 1, datum(channels=1, height=2, width=2, data=image.tobytes(), label=n))
        for n, image in enumerate(pixels)
    ]
    path = leveldb(tmp_path / "db", [rows[:4], rows[4:7]], rows[7:])
    text = lmdb(str(path), 3).replace("LMDB", "LEVELDB shuffle: true")
    made = net(text)
    turns = []
    for _ in range(4):
        labels: list[int] = []
        for _ in range(3):
            made.forward()
            own = made.blobs["label"].data.astype(int).tolist()
            np.testing.assert_array_equal(made.blobs["data"].data, pixels[own])
            labels += own
        assert sorted(labels) == list(range(9))
        turns.append(tuple(labels))
    assert len(set(turns)) == 4
    again, other = net(text), net(text, seed=2)
    assert passes(again, 3, "label").ravel().tolist() == list(turns[0])
    assert passes(other, 3, "label").ravel().tolist() != list(turns[0])
