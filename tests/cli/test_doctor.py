"""`sparknet doctor`."""

import json
import re
from importlib import metadata
from importlib.util import find_spec

import pytest

from sparknet import __version__, native
from sparknet.cli import doctor, main
from tests.cli.conftest import ROOT


def test_it_says_what_is_there(run):
    done = run("doctor", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    values = {one["name"]: one["value"] for one in found["findings"]}
    assert found["healthy"] is True
    assert values["sparknet"] == __version__
    if native.onednn() == "none":
        assert values["oneDNN"] == "none in this build"
    else:
        assert values["oneDNN"] == native.onednn()
        assert values["instructions"] == (native.onednn_isa() or "oneDNN does not say")
    assert values["threads"] == str(native.threads())
    present = {one["name"]: one["found"] for one in found["findings"]}
    assert present["images"] == (find_spec("PIL") is not None)


def test_the_instructions_can_be_limited(run, monkeypatch):
    if native.onednn() == "none":
        pytest.skip("this build has no oneDNN")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    findings = json.loads(run("doctor", "--json").stdout)["findings"]
    names = {one["name"]: one["value"] for one in findings}
    assert names["instructions"] in ("SSE4.1", "oneDNN does not say")


def test_a_build_without_onednn_says_so(capsys, monkeypatch):
    monkeypatch.setattr(native, "onednn", lambda: "none")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"-- +oneDNN +none in this build\n +hint: PyTorch computes nets here", out)
    assert "instructions" not in out


def test_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(doctor.EXTRAS, "images", (("no-such-package",), "images"))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"-- +Java +cannot be used: JAVA_HOME is", out)
    assert re.search(r"-- +images +no-such-package missing", out)
    assert "hint: pip install 'sparknet[images]'" in out
    assert re.search(r"-- +Graphviz", out)


def test_packages_are_asked_by_their_own_names():
    """The package grpcio holds the module grpc, pillow PIL, googleapis-common-protos google.rpc."""
    requirements = [name for packages, _ in doctor.EXTRAS.values() for name in packages]
    for package in requirements:
        try:
            installed = metadata.version(package)
        except metadata.PackageNotFoundError:
            installed = None
        if installed:
            assert doctor._version(package) == installed
    assert doctor._version("no-such-package") is None


def test_a_package_without_a_module_of_its_name_and_a_module_without_a_package(
    tmp_path, monkeypatch
):
    """The second as Spark's own python folder on PYTHONPATH."""
    (tmp_path / "sparklike.py").write_text('__version__ = "4.1.0"')
    package = tmp_path / "grpcio_like-1.99.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: grpcio-like\nVersion: 1.99.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor._version("sparklike") == "4.1.0"
    assert doctor._version("grpcio-like") == "1.99.0"


def test_a_package_that_cannot_be_imported(capsys, monkeypatch, tmp_path):
    """As pyarrow 26 beside numpy 1.26, which pip installs together."""
    reason = "pyarrow requires NumPy 2.0 or newer, found 1.26.4"
    (tmp_path / "oldnumpy.py").write_text(f"raise ImportError({reason!r})")
    package = tmp_path / "oldnumpy-26.0.1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: oldnumpy\nVersion: 26.0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "EXTRAS", {"spark": (("oldnumpy",), "training on Spark")})
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"-- +spark +oldnumpy 26.0.1, which cannot be imported: {reason} \(", out)
    assert "hint: install versions that fit each other" in out


def test_what_must_not_be_missing(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda package: None)
    assert main(["doctor"]) == 1
    assert "hint: pip install numpy" in capsys.readouterr().out


def test_every_extra_is_looked_for():
    text = (ROOT / "pyproject.toml").read_text()
    section = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    declared = dict(re.findall(r"^(\w+) = \[(.*?)\]$", section, re.MULTILINE | re.DOTALL))
    assert set(declared) - {"all", "dev", "bench", "docs"} == set(doctor.EXTRAS)
    for extra, (packages, _) in doctor.EXTRAS.items():
        for package in packages:
            assert f'"{package}>=' in declared[extra]
