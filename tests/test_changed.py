"""What `make check` runs for a change (.ci/changed.py)."""

import runpy
import subprocess
import sys

import pytest

from tests.goldens import ROOT

SCRIPT = ROOT / ".ci" / "changed.py"
TESTS_OF = runpy.run_path(str(SCRIPT))["tests_of"]


@pytest.mark.parametrize(
    ("changed", "among", "not_among"),
    [
        (
            "sparknet/layers/pooling.py",
            "tests/caffe/layers/test_pooling.py",
            "tests/net/test_net.py",
        ),
        (
            "native/layers/pooling.cpp",
            "tests/caffe/layers/test_pooling.py",
            "tests/caffe/layers/test_bn.py",
        ),
        (
            "native/convolution/choose.cpp",
            "tests/caffe/layers/test_winograd.py",
            "tests/net/test_net.py",
        ),
        ("sparknet/weights/nothing.py", "tests/weights/test_weights.py", "tests/net/test_net.py"),
        (
            "tests/comm/groups.py",
            "tests/comm/test_collectives.py",
            "tests/training/strategies/test_alone.py",
        ),
        ("tests/net/test_net.py", "tests/net/test_net.py", "tests/net/test_flow.py"),
        ("examples/lenet.py", "tests/examples/test_lenet.py", "tests/net/test_net.py"),
        ("docs/net.md", "tests/docs/test_guides.py", "tests/net/test_net.py"),
    ],
)
def test_a_change_names_its_tests(changed, among, not_among):
    found = {str(path.relative_to(ROOT)) for path in TESTS_OF(changed)}
    assert among in found
    assert not_among not in found


def test_a_removed_test_and_a_file_of_no_room():
    assert TESTS_OF("tests/net/test_that_is_gone.py") == []
    assert TESTS_OF("Makefile") == []


def test_what_is_named_exists():
    words = [sys.executable, str(SCRIPT), "HEAD~1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = done.stdout.split()
    assert "tests/test_house.py" in found
    assert [name for name in found if not (ROOT / name).exists()] == []
