"""How many threads a process has: docs/threads.md."""

import os
import subprocess
import sys

import pytest

REPORT = "import sparknet.native as native; print(native.threads())"


def threads_of(code: str, **variables: str) -> int:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=bare | variables, capture_output=True, check=True
    )
    return int(done.stdout)


def test_the_variable_decides():
    assert threads_of(REPORT, OMP_NUM_THREADS="3") == 3


def test_a_setting_comes_before_the_variable():
    code = f"from sparknet.native import set_threads; set_threads(2); {REPORT}"
    assert threads_of(code, OMP_NUM_THREADS="3") == 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processor masks here")
def test_without_either_it_is_the_processors_that_may_be_used():
    one = min(os.sched_getaffinity(0))
    assert threads_of(f"import os; os.sched_setaffinity(0, {{{one}}}); {REPORT}") == 1
    assert threads_of(REPORT) == len(os.sched_getaffinity(0))
