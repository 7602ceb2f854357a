"""VideoData: clips of C3D, parts of TSN's videos, and SSD's streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sparknet import caffe
from sparknet.errors import LayerError
from sparknet.forks.video.readers.clips import fixed_places, scaled_crops
from sparknet.loaders.resize import resize
from sparknet.proto import write_blob
from tests.caffe.host.nets import net, source

SIZE = (12, 16)


def folder(at: Path, pattern: str, many: int, axes: str = " ", first: int = 1) -> Any:
    """Frames of noise in a folder of pictures; returns what reading them gives."""
    at.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(many)
    found = []
    for number in range(first, first + many):
        planes = []
        for axis in axes:
            shape = SIZE if axis != " " else (*SIZE, 3)
            pixels = rng.integers(0, 256, shape).astype(np.uint8)
            # PNG under the names of JPEGs: their bytes say what they are.
            path = at / (pattern.replace("%c", axis) % number)
            Image.fromarray(pixels).save(path, "PNG")
            planes.append(pixels[:, :, ::-1].transpose(2, 0, 1) if axis == " " else pixels[None])
        found.append(np.concatenate(planes))
    return np.stack(found).astype(np.float32)


def clips(tmp_path: Path, options: str, transform: str = "", lines: str = "a 2 5\nb 1 7\n") -> str:
    (tmp_path / "list").write_text(lines)
    where = f"source: '{tmp_path / 'list'}' root_folder: '{tmp_path}/' batch_size: 2"
    return source("VideoData", video_data_param=f"{where} {options}", transform_param=transform)


def test_clips_of_frames(tmp_path: Path) -> None:
    a = folder(tmp_path / "a", "%06d.jpg", 8)
    b = folder(tmp_path / "b", "%06d.jpg", 5)
    options = "use_image: true new_length: 3 sampling_rate: 2"
    made = net(clips(tmp_path, options, "crop_size: 10 mean_value: 1 mean_value: 2 mean_value: 3"))
    made.forward()
    want = np.stack([a[[1, 3, 5]], b[[0, 2, 4]]]).transpose(0, 2, 1, 3, 4)[..., 1:11, 3:13]
    want = want - np.array([1, 2, 3]).reshape(3, 1, 1, 1)
    np.testing.assert_array_equal(made.blobs["data"].data, want)
    assert made.blobs["label"].data.tolist() == [5, 7]


def test_the_first_version_of_c3d(tmp_path: Path) -> None:
    """Its options are those of ImageData; means are as large as clips."""
    a = folder(tmp_path / "a", "%06d.jpg", 4)
    mean = np.random.default_rng(9).uniform(0, 99, (1, 3, 2, 6, 8)).astype(np.float32)
    write_blob(tmp_path / "mean", mean)
    (tmp_path / "list").write_text(f"{tmp_path}/a 3 1\n")
    text = (
        "layers { name: 'data' type: VIDEO_DATA top: 'data' top: 'label' image_data_param { "
        f"source: '{tmp_path / 'list'}' use_image: true mean_file: '{tmp_path / 'mean'}' "
        "batch_size: 1 crop_size: 4 mirror: false new_height: 6 new_width: 8 new_length: 2 } }"
    )
    made = net(text)
    made.forward()
    frames = np.stack(
        [resize(f.transpose(1, 2, 0).astype(np.uint8), (6, 8), "cv2.linear") for f in a[2:]]
    )
    want = (frames.transpose(3, 0, 1, 2) - mean[0])[..., 1:5, 2:6]
    np.testing.assert_allclose(made.blobs["data"].data[0], want, rtol=1e-6)


def test_clips_by_chance(tmp_path: Path) -> None:
    """With use_temporal_jitter a line says how many frames there are, and any may be first."""
    a = folder(tmp_path / "a", "%06d.jpg", 7)
    text = clips(
        tmp_path, "use_image: true new_length: 4 use_temporal_jitter: true", lines="a 7 1,4"
    )
    made = net(text, caffe.TRAIN)
    seen = set()
    for _ in range(12):
        made.forward()
        for clip in made.blobs["data"].data:
            first = [n for n in range(4) if (clip[:, 0] == a[n]).all()]
            np.testing.assert_array_equal(clip, a[first[0] : first[0] + 4].transpose(1, 0, 2, 3))
            seen.update(first)
    assert seen == {0, 1, 2, 3}
    made = net(text)
    for _ in range(3):
        made.forward()
        for clip in made.blobs["data"].data:
            np.testing.assert_array_equal(clip, a[:4].transpose(1, 0, 2, 3))
    several = text.replace("new_length", "use_multiple_label: true num_of_labels: 2 new_length")
    made = net(several)
    made.forward()
    assert made.blobs["label"].data.tolist() == [[1, 4], [1, 4]]


def test_parts_of_videos(tmp_path: Path) -> None:
    """The middle of each part in TEST; any place in TRAIN."""
    a = folder(tmp_path / "a", "img_%05d.jpg", 9)
    options = "new_length: 2 num_segments: 2 modality: RGB name_pattern: 'img_%05d.jpg'"
    text = clips(tmp_path, options, "mean_value: 1 mean_value: 2 mean_value: 3", "a 9 1\n")
    made = net(text)
    made.forward()
    # Parts of 4 frames: (4 - 2 + 1) // 2 = 1 frame before the first.
    want = (a[[1, 2, 5, 6]] - np.array([1, 2, 3]).reshape(3, 1, 1)).reshape(12, *SIZE)
    np.testing.assert_array_equal(made.blobs["data"].data[1], want)
    made = net(text, caffe.TRAIN)
    seen = set()
    for _ in range(20):
        made.forward()
        for data in made.blobs["data"].data + np.tile([1, 2, 3], 4).reshape(12, 1, 1):
            seen.update(n for n in range(9) if (data[6:9] == a[n]).all())
    assert seen == {4, 5, 6}


def test_flows(tmp_path: Path) -> None:
    """x and y in turn; where a flow is mirrored, x points the other way."""
    a = folder(tmp_path / "a", "flow_%c_%04d.jpg", 2, "xy")
    options = "new_length: 2 num_segments: 1 modality: FLOW"
    transform = "mean_value: 128 is_flow: true mirror: true crop_size: 12"
    made = net(clips(tmp_path, options, transform, "a 2 0\n"))
    plain = a.reshape(4, *SIZE)[:, :, 2:14]
    mirrored = plain[:, :, ::-1].copy()
    mirrored[::2] = 255 - mirrored[::2]
    seen = set()
    for _ in range(8):
        made.forward()
        for data in made.blobs["data"].data + 128:
            kind = bool((data == mirrored).all())
            assert kind or (data == plain).all()
            seen.add(kind)
    assert seen == {True, False}


def test_crops_of_several_sizes(tmp_path: Path) -> None:
    """Each is one of the listed sizes at one of the listed places, resized to the crop."""
    a = folder(tmp_path / "a", "image_%04d.jpg", 1)
    transform = (
        "crop_size: 8 fix_crop: true multi_scale: true scale_ratios: [1, 0.5] max_distort: 1 "
        "more_fix_crop: true"
    )
    made = net(clips(tmp_path, "modality: RGB", transform, "a 1 0\n"), caffe.TRAIN)
    possible = {}
    for high, wide in ((12, 12), (12, 8), (8, 12), (8, 8)):
        # 6 is within two pixels of the crop, so that it becomes the crop.
        for down in range(5):
            for right in range(5):
                top, left = (12 - high) // 4 * down, (16 - wide) // 4 * right
                part = a[0, :, top : top + high, left : left + wide].transpose(1, 2, 0)
                small = resize(np.ascontiguousarray(part).astype(np.uint8), (8, 8), "cv2.linear")
                possible[(high, wide, down, right)] = small.transpose(2, 0, 1)
    seen = set()
    for _ in range(40):
        made.forward()
        for data in made.blobs["data"].data:
            found = {at for at, values in possible.items() if (data == values).all()}
            assert found
            seen.update(at[:2] for at in found)
    assert seen == {(12, 12), (12, 8), (8, 12), (8, 8)}
    assert scaled_crops((100, 200), 66, (), 1)[:3] == [(100, 100), (100, 87), (87, 100)]
    assert (66, 66) in scaled_crops((100, 200), 66, (), 0)
    assert fixed_places((8, 4), False) == [(0, 0), (0, 4), (8, 0), (8, 4), (4, 2)]
    assert len(set(fixed_places((8, 4), True))) == 13


@pytest.mark.parametrize(
    ("options", "lines", "says"),
    [
        ("use_image: true", "a 1\n", "line 1 is no path, number and label"),
        ("use_image: true", "", "holds no clip"),
        ("use_image: true new_height: 3", "a 1 1\n", "needs new_height and new_width together"),
        ("modality: RGB name_pattern: '%s'", "a 1 1\n", "must have one number such as %04d"),
        ("modality: RGB name_pattern: '../%d'", "a 1 1\n", "must have one number such as %04d"),
        ("modality: FLOW name_pattern: '%d'", "a 1 1\n", "for flows %c before it"),
        ("use_image: true new_length: 9", "a 1 1\n", "000003.jpg"),
    ],
)
def test_settings(tmp_path: Path, options: str, lines: str, says: str) -> None:
    folder(tmp_path / "a", "%06d.jpg", 2)
    with pytest.raises(LayerError, match=f"layer 'src': VideoData: .*{says}"):
        net(clips(tmp_path, options, "", lines)).forward()


def film(path: Path, many: int) -> Any:
    cv2 = pytest.importorskip("cv2")
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 5, SIZE[::-1])
    for number in range(many):
        writer.write(np.full((*SIZE, 3), number * 20, np.uint8))
    writer.release()


def test_videos(tmp_path: Path) -> None:
    """Frames of one grey each say which they are."""
    film(tmp_path / "a.avi", 10)
    text = clips(tmp_path, "new_length: 2 sampling_rate: 3", "", "a.avi 4 1\n")
    made = net(text)
    made.forward()
    found = made.blobs["data"].data[0].mean((0, 2, 3)) / 20
    np.testing.assert_allclose(found, [4, 7], atol=0.15)


def test_a_stream(tmp_path: Path) -> None:
    """SSD's: frame after frame, resized, around the video."""
    film(tmp_path / "a.avi", 5)
    text = source(
        "VideoData",
        1,
        data_param="batch_size: 2",
        video_data_param=f"video_type: VIDEO video_file: '{tmp_path / 'a.avi'}' skip_frames: 1",
        transform_param="mean_value: 10 resize_param { height: 6 width: 9 resize_mode: WARP }",
    )
    made = net(text)
    found = []
    for _ in range(2):
        made.forward()
        assert made.blobs["data"].data.shape == (2, 3, 6, 9)
        found += ((made.blobs["data"].data.mean((1, 2, 3)) + 10) / 20).tolist()
    np.testing.assert_allclose(found, [1, 3, 0, 2], atol=0.2)
