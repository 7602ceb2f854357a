"""Every way to install sparknet, each ending in a program that runs the native core.

Nothing but the installed files may be needed: no LD_LIBRARY_PATH, no source tree.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

from stubs import builders, params
from tests.goldens import ROOT
from tests.packaging.conftest import BUILT, copy_source
from tests.packaging.venvs import make_venv, probe, run

pytestmark = pytest.mark.slow


@pytest.fixture
def elsewhere(tmp_path):
    """A working folder in which there is no sparknet."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.mark.long
def test_into_a_venv_that_moves(tmp_path, plain_wheel, elsewhere):
    python = make_venv(tmp_path / "venv")
    run(python, "-m", "pip", "install", plain_wheel, cwd=elsewhere)
    assert tmp_path / "venv" in probe(python, elsewhere).parents
    packed = tmp_path / "venv.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(tmp_path / "venv", "moved")
    shutil.rmtree(tmp_path / "venv")
    with tarfile.open(packed) as archive:
        archive.extractall(elsewhere)  # our own archive
    assert elsewhere / "moved" in probe(elsewhere / "moved/bin/python", elsewhere).parents


@pytest.mark.long
def test_editable(tmp_path, elsewhere):
    source = copy_source(tmp_path / "source")
    for made in BUILT:
        for file in source.glob(made):
            file.unlink()
    python = make_venv(tmp_path / "venv")
    run(python, "-m", "pip", "install", "-e", source, cwd=elsewhere)
    assert source in probe(python, elsewhere).parents
    assert (source / "sparknet/proto/caffe_pb2.pyi").is_file()


@pytest.mark.long
def test_into_a_target_folder_that_moves(tmp_path, plain_wheel, elsewhere):
    python = make_venv(tmp_path / "venv")
    target = tmp_path / "target"
    run(python, "-m", "pip", "install", "--target", target, plain_wheel, cwd=elsewhere)
    assert target in probe(python, elsewhere, target).parents
    packed = shutil.make_archive(str(tmp_path / "target"), "zip", target)
    shutil.rmtree(target)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(elsewhere / "unpacked")
    assert elsewhere / "unpacked" in probe(python, elsewhere, elsewhere / "unpacked").parents


def other_pythons() -> list[str]:
    """Interpreters of other versions that can make virtual environments."""
    found = [shutil.which(f"python3.{minor}") for minor in range(10, 15)]
    check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"
    return [
        python
        for python in found
        if python and subprocess.run([python, "-c", check], capture_output=True).returncode == 0
    ]


@pytest.mark.long
def test_one_wheel_for_every_python(tmp_path, sdist, plain_wheel, elsewhere):
    assert "-cp310-abi3-" in plain_wheel.name
    assert sdist.stat().st_size < 10 << 20
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert not [name for name in packed if ".so" in name or ".venv" in name]
    parts = (
        path
        for part in ("sparknet", "native", "proto", "models")
        for path in (ROOT / part).rglob("*")
    )
    suffixes = {".py", ".c", ".cpp", ".h", ".hpp", ".cmake", ".txt", ".proto", ".prototxt", ".md"}
    sources = {str(path.relative_to(ROOT)) for path in parts if path.suffix in suffixes}
    assert sources - packed == {"sparknet/proto/_descriptor.py"}
    with zipfile.ZipFile(plain_wheel) as contents:
        names = contents.namelist()
        extension = contents.read("sparknet/native/_sparknet.abi3.so")
        for stub in (builders, params):
            assert contents.read(f"sparknet/{stub.PATH}").decode() == stub.stub()
    assert {"sparknet/native/libdnnl.so.3", "sparknet/proto/_descriptor.py"} <= set(names)
    assert "sparknet/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "native/"))]
    assert tempfile.gettempdir().encode() not in extension
    assert b"pip-build-env" not in extension
    for number, python in enumerate(other_pythons() or [sys.executable]):
        installed = make_venv(tmp_path / f"venv{number}", python)
        run(installed, "-m", "pip", "install", plain_wheel, cwd=elsewhere)
        probe(installed, elsewhere)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON"], "pip install onednn-devel-cpu-gomp"),
        (["-DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON"], "libgomp"),
        (["-DCMAKE_CXX_COMPILER=no-such-compiler"], "compiler"),
        ([], "free-threaded and lacks the stable ABI"),
    ],
)
def test_what_is_missing_is_named(options, remedy, tmp_path, monkeypatch):
    if not options:  # a Python that says it is one
        setting = "import sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = 1\n"
        (tmp_path / "sitecustomize.py").write_text(setting)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cmake = Path(sys.executable).with_name("cmake")
    if not cmake.exists():
        pytest.skip("no cmake in this environment")
    python = f"-DPython_EXECUTABLE={sys.executable}"
    done = subprocess.run(
        [cmake, "-S", ROOT, "-B", tmp_path, python, *options], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert remedy in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "options",
    [
        ["-DSPARKNET_ONEDNN=OFF"],
        ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"],
    ],
)
def test_a_build_without_onednn_asks_for_none(options, tmp_path):
    cmake = Path(sys.executable).with_name("cmake")
    if not cmake.exists():
        pytest.skip("no cmake in this environment")
    none = ["-DSPARKNET_EXTENSION=OFF", "-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON"]
    done = subprocess.run(
        [cmake, "-S", ROOT, "-B", tmp_path, *none, *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "sparknet is built without oneDNN" in done.stdout + done.stderr
