import subprocess
import sys
from pathlib import Path

import pytest

from tests.goldens import GOLDENS

ROOT = Path(__file__).resolve().parents[2]


def sparknet(*words: object, cwd: Path, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sparknet", *map(str, words)]
    env = {"PYTHONPATH": f"{ROOT}:{path}", "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "programs"
    place.mkdir()
    (place / "beside.py").write_text("NAME = 'beside'\n")
    (place / "program.py").write_text(
        "import sys, beside, caffe\n"
        "from caffe.proto import caffe_pb2\n"
        "print(sys.argv, __name__, caffe.__name__, beside.NAME, caffe_pb2.TEST)\n"
        "sys.exit(len(sys.argv))\n"
    )
    (place / "broken.py").write_text("from caffe import NetSpec\nNetSpec().nothing\n")
    return place


def test_a_script(folder, tmp_path):
    done = sparknet("run", "programs/program.py", "-m", "--help", "--", "x", cwd=tmp_path)
    words = ["programs/program.py", "-m", "--help", "--", "x"]
    assert done.stdout == f"{words} __main__ sparknet.caffe beside 1\n"
    assert (done.stderr, done.returncode) == ("", 5)


def test_a_module(folder):
    done = sparknet("run", "-m", "program", "--flag", "-m", cwd=folder)
    words = [str(folder / "program.py"), "--flag", "-m"]
    assert done.stdout == f"{words} __main__ sparknet.caffe beside 1\n"
    assert (done.stderr, done.returncode) == ("", 3)


def test_opencv_reads_caffes_nets(folder):
    (folder / "cv2.py").write_text(
        "from types import SimpleNamespace\n"
        "KINDS = ('Model', *(f'{kind}Model' for kind in ('Classification', 'Detection',"
        " 'Keypoints', 'Segmentation', 'TextRecognition')))\n"
        "dnn = SimpleNamespace(readNet=None, **dict.fromkeys(KINDS))\n"
        "globals().update({f'dnn_{kind}': None for kind in KINDS})\n"
        "dnn_registerLayer = dnn_unregisterLayer = None\n"
    )
    (folder / "script.py").write_text(
        "import sys, cv2\nprint(cv2.dnn.readNetFromCaffe.__module__, sys.argv)\n"
    )
    done = sparknet("run", "--opencv", "script.py", "--opencv", cwd=folder, path=folder)
    assert (done.stdout, done.stderr) == (
        "sparknet.opencv.reading ['script.py', '--opencv']\n",
        "",
    )
    assert "has no attribute 'readNetFromCaffe'" in sparknet("run", "script.py", cwd=folder).stderr


def test_an_exception_is_the_programs_own(folder):
    done = sparknet("run", "broken.py", cwd=folder)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert 'broken.py", line 2' in done.stderr
    assert "the net has no top 'nothing'" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "sparknet run: give a script, or -m and a module\n"),
        (["run", "none.py"], "sparknet run: no such file: none.py\n"),
        (["run", "-m", "none.here"], "sparknet run: no module named none.here\n"),
    ],
)
def test_nothing_to_run(words, message, tmp_path):
    done = sparknet(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_a_program_for_pycaffe(tmp_path):
    source = (GOLDENS / "formats/netspec/classifier.py").read_text()
    (tmp_path / "x.py").write_text(f"{source}\nprint(net_text)\n")
    done = sparknet("run", "x.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("layer {") == 7
