import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.goldens import ROOT
from tests.packaging.venvs import run

BUILT = (
    "sparknet/native/*.so*",
    "sparknet/proto/_descriptor.py",
    "sparknet/proto/caffe_pb2.pyi",
    "sparknet/dsl/typed.pyi",
    "sparknet/spark/pipeline/typed.pyi",
)
"""What an editable build puts into the tree."""


def copy_source(to: Path) -> Path:
    """A copy of what git knows or would take, with whatever an editable build has put into it."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    built = (path for pattern in BUILT for path in ROOT.glob(pattern))
    for path in (*(ROOT / name for name in listed.split("\0") if name), *built):
        if path.exists():
            copied = to / path.relative_to(ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copied, follow_symlinks=False)
    return to


@pytest.fixture(scope="session")
def built(tmp_path_factory, worker_id):
    """Fills a folder by a function, once for all processes of a run: compiling takes minutes."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def fill(name: str, make: Callable[[Path], object]) -> Path:
        folder = shared / name
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                making = shared / f"{name}.making"
                shutil.rmtree(making, ignore_errors=True)
                making.mkdir()
                make(making)
                making.rename(folder)
        return folder

    return fill


@pytest.fixture(scope="session")
def wheel(built):
    """What `make wheel` makes."""

    def make(out: Path) -> None:
        words = [sys.executable, str(ROOT / ".ci" / "wheel.py"), str(out)]
        subprocess.run(words, check=True, cwd=out.parent)

    (made,) = built("wheel", make).iterdir()
    return made


@pytest.fixture(scope="session")
def sdist(built):
    """The archive of a tree that an editable build has left its files in."""
    pytest.importorskip("build")

    def make(out: Path) -> None:
        source = copy_source(out.with_name("source"))
        run(sys.executable, "-m", "build", "--sdist", "--outdir", out, source, cwd=out)
        shutil.rmtree(source)

    (made,) = built("sdist", make).iterdir()
    return made


@pytest.fixture(scope="session")
def plain_wheel(built, sdist):
    """What pip makes of that archive, in an environment of its own, and installs."""

    def make(out: Path) -> None:
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", out, sdist, cwd=out)

    (made,) = built("plain_wheel", make).iterdir()
    return made
