"""Image files and tars of them: labels, sizes, damage and traps."""

import io
import pickle
import struct
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from sparknet.errors import FileError, SpecError
from sparknet.loaders import Batches, Column, ImageFiles, Order, Records, Tars


def png(shade: int, height: int = 4, width: int = 5) -> bytes:
    """An image whose red is `shade`, its green 1 and its blue 2."""
    pixels = np.full((height, width, 3), (shade, 1, 2), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def bomb(height: int, width: int) -> bytes:
    """A PNG whose header announces a size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 100)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


def folder(path: Path, images: dict[str, bytes]) -> Path:
    for name, data in images.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


def reds(batch):
    assert (batch["data"][:, 0] == 2).all()
    return batch["data"][:, 2, 0, 0].tolist()


def test_a_list_of_files(tmp_path):
    folder(tmp_path, {f"some {n}.png": png(n) for n in range(3)})
    (tmp_path / "list").write_text("".join(f"some {n}.png {n + 7}\n" for n in (2, 0, 1)))
    records = ImageFiles(tmp_path / "list", tmp_path)
    assert isinstance(records, Records)
    assert records.columns == {
        "data": Column(np.dtype(np.uint8), (3, 4, 5)),
        "label": Column(np.dtype(np.int32), ()),
    }
    for one in (records, pickle.loads(pickle.dumps(records))):
        batch = one.take([0, 2])
        assert reds(batch) == [2, 1]
        assert batch["label"].tolist() == [9, 8]


def test_a_folder_with_a_subfolder_for_each_class(tmp_path):
    files = {"dog/a.png": png(1), "cat/deep/b.PNG": png(2), "cat/c.png": png(3), "cat/note": b"x"}
    records = ImageFiles(folder(tmp_path, files))
    assert records.classes == ["cat", "dog"]
    batch = records.take(slice(None))
    assert (reds(batch), batch["label"].tolist()) == ([3, 2, 1], [0, 0, 1])


def test_sizes_and_colours(tmp_path):
    path = folder(tmp_path, {"a/0.png": png(9), "a/1.png": png(9, 8, 8)})
    with pytest.raises(FileError, match=r"1\.png: is 3 x 8 x 8, the first image 3 x 4 x 5: give a"):
        ImageFiles(path).take([1])
    assert reds(ImageFiles(path, size=(6, 6)).take([0, 1])) == [9, 9]
    assert ImageFiles(path, size=(6, 7), color=False).take([1])["data"].shape == (1, 1, 6, 7)


BAD = {
    "foreign": b"nothing",
    "cut": png(3)[:50],
    "large": bomb(9_000, 9_000),
    "larger": bomb(60_000, 60_000),
    "empty": b"",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_damaged_images_are_counted_and_named(tmp_path, bad):
    names = {f"a/{n}.png": png(n) for n in range(5)} | {"a/3.png": bad, "a/0.png": bad}
    path = folder(tmp_path, names)
    with pytest.raises(FileError, match=r"3\.png: (is|announces)"):
        ImageFiles(path, size=(4, 5)).take([1, 3])
    records = ImageFiles(path, invalid="drop")
    assert reds(records.take(slice(None))) == [1, 2, 4]
    assert sorted(Path(name).name for name in records.failed) == ["0.png", "3.png"]
    with Batches(records, 2, Order(5, shuffle=False)) as batches:
        assert [reds(batches.next()) for _ in range(3)] == [[1, 2], [4, 1], [2, 4]]
    assert len(records.failed) == 2


def test_nothing_but_damage_is_an_error_not_a_loop(tmp_path):
    path = folder(tmp_path, {f"a/{n}.png": b"nothing" for n in range(3)})
    with pytest.raises(FileError, match="no image can be read"):
        ImageFiles(path, invalid="drop").take([0])
    records = ImageFiles(path, invalid="drop", size=(2, 2))
    with Batches(records, 2) as batches, pytest.raises(FileError, match="every one of them is"):
        batches.next()


def test_missing_files_and_wrong_options(tmp_path):
    (tmp_path / "list").write_text("nosuch.png 1\n")
    with pytest.raises(FileError, match=r"nosuch\.png: does not exist"):
        ImageFiles(tmp_path / "list", tmp_path, size=(2, 2)).take([0])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="holds no image: its subfolders are the classes, and none"):
        ImageFiles(tmp_path / "empty")
    with pytest.raises(SpecError, match="invalid is 'ignore'"):
        ImageFiles(tmp_path / "list", invalid="ignore")


def test_tars_by_list(tmp_path):
    one = tar(tmp_path / "one.tar", {"n1_1.JPEG": png(1), "sub/n2_1.JPEG": png(2), "note": b"x"})
    two = tar(tmp_path / "two.tar", {"n2_2.png": png(3)})
    (tmp_path / "list").write_text("n1/n1_1.JPEG 5\nsub/n2_1.JPEG 6\nn2_2.png 7\n")
    records = Tars([one, two], labels=tmp_path / "list")
    for copy in (records, pickle.loads(pickle.dumps(records))):
        batch = copy.take([2, 0, 1])
        assert (reds(batch), batch["label"].tolist()) == ([3, 1, 2], [7, 5, 6])
    (tmp_path / "list").write_text("n1_1.JPEG 5\n")
    with pytest.raises(FileError, match=r"list: has no label for sub/n2_1\.JPEG"):
        Tars([one, two], labels=tmp_path / "list")


def test_tars_by_folder_synset_and_inner_tar(tmp_path):
    """ImageNet's training set is a tar of one tar for each synset."""
    inner = {
        name: tar(tmp_path / name, {f"{name[:-4]}_{n}.JPEG": png(10 * n) for n in (1, 2)})
        for name in ("n02.tar", "n01.tar")
    }
    outer = tar(tmp_path / "train.tar", {name: p.read_bytes() for name, p in inner.items()})
    records = Tars(outer)
    assert records.classes == ["n01", "n02"]
    batch = records.take([3, 0, 1])
    assert (reds(batch), batch["label"].tolist()) == ([20, 10, 20], [0, 1, 1])
    flat = Tars(tar(tmp_path / "flat.tar", {"n7_1.png": png(1), "x/n7_2.png": png(2)}))
    assert flat.classes == ["n7", "x"]


def test_names_of_any_length(tmp_path):
    name = "a/" + "long" * 60 + ".png"
    records = Tars(tar(tmp_path / "long.tar", {name: png(4)}))
    assert reds(records.take([0])) == [4]
    assert records.members[0].name == name


def test_a_damaged_member_is_named(tmp_path):
    path = tar(tmp_path / "some.tar", {"a_1.png": png(1), "a_2.png": b"nothing"})
    with pytest.raises(FileError, match=r"some\.tar:a_2\.png: is no image"):
        Tars(path).take([1])
    records = Tars(path, invalid="drop")
    assert reds(records.take([1, 0])) == [1]
    assert list(records.failed) == [f"{path}:a_2.png"]


def test_what_is_no_tar(tmp_path):
    for name, data in (("foreign", b"x" * 2000), ("packed", zlib.compress(bytes(9999)))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FileError, match="is no plain tar file"):
            Tars(tmp_path / name)
    with pytest.raises(FileError, match="holds no image"):
        Tars(tar(tmp_path / "none.tar", {"note": b""}))
    with pytest.raises(FileError, match="does not exist"):
        Tars(tmp_path / "absent.tar")
    whole = tar(tmp_path / "cut.tar", {"a_1.png": png(1), "a_2.png": bytes(5000)}).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:2000])
    with pytest.raises(FileError, match=r"is cut short in a_2\.png"):
        Tars(tmp_path / "cut.tar")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.integers(0, 1535), st.binary(min_size=1, max_size=12))
def test_a_damaged_header_never_hangs(tmp_path, at, junk):
    path = tar(tmp_path / "some.tar", {"a_1.png": png(1), "a_2.png": png(2)})
    data = bytearray(path.read_bytes())
    data[at : at + len(junk)] = junk
    path.write_bytes(data)
    with suppress(FileError):
        assert len(Tars(path)) <= 2


def test_sizes_below_zero_do_not_lead_back(tmp_path):
    path = tar(tmp_path / "some.tar", {"a_1.png": png(1), "a_2.png": png(2)})
    data = bytearray(path.read_bytes())
    second = data.index(b"a_2.png")
    header = data[second : second + 512]
    header[124:136] = (-1536).to_bytes(12, "big", signed=True)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data[second : second + 512] = header
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"some\.tar: is (damaged|no plain tar)"):
        Tars(path)
