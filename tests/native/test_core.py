"""Versions, threads and loading."""

import os
import subprocess
import sys

import pytest

from sparknet import native
from sparknet.errors import NativeError
from sparknet.native import locate


def test_versions():
    assert native.version().count(".") == 2
    if native.onednn() == "none":  # a build without oneDNN
        assert (native.onednn_version(), native.onednn_isa()) == ((0, 0, 0), "")
    else:
        assert native.onednn_version() >= (3, 2, 0)
        assert native.onednn() == ".".join(map(str, native.onednn_version()))
    assert native.onednn_isa().isprintable()


@pytest.mark.parametrize(
    ("given", "found"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_idle_threads_sleep_soon_unless_told_otherwise(given, found):
    unset = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {key: value for key, value in os.environ.items() if key not in unset} | given
    program = "import os, sparknet.native; print(os.environ.get('GOMP_SPINCOUNT'))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == found


def test_a_missing_onednn_is_named(monkeypatch, tmp_path):
    (tmp_path / "broken").write_text("not a library")
    monkeypatch.setattr(locate, "candidates", lambda: iter([tmp_path / "broken", tmp_path]))
    with pytest.raises(NativeError, match="pip install onednn-cpu-gomp"):
        locate.preload()


def test_a_missing_extension_is_named(monkeypatch):
    monkeypatch.setattr(locate, "EXTENSION", "sparknet.native._absent")
    with pytest.raises(NativeError, match="pip install -e"):
        locate.extension()
