"""Fresh environments, and programs that run in them without what this one could lend."""

import os
import subprocess
import sys
from pathlib import Path

from tests.goldens import ROOT

PROBE = """
import os
import sparknet
import sparknet.native as native
from importlib.machinery import PathFinder
from sparknet import models
from sparknet.proto import caffe_pb2
assert native.onednn_version() >= (3, 2, 0)
assert native.NDArray([1, 2, 3]).sum() == 6
assert caffe_pb2.NetParameter(name="x").name == "x"
assert models.files("lenet", "lenet")["README.md"].startswith("# LeNet")
folder = sparknet.__path__[0]
def found(place, name):
    return PathFinder.find_spec(name, [os.path.join(sparknet.__path__[0], *place)])
missing = [(*place, name) for *place, name in {modules} if found(place, name) is None]
assert not missing, missing
print(native.__file__)
"""


def modules() -> list[tuple[str, ...]]:
    """The package's modules by their files in the tree, whatever anything else says of them."""
    package = ROOT / "sparknet"
    return [p.relative_to(package).with_suffix("").parts for p in sorted(package.rglob("*.py"))]


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
    """Runs the program, which finds each module of the tree; returns where the native core is."""
    return Path(
        run(
            python,
            "-c",
            PROBE.replace("{modules}", repr(modules())),
            cwd=cwd,
            path=path,
            **settings,
        ).strip()
    )


def make_venv(folder: Path, python: str = sys.executable) -> Path:
    """A fresh virtual environment; returns its Python."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    return folder / "bin" / "python"
