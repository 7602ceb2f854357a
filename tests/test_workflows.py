"""The workflows run make targets that exist and every step of .ci/run, which keeps its budget."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.goldens import ROOT
from tests.test_collected import STEP, TARGET

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
EXPRESSION = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def rows(job):
    """What the matrix of a job stands for, as far as commands ask for it; no matrix: one row."""
    matrix = job.get("strategy", {}).get("matrix", {})
    return [dict(row) for row in matrix.get("include", [])] or [{}]


def commands(path: Path) -> list[str]:
    """The make commands of a file, with the matrix filled in."""
    found = []
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        for step in job["steps"]:
            for line in str(step.get("run", "")).splitlines():
                if line.startswith("make "):
                    filled = [
                        EXPRESSION.sub(lambda m, row=row: row.get(m[1], ""), line)
                        for row in rows(job)
                    ]
                    found += filled
    return found


def targets(command: str) -> list[str]:
    return [word for word in command.split()[1:] if "=" not in word]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_target_exists(path):
    known = TARGET.findall((ROOT / "Makefile").read_text())
    assert commands(path)
    for command in commands(path):
        assert targets(command), command
        assert set(targets(command)) <= set(known), f"{path.name}: {command}"


def test_every_step_of_ci_is_in_some_job():
    steps = set(STEP.findall((ROOT / ".ci" / "run").read_text()))
    jobs = {target for command in commands(FOLDER / "ci.yml") for target in targets(command)}
    assert steps - {"setup"} <= jobs  # each target sets up what it needs


def test_nothing_of_a_workflow_may_write_but_the_publishing():
    for path in FILES:
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            assert "timeout-minutes" in job, f"{path.name}: {name}"
            assert job.get("permissions") in (None, {"id-token": "write"})


MAKE = """#!/bin/sh
[ "$1" != test ] || echo 'passed only alone: tests/test_x.py::test_y' > "$SPARKNET_RETRIED"
[ "$1" != "$BROKEN" ]
"""


def run_ci(folder: Path, slowness: int, **variables: str) -> tuple[int, str]:
    """Run .ci/run with a make that does nothing, on a machine of this slowness in percent."""
    shutil.copytree(ROOT / ".ci", folder / ".ci", dirs_exist_ok=True)
    for name, text in {"make": MAKE, "python3": f"#!/bin/sh\necho {slowness}\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SPARKNET_CI_MINUTES": "200"}
    words = [str(folder / ".ci" / "run")]
    done = subprocess.run(words, env=env | variables, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("seconds", "slowness", "code"),
    [(1700, 100, 0), (2330, 90, 0), (2350, 110, 1), (2990, 111, 0), (4900, 190, 1), (4900, 210, 0)],
)
def test_ci_fails_above_its_budget(tmp_path, seconds, slowness, code):
    found, said = run_ci(tmp_path, slowness, SECONDS=str(seconds))
    assert found == code, said
    assert ("CI took longer than its budget of 1800 s" in said) == bool(code)
    assert f"{seconds // 10}" in said.split("from begin to end")[0].splitlines()[-1]


def test_ci_names_what_passed_only_alone_and_fails_with_its_step(tmp_path):
    code, said = run_ci(tmp_path, 100)
    table = said.partition("==> how long each step took\n")[2].splitlines()
    (row,) = (n for n, line in enumerate(table) if line.endswith(" s  make test"))
    assert code == 0
    assert table[row + 1].strip() == "passed only alone: tests/test_x.py::test_y"
    code, said = run_ci(tmp_path, 100, BROKEN="sanitize")
    assert code == 1
    assert "make sanitize: failed\n" in said
    assert "make test-cluster" not in said


FLAKE = """
from pathlib import Path
import pytest
@pytest.mark.parametrize("n", range(6))
def test_flake(n):
    path = Path(f"{n}.tried")
    tried, _ = path.exists(), path.write_text("")
    assert tried{condition}
"""


@pytest.mark.parametrize(
    ("condition", "code", "expected"),
    [
        (" or n > 1", 0, ["passed only alone: test_it.py::test_flake[0]", "[1]"]),
        (" and n", 1, []),  # more than five
        (" and n or n > 1", 1, []),  # test_flake[0] fails again
    ],
)
def test_few_failed_tests_run_once_more(tmp_path, condition, code, expected):
    (tmp_path / "test_it.py").write_text(FLAKE.replace("{condition}", condition))
    words = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "--rootdir", "."]
    words += ["-n", "1"] if code == 0 else []
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SPARKNET_RETRIED": str(tmp_path / "retried")}
    done = subprocess.run(
        [*words, "test_it.py"], cwd=tmp_path, env=env, text=True, capture_output=True
    )
    assert done.returncode == code, done.stdout
    path = tmp_path / "retried"
    lines = path.read_text().splitlines() if path.exists() else []
    assert len(lines) == len(expected)
    assert all(
        line.endswith(end) and line in done.stdout
        for line, end in zip(lines, expected, strict=True)
    )
    assert ("failed alone, too:" in done.stdout) == (condition == " and n or n > 1")
