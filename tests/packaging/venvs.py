"""Fresh environments, and programs that run in them without what this one could lend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROBE = """
import sparknet.native as native
from sparknet.proto import caffe_pb2
assert native.onednn_version() >= (3, 2, 0)
assert native.NDArray([1, 2, 3]).sum() == 6
assert caffe_pb2.NetParameter(name="x").name == "x"
print(native.__file__)
"""


def alone(**settings: object) -> dict[str, str]:
    """Our environment without whatever in it could help a program, and with these settings."""
    helpful = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "CMAKE_PREFIX_PATH")
    kept = {key: value for key, value in os.environ.items() if key not in helpful}
    return {**kept, **{key: str(value) for key, value in settings.items()}}


def run(*command: object, cwd: Path, path: Path | None = None, **settings: object) -> str:
    """Runs a program by itself; `path` is where it may import from."""
    environment = alone(**settings) if path is None else alone(PYTHONPATH=path, **settings)
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def probe(python: Path, cwd: Path, path: Path | None = None, **settings: object) -> Path:
    """Runs the program; returns where it found the native core."""
    return Path(run(python, "-c", PROBE, cwd=cwd, path=path, **settings).strip())


def make_venv(folder: Path, python: str = sys.executable) -> Path:
    """A fresh virtual environment; returns its Python."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin" / "python"
