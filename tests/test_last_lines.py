"""The last lines of a run, and that a recorded case which did not run fails it."""

import os
import re
import subprocess
import sys

from tests.conftest import draw_rows
from tests.goldens import ROOT, index

SUITE = "formats/filter"
REPLAYED = "tests/caffe/test_filter_goldens.py"
COUNT = len(index(SUITE))


def run(*words: str, **variables: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    env = {**os.environ, **variables}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_case_that_did_not_run_fails_the_run_as_make_test_makes_it(tmp_path):
    """And tests that are skipped are counted by reason."""
    name = index(SUITE)[0]["name"]
    lines = ["import pytest", "@pytest.mark.parametrize('n', range(4))", "def test_it(n):"]
    lines.append("    pytest.skip('it is Sunday' if n else 'no paper')")
    skipped = tmp_path / "test_skipped.py"
    skipped.write_text("\n".join(lines))
    (test,) = re.findall(r"@cases\(.*\)\ndef (\w+)", (ROOT / REPLAYED).read_text())
    words = [REPLAYED, str(skipped), "--deselect", f"{REPLAYED}::{test}[{name}]"]
    code, said = run("-m", "not slow", *words)
    assert code == 1, said
    assert f"goldens: {COUNT - 1} of 798 recorded cases: {SUITE} {COUNT - 1}\n" in said
    assert f"goldens: 1 of {SUITE} did not run: {name}\n" in said
    assert "skipped 3: it is Sunday\nskipped 1: no paper\n" in said
    assert "failed" not in said


def test_each_day_draws_other_rows_of_slow_tests():
    names = [f"test_a[{row}]" for row in range(20)] + ["test_b", "test_c[only]"]
    drawn = [draw_rows(names, 4, f"day {n}") for n in range(40)]
    assert drawn[0] == draw_rows(names, 4, "day 0")
    for chosen in drawn:
        assert list(chosen) == names
        assert sum(chosen[name] for name in names[:20]) == 5
        assert chosen["test_b"]
        assert chosen["test_c[only]"]
    assert all(any(chosen[name] for chosen in drawn) for name in names)
    assert all(draw_rows(names, 1, "day 0").values())


def test_what_ci_has_no_time_for_is_told():
    code, said = run("-m", "not slow", REPLAYED, SPARKNET_LATEST="1.7e9")
    assert code == 0, said
    assert re.search(r"^skipped \d+: CI had no time left for it$", said, re.MULTILINE)
    assert " passed" not in said
