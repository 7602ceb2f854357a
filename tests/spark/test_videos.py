"""Frames of videos as rows: which of them, when, and by which tasks."""

from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError, SparkError
from sparknet.loaders.videos import video_frames, video_seconds
from sparknet.spark import SparkModel, read_videos

RATE, FRAMES = 10, 35
NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 3 dim: 32 dim: 48 } } }
layer { name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param {
  pool: AVE global_pooling: true } }
"""


@pytest.fixture(scope="module")
def video(tmp_path_factory) -> Path:
    """3.5 seconds; frame n is of grey 6 n + 20, and a key frame begins each second."""
    path: Path = tmp_path_factory.mktemp("videos") / "ramp.mp4"
    write_video(path)
    return path


def write_video(path: Path, frames: int = FRAMES) -> None:
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 48, 32, "yuv420p", RATE
        stream.bit_rate = 10_000_000
        for number in range(frames):
            pixels = np.full((32, 48, 3), 6 * number + 20, np.uint8)
            frame = av.VideoFrame.from_ndarray(pixels, format="bgr24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


@pytest.mark.parametrize(
    ("span", "every", "numbers"),
    [
        ((), None, range(35)),
        ((0.95, 2.05), None, range(10, 21)),
        ((), 0.5, range(0, 35, 5)),
        ((1.0, 2.0), 0.25, [10, 13, 15, 18]),
        ((), 100.0, [0]),
    ],
)
def test_frames_of_a_span(video, span, every, numbers):
    frames = [*video_frames(str(video), *span, every=every)]
    assert [frame.index for frame in frames] == [*numbers]
    np.testing.assert_allclose([frame.seconds for frame in frames], np.array(numbers) / RATE)
    for frame in frames:
        assert frame.pixels.shape == (32, 48, 3)
        assert abs(frame.pixels.mean() - (6 * frame.index + 20)) < 4
    assert video_seconds(str(video)) == pytest.approx(3.5)


def test_tasks_share_a_video_and_a_net_reads_its_frames(video, session):
    frames = read_videos(session, [video, video.parent / "ramp.mp4"], every=0.2, span=1.0)
    assert frames.columns == ["path", "index", "seconds", "image"]
    model = SparkModel(NET, columns={"data": "image"}, mean=0)
    rows = model.transform(frames, ["pool"]).select("index", "seconds", "path", "pool").collect()
    assert sorted(row[0] for row in rows) == sorted([*range(0, 35, 2)] * 2)
    assert {row.path for row in rows} == {str(video)}
    for row in rows:
        assert row[0] == round(row.seconds * RATE)
        assert abs(np.mean(row.pool) - (6 * row[0] + 20)) < 4


def test_the_example_counts_by_second_and_class(session, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    from count_in_video import count

    schema = "path string, seconds double, boxes array<struct<label int, name string, score float>>"
    rows = [("a", 0.0, [(1, "cat", 0.9), (1, "cat", 0.5), (2, "dog", 0.4)]), ("a", 1.0, [])]
    counts = count(session.createDataFrame(rows, schema), "boxes", 0.5).collect()
    assert [tuple(row) for row in counts] == [("a", 0.0, 1, "cat", 2)]


def test_frames_as_jpegs(video, session):
    frames = read_videos(session, video, every=1, columns=["seconds", "content"])
    rows = frames.collect()
    assert [row.seconds for row in rows] == [0, 1, 2, 3]
    assert all(bytes(row.content).startswith(b"\xff\xd8") for row in rows)


def test_a_broken_video_is_named(tmp_path, session):
    pytest.importorskip("av")
    (tmp_path / "broken.mp4").write_bytes(b"no video" * 100)
    with pytest.raises(FileError, match=r"broken\.mp4.* is no video that can be read"):
        read_videos(session, tmp_path / "broken.mp4")
    with pytest.raises(FileError, match=r"absent\.mp4"):
        read_videos(session, tmp_path / "absent.mp4")


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"columns": ["picture"]}, "videos have no column 'picture'"),
        ({"every": 0}, "every is 0: seconds above 0 are needed"),
        ({"paths": []}, "needs the path of a video"),
    ],
)
def test_what_is_refused(keywords, sentence, session):
    with pytest.raises(SparkError, match=sentence):
        read_videos(session, **{"paths": "x.mp4", **keywords})
