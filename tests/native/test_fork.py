"""A process that forks after threads have worked: the child has none of them."""

import subprocess
import sys

PROGRAM = """
import os, sys
from sparknet.native import NDArray, set_threads, threads
set_threads(2)
array = NDArray.zeros(1_000_000)
if {before}:
    assert array.sum() == 0
child = os.fork()
if child == 0:
    assert threads() == (1 if {before} else 2), threads()
    ok = array.sum() == 0 and (array + array).max() == 0
    grandchild = os.fork()
    if grandchild == 0:
        os._exit(0 if array.sum() == 0 else 1)
    os._exit(0 if ok and os.waitpid(grandchild, 0)[1] == 0 else 1)
assert os.waitpid(child, 0)[1] == 0
assert threads() == 2 and array.sum() == 0
"""


def run(before: bool) -> None:
    program = PROGRAM.format(before=before)
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_fork_after_threads():
    run(before=True)


def test_fork_before_threads():
    run(before=False)
