"""The wheel that `make wheel` makes: whole, for old systems too, and in no need of a compiler."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from sparknet.models import NAMES
from tests.goldens import ROOT
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
    assert tag[1] == "manylinux_2_27_x86_64"
    assert wheel.name.endswith(f"-cp310-abi3-{tag[1]}.whl")


def test_every_symbol_is_somebodys(wheel, tmp_path):
    """One that the older glibc lacks has no version, and no linker misses it in a library."""
    with zipfile.ZipFile(wheel) as archive:
        path = archive.extract("sparknet/native/_sparknet.abi3.so", tmp_path)
    symbols = re.findall(r"^ +U (\w+)$", run("nm", "-D", path, cwd=tmp_path), re.M)
    assert "dnnl_sgemm" in symbols
    assert not [one for one in symbols if not one.startswith(("Py", "_Py", "dnnl_"))]


@pytest.mark.long
def test_two_builds_are_one_file(wheel, tmp_path):
    run(sys.executable, ROOT / ".ci" / "wheel.py", tmp_path / "again", cwd=tmp_path)
    (again,) = (tmp_path / "again").iterdir()
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, again)}
    assert len(digests) == 1


PROGRAM = r"""
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void start(void) {}
int main(int count, char **words) {
    struct stat facts;
    pthread_once(&once, start);
    if (fstat(0, &facts) != 0) return 1;
    printf("%.3f", log(atof(words[1])) + count - 2);
    return 0;
}
"""


def test_programs_are_linked_for_an_older_glibc(tmp_path):
    """log is of 2.29, fstat of 2.33 and pthread_once of 2.34 on a system of today."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    script = (
        "import old_glibc, pathlib as p; print(old_glibc.linker_flags(p.Path('s'), 'gcc', '2.27'))"
    )
    flags = run(sys.executable, "-c", script, cwd=tmp_path, path=ROOT / ".ci").split()
    (tmp_path / "x.c").write_text(PROGRAM)
    run("gcc", "x.c", *flags, "-lm", "-lpthread", "-o", "x", cwd=tmp_path)
    assert run(tmp_path / "x", "20.085536923187668", cwd=tmp_path) == "3.000"
    versions = re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-W", "--dyn-syms", "x", cwd=tmp_path))
    assert max(map(int, versions)) <= 27


def test_it_is_whole(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        sizes = {one.filename: one.file_size for one in archive.infolist()}
    assert sizes["sparknet/native/libdnnl.so.3"] > 10 << 20
    assert "sparknet/native/onednn/LICENSE" in names
    assert [name for name in names if name.startswith("sparknet.libs/libgomp-")]
    assert wheel.stat().st_size < 15_000_000
    about = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {f"{about}/licenses/{name}" for name in ("LICENSE", "LICENSE.gcc-runtime")} <= names
    with zipfile.ZipFile(wheel) as archive:
        document = json.loads(archive.read(f"{about}/sboms/sparknet.cdx.json"))
        assert b"Classifier: Typing :: Typed" in archive.read(f"{about}/METADATA")
    assert document["bomFormat"] == "CycloneDX"
    licences = {one["name"]: one["licenses"][0]["expression"] for one in document["components"]}
    exception = "GPL-3.0-or-later WITH GCC-exception-3.1"
    assert licences == {"libgomp": exception, "libstdc++": exception, "oneDNN": "Apache-2.0"}
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
