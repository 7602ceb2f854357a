"""sparknet out of a zip: its native module, too."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import sparknet

PROGRAM = "import sparknet.native as n; print(n.__file__, n.NDArray.zeros((2,)).shape, n.onednn())"


def zipped(folder: Path) -> Path:
    """A zip of the package, as a wheel is one."""
    archive, root = folder / "sparknet.zip", Path(sparknet.__file__).parent
    with zipfile.ZipFile(archive, "w") as out:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                out.write(path, path.relative_to(root.parent))
    return archive


def say(archive: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{archive}:{sysconfig.get_path('purelib')}"
    variables = {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_DIRS": str(folder)}
    command = [sys.executable, "-S", "-c", PROGRAM]  # -S: without the finder of this tree
    return subprocess.run(command, env=variables, capture_output=True, text=True, cwd=folder)


def test_a_native_module_comes_out_of_a_zip(tmp_path):
    archive, local = zipped(tmp_path), tmp_path / "local"
    local.mkdir()
    for _ in range(2):
        done = say(archive, local)
        place, *rest = done.stdout.split()
        assert rest == ["(2,)", sparknet.native.onednn()], done.stderr
        (folder,) = local.iterdir()
        assert place == str(folder / "sparknet" / "native" / "__init__.py")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path):
    archive, local = zipped(tmp_path), tmp_path / "local"
    local.mkdir()
    say(archive, local)
    (folder,) = local.iterdir()
    os.chown(folder, 12345, -1)
    assert "belongs to somebody else: remove it" in say(archive, local).stderr
