import os
import subprocess
import sys
import types

import pytest

import sparknet.caffe
from sparknet.caffe import alias
from tests.goldens import ROOT


def test_the_same_objects_under_both_names():
    spec = sparknet.caffe.__spec__
    with alias.installed():
        import caffe
        import caffe.coord_map as coord_map
        import caffe.io
        import caffe.proto.caffe_pb2
        from caffe.proto import caffe_pb2

        assert caffe is sparknet.caffe
        assert caffe.io is sparknet.caffe.io
        assert coord_map.__name__ == "sparknet.caffe.coord_map"
        assert sys.modules["caffe.proto.caffe_pb2"] is caffe_pb2
        assert caffe_pb2 is sys.modules["sparknet.proto.caffe_pb2"]
        with pytest.raises(ModuleNotFoundError):
            import caffe.nothing
    assert sparknet.caffe.__spec__ is spec
    assert not [name for name in sys.modules if name.split(".")[0] == "caffe"]
    with pytest.raises(ModuleNotFoundError):
        import caffe


def test_it_nests():
    with alias.installed():
        with alias.installed():
            pass
        import caffe

        assert caffe is sparknet.caffe
    alias.uninstall()
    assert "caffe" not in sys.modules


def test_a_real_caffe_is_not_displaced(monkeypatch):
    real = types.ModuleType("caffe")
    real.__file__ = "/opt/caffe/python/caffe/__init__.py"
    monkeypatch.setitem(sys.modules, "caffe", real)
    with pytest.raises(ImportError, match="already imported from /opt/caffe/python"):
        alias.install()
    assert sys.modules["caffe"] is real


def test_first_import_through_the_alias():
    code = (
        "from sparknet.caffe import alias; alias.install(); import caffe.proto.caffe_pb2 as p, sys;"
        "import sparknet.caffe.draw, caffe.draw; from caffe import draw, layers as L;"
        "print(draw is sparknet.caffe.draw, p.TEST, draw.__spec__.name)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (["True", "1", "sparknet.caffe.draw"], "")


FORK = {
    "caffe/model_libs.py": "from caffe import layers as L, params as P\n"
    "from caffe.proto import caffe_pb2\nfrom .sub.inner import DEEP\n"
    "def relu(bottom): return L.ReLU(bottom)\n",
    "caffe/__init__.py": "raise ImportError('the fork itself was imported')\n",
    "caffe/net_spec.py": "raise ImportError('the fork shadows')\n",
    "caffe/_caffe.py": "raise ImportError('the fork shadows')\n",
    "caffe/sub/__init__.py": "",
    "caffe/sub/inner.py": "DEEP = 7\n",
    "caffe/proto/more_pb2.py": "MORE = 8\n",
}


@pytest.fixture
def fork(tmp_path):
    for name, text in FORK.items():
        path = tmp_path / "python" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "python"


def test_a_forks_own_modules(fork, monkeypatch):
    before = list(sparknet.caffe.__path__)
    with alias.installed():
        import caffe

        with pytest.raises(ModuleNotFoundError, match=r"caffe\.model_libs"):
            import caffe.model_libs
        monkeypatch.syspath_prepend(str(fork))
        import caffe.model_libs
        import caffe.net_spec
        from caffe import model_libs
        from caffe.proto import more_pb2

        assert model_libs is caffe.model_libs
        assert caffe.model_libs.__name__ == "caffe.model_libs"
        assert (caffe.model_libs.DEEP, more_pb2.MORE) == (7, 8)
        assert caffe.model_libs.caffe_pb2 is caffe.proto.caffe_pb2
        assert caffe.net_spec is sparknet.caffe.net_spec
        assert caffe._caffe is sparknet.caffe._caffe
        assert caffe.model_libs.relu(caffe.layers.Input()).fn.type_name == "ReLU"
        assert str(fork / "caffe") in caffe.__path__
    assert list(sparknet.caffe.__path__) == before
    assert not hasattr(sparknet.caffe, "model_libs")
    assert not [name for name in sys.modules if name.split(".")[0] == "caffe"]


@pytest.mark.parametrize("where", ["beside", "PYTHONPATH", "inserted"])
def test_a_forks_own_modules_in_a_script(where, fork, tmp_path):
    folder = fork if where == "beside" else tmp_path / "examples"
    folder.mkdir(exist_ok=True)
    script = folder / "ssd.py"
    path = f"import sys\nsys.path.insert(0, {str(fork)!r})\n" if where == "inserted" else ""
    script.write_text(f"{path}import caffe\nfrom caffe.model_libs import *\nprint(DEEP, L, P)\n")
    paths = [str(ROOT)] + [str(fork)] * (where == "PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "sparknet", "run", str(script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert (done.stderr, done.stdout[:2]) == ("", "7 ")
