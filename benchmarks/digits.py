"""The digits of sparknet.papers in MNIST's two test files: real ones, or else drawn ones.

The real files are searched in the folder that SPARKNET_MNIST names, then in
../shared/data/mnist10k.  The drawn ones are made once, in build/.
"""

from __future__ import annotations

import gzip
import os
import struct
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from sparknet.papers.digits import ALL, FILES, TRAINED, draw, real, source

__all__ = ["ALL", "ROOT", "TRAINED", "digits", "real", "source"]

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data" / "mnist10k"

if real() is None and all((SHARED / name).is_file() for name in FILES):
    os.environ["SPARKNET_MNIST"] = str(SHARED)


@cache
def digits() -> tuple[Path, Path]:
    """The files of images and labels."""
    folder = real() or _drawn(ROOT / "build" / "drawn-digits")
    print(source(), file=sys.stderr)
    return folder / FILES[0], folder / FILES[1]


def _drawn(folder: Path) -> Path:
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=folder.parent))
    images, labels = draw()
    contents = (
        struct.pack(">4I", 0x803, *images.shape) + images.tobytes(),
        struct.pack(">2I", 0x801, len(labels)) + labels.tobytes(),
    )
    for name, content in zip(FILES, contents, strict=True):
        (making / name).write_bytes(gzip.compress(content, mtime=0))
    with suppress(OSError):  # another process was first
        making.rename(folder)
    return folder
