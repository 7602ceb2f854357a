"""The wheel that `make wheel` makes: whole, for old systems too, and in no need of a compiler."""

import re
import subprocess
import sys
import zipfile

import pytest

from sparknet.models import NAMES
from tests.packaging.venvs import make_venv, probe, run

pytestmark = pytest.mark.slow

TRAINS = """
import numpy as np
from sparknet import Net, models
net = Net(models.solver("lenet"), seed=1)
images = np.random.default_rng(0).random((128, 1, 28, 28))
net.set_training_data((images, np.arange(128) % 10))
assert np.isfinite(net.train(2))
"""


def test_its_name_says_which_glibc_it_needs(wheel):
    words = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    tag = re.search(r'following\s+platform\s+tag:\s+"(manylinux_2_\d+_\w+)"', shown)
    assert tag, shown
    assert wheel.name.endswith(f"-cp310-abi3-{tag[1]}.whl")


def test_it_is_whole(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        sizes = {one.filename: one.file_size for one in archive.infolist()}
    assert sizes["sparknet/native/libdnnl.so.3"] > 10 << 20
    assert "sparknet/native/onednn/LICENSE" in names
    assert [name for name in names if name.startswith("sparknet.libs/libgomp-")]
    assert "sparknet/models/alexnet.py" in names
    for model in NAMES:
        for file in ("net.prototxt", "solver.prototxt", "README.md"):
            assert f"sparknet/models/{model}/{file}" in names


def test_it_works_without_a_compiler(wheel, tmp_path):
    python = make_venv(tmp_path / "venv")
    run(python, "-m", "pip", "install", "--only-binary", ":all:", wheel, cwd=tmp_path)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    actual = run(
        python, "-c", "import shutil; print(shutil.which('cc'))", cwd=nothing, PATH=nothing
    )
    assert actual == "None\n"
    assert tmp_path / "venv" in probe(python, nothing, PATH=nothing).parents
    run(python, "-c", TRAINS, cwd=nothing, PATH=nothing)
    run(python.with_name("sparknet"), "doctor", cwd=nothing, PATH=nothing)
