from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet.caffe import io
from sparknet.errors import ArrayError, FileError, MissingExtra

Image = pytest.importorskip("PIL.Image")


def saved(folder: Path, array: Any, mode: str | None = None, name: str = "x.png") -> Path:
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(folder / name)
    return folder / name


RGB = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [51, 51, 51]]], np.uint8)


def test_colour(tmp_path: Path) -> None:
    image = io.load_image(saved(tmp_path, RGB))
    assert image.dtype == np.float32
    assert np.allclose(image, RGB / 255)


def test_colour_as_gray(tmp_path: Path) -> None:
    image = io.load_image(saved(tmp_path, RGB), color=False)
    assert image.shape == (2, 2, 1)
    assert np.allclose(image[..., 0], [[0.2125, 0.7154], [0.0721, 0.2]])


def test_gray(tmp_path: Path) -> None:
    path = saved(tmp_path, np.array([[0, 51], [102, 255]], np.uint8))
    assert np.allclose(io.load_image(str(path), False)[..., 0], [[0, 0.2], [0.4, 1]])
    assert io.load_image(path).shape == (2, 2, 3)
    assert np.allclose(io.load_image(path)[..., 2], [[0, 0.2], [0.4, 1]])


def test_sixteen_bits(tmp_path: Path) -> None:
    path = saved(tmp_path, np.array([[0, 65535]], np.uint16))
    assert io.load_image(path, False).ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("mode", ["RGBA", "P", "LA", "1"])
def test_other_modes_become_rgb(tmp_path: Path, mode: str) -> None:
    black_and_white = np.zeros((2, 2, 3), np.uint8)
    black_and_white[0] = 255
    image = io.load_image(saved(tmp_path, black_and_white, mode))
    assert np.array_equal(image, black_and_white / 255)


def test_coloured_palette(tmp_path: Path) -> None:
    path = saved(tmp_path, RGB, "P")
    assert io.load_image(path).shape == (2, 2, 3)
    assert io.load_image(path, False).shape == (2, 2, 1)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"nothing\.png: does not exist"):
        io.load_image(tmp_path / "nothing.png")
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(FileError, match="is no image that can be read"):
        io.load_image(tmp_path / "bad.png")
    cut = saved(tmp_path, np.zeros((64, 64, 3), np.uint8), name="cut.bmp")
    cut.write_bytes(cut.read_bytes()[:1000])
    with pytest.raises(FileError, match=r"cut\.bmp"):
        io.load_image(cut)


def test_pillow_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("PIL"):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtra, match=r"sparknet\[images\]"):
        io.load_image("x.png")


def test_oversample() -> None:
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
def test_crops_that_no_image_has(crop: tuple[int, int]) -> None:
    with pytest.raises(ArrayError, match=rf"no crop of \({crop[0]}, {crop[1]}\) from \(4, 6\)"):
        io.oversample([np.zeros((4, 6, 3))], crop)
