"""The workflows run make targets that exist, and every step of .ci/run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.goldens import ROOT
from tests.test_collected import STEP, TARGET

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
EXPRESSION = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def rows(job: dict[str, Any]) -> list[dict[str, str]]:
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
def test_every_target_exists(path: Path) -> None:
    known = TARGET.findall((ROOT / "Makefile").read_text())
    assert commands(path)
    for command in commands(path):
        assert targets(command), command
        assert set(targets(command)) <= set(known), f"{path.name}: {command}"


def test_every_step_of_ci_is_in_some_job() -> None:
    steps = set(STEP.findall((ROOT / ".ci" / "run").read_text()))
    jobs = {target for command in commands(FOLDER / "ci.yml") for target in targets(command)}
    assert steps - {"setup"} <= jobs  # each target sets up what it needs


def test_nothing_of_a_workflow_may_write_but_the_publishing() -> None:
    for path in FILES:
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            assert "timeout-minutes" in job, f"{path.name}: {name}"
            assert job.get("permissions") in (None, {"id-token": "write"})
