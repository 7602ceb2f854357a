from __future__ import annotations

import subprocess
import sys
import types

import pytest

import sparknet.caffe
from sparknet.caffe import alias


def test_the_same_objects_under_both_names() -> None:
    spec = sparknet.caffe.__spec__
    with alias.installed():
        import caffe  # type: ignore[import-not-found]
        import caffe.coord_map as coord_map  # type: ignore[import-not-found]
        import caffe.io  # type: ignore[import-not-found]
        import caffe.proto.caffe_pb2  # type: ignore[import-not-found]
        from caffe.proto import caffe_pb2

        assert caffe is sparknet.caffe
        assert caffe.io is sparknet.caffe.io
        assert coord_map.__name__ == "sparknet.caffe.coord_map"
        assert sys.modules["caffe.proto.caffe_pb2"] is caffe_pb2
        assert caffe_pb2 is sys.modules["sparknet.proto.caffe_pb2"]
        with pytest.raises(ModuleNotFoundError):
            import caffe.nothing  # type: ignore[import-not-found]
    assert sparknet.caffe.__spec__ is spec
    assert not [name for name in sys.modules if name.split(".")[0] == "caffe"]
    with pytest.raises(ModuleNotFoundError):
        import caffe


def test_it_nests() -> None:
    with alias.installed():
        with alias.installed():
            pass
        import caffe

        assert caffe is sparknet.caffe
    alias.uninstall()
    assert "caffe" not in sys.modules


def test_a_real_caffe_is_not_displaced(monkeypatch: pytest.MonkeyPatch) -> None:
    real = types.ModuleType("caffe")
    real.__file__ = "/opt/caffe/python/caffe/__init__.py"
    monkeypatch.setitem(sys.modules, "caffe", real)
    with pytest.raises(ImportError, match="already imported from /opt/caffe/python"):
        alias.install()
    assert sys.modules["caffe"] is real


def test_first_import_through_the_alias() -> None:
    code = (
        "from sparknet.caffe import alias; alias.install(); import caffe.proto.caffe_pb2 as p, sys;"
        "import sparknet.caffe.draw, caffe.draw; from caffe import draw, layers as L;"
        "print(draw is sparknet.caffe.draw, p.TEST, draw.__spec__.name)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (["True", "1", "sparknet.caffe.draw"], "")
