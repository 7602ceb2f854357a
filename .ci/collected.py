"""Every test is collected by some step of `.ci/run`: fails, naming those that are not.

    python .ci/collected.py FOLDER

FOLDER is what SPARKNET_COLLECTED named while the steps ran: there each pytest process left the
tests that it had chosen.  What the tree holds is read from its files, with none of pytest's rules
about names of folders.  Tests marked `long` are no part of CI: `make test-long` and `make
test-torch LONG=1` run them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = "pytest.mark.long"


def files(root: Path) -> list[Path]:
    """The files of tests, by git: hidden by no pattern but its own, and not by those if tracked."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "tests"]
    listed = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout
    paths = sorted(root / name for name in listed.split("\0") if name)
    return [path for path in paths if path.match("test_*.py") and path.exists()]


def functions(path: Path) -> Iterator[str]:
    """`test_x` and `TestY::test_x` of a file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            inside = (one for one in node.body if isinstance(one, ast.FunctionDef))
            yield from (f"{node.name}::{one.name}" for one in inside if one.name.startswith("test"))


def defined(root: Path) -> set[str]:
    """The tests of a tree, as pytest names them, without their parameters."""
    return {f"{path.relative_to(root)}::{name}" for path in files(root) for name in functions(path)}


def apart(root: Path) -> set[str]:
    """Tests marked `long`: functions, or whole files by `pytestmark`."""
    found = set()
    for path in files(root):
        nodes = ast.parse(path.read_text(encoding="utf-8")).body
        whole = any(isinstance(one, ast.Assign) and _is_long(one) for one in nodes)
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and (
                whole or any(map(_is_long, node.decorator_list))
            ):
                found.add(f"{path.relative_to(root)}::{node.name}")
    return found & defined(root)


def _is_long(mark: ast.Assign | ast.expr) -> bool:
    said = ast.unparse(mark)
    return said == LONG or (said.startswith("pytestmark = ") and LONG in said)


def collected(folder: Path) -> dict[str, set[str]]:
    """Test → steps that chose it, without parameters."""
    found: dict[str, set[str]] = {}
    for listing in sorted(folder.glob("*/*.txt")):
        for line in listing.read_text(encoding="utf-8").splitlines():
            found.setdefault(line.partition("[")[0], set()).add(listing.parent.name)
    return found


def missing(root: Path, folder: Path) -> list[str]:
    return sorted(defined(root) - collected(folder).keys() - apart(root))


def main(folder: Path) -> int:
    steps = collected(folder)
    for step in sorted({step for chosen in steps.values() for step in chosen}):
        count = sum(step in chosen for chosen in steps.values())
        sys.stdout.write(f"{count:6} test functions collected by {step}\n")
    for name in sorted(apart(ROOT) - steps.keys()):
        sys.stdout.write(f"too long for CI: {name}\n")
    lost = missing(ROOT, folder)
    for name in lost:
        sys.stdout.write(f"collected by no step: {name}\n")
    total = len(defined(ROOT))
    sys.stdout.write(f"{total - len(lost)} of {total} test functions are run somewhere\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
