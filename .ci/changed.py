"""The test files that speak of what changed since a commit, origin/main's or main's unless named.

    python .ci/changed.py [COMMIT]

A changed test file stands for itself, and another file below tests/ for the tests of its folder.
A source file `x` stands for every tests/**/test_x.py, or for the tests of its room where none has
that name.  Anything else is of no room: the tests of the house alone look at it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = ["tests/test_house.py"]
ROOMS = {"convolution": "caffe/layers", "engine": "caffe/layers", "forks": "caffe/layers"}
"""Where the tests of a room lie that has no folder of its name."""


def git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def since(commit: str) -> list[str]:
    """What differs from where this tree left a commit, uncommitted and new files included."""
    base = git("merge-base", commit, "HEAD") or ["HEAD"]
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", base[0]), *new})


def tests_of(name: str) -> list[Path]:
    """The test files for one changed file, by its path below the root."""
    path = Path(name)
    tests = ROOT / "tests"
    if path.parts[0] == "tests":
        if path.match("test_*.py"):
            return [ROOT / path] if (ROOT / path).exists() else []
        return sorted((ROOT / path).parent.glob("test_*.py"))
    if path.parts[0] in {"sparknet", "native"} and len(path.parts) > 2:
        named = sorted(tests.rglob(f"test_{path.stem}.py"))
        room = tests / ROOMS.get(path.parts[1], path.parts[1])
        return named or sorted(room.rglob("test_*.py"))
    if path.parts[0] == "examples":
        return sorted((tests / "examples").glob("test_*.py"))
    if path.suffix == ".md":
        return [tests / "docs" / "test_guides.py"]
    return []


def main(commit: str) -> None:
    found = {str(one.relative_to(ROOT)) for name in since(commit) for one in tests_of(name)}
    sys.stdout.write("\n".join(sorted({*found, *ALWAYS})) + "\n")


if __name__ == "__main__":
    default = "origin/main" if git("rev-parse", "--verify", "--quiet", "origin/main") else "main"
    main(sys.argv[1] if len(sys.argv) > 1 else default)
