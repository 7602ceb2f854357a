"""Nothing hides from CI: no folder of tests, no file, no module of a package, no native source."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.goldens import ROOT
from tests.packaging.venvs import PROBE, modules

GUARD = SimpleNamespace(**runpy.run_path(str(ROOT / ".ci" / "collected.py")))
STEP = re.compile(r"^(?:step|beside) make ([\w-]+)", re.MULTILINE)
TARGET = re.compile(r"^([\w-]+):", re.MULTILINE)
CITED = re.compile(r"(?:native/)?tests/[\w/]*\w(?:\.\w+)?(?:::\w+)?")
GUIDES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.fixture
def tree(tmp_path):
    """A project with a test in a folder `dist`, one in a class, and this one's hook."""
    root = tmp_path / "project"
    for name, text in {
        "tests/conftest.py": (ROOT / "tests" / "conftest.py").read_text(),
        "tests/dist/test_hidden.py": "def test_one(): pass\n",
        "tests/test_shown.py": "class TestIt:\n    def test_two(self): pass\n",
        "tests/test_drawn.py": "import pytest\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n): pass\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for package in ("benchmarks", "tests/goldens"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("*[!.py]"))
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def missing(tree: Path, *options: str) -> list[str]:
    """What is missing after one step that ran pytest with these options."""
    seen = tree / "seen"
    shutil.rmtree(seen, ignore_errors=True)
    variables = {**os.environ, "SPARKNET_COLLECTED": str(seen / "test"), "PYTHONPATH": str(tree)}
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    subprocess.run([*words, *options, "tests"], cwd=tree, env=variables, capture_output=True)
    found: list[str] = GUARD.missing(tree, seen)
    return found


def test_a_hidden_folder_is_named(tree):
    """By pytest's own list of folders, which has dist; unless git ignores what is not tracked."""
    hidden = ["tests/dist/test_hidden.py::test_one"]
    assert missing(tree) == hidden
    (tree / ".gitignore").write_text("dist/\n")
    assert GUARD.missing(tree, tree / "seen") == []
    subprocess.run(["git", "add", "-f", "tests/dist"], cwd=tree, check=True)
    assert GUARD.missing(tree, tree / "seen") == hidden


def test_a_hidden_file_or_test_is_named(tree):
    """What is marked long counts where it is run alone."""
    (tree / "pytest.ini").write_text("[pytest]\nnorecursedirs = .*\nmarkers = long\n")
    long = "import pytest\n@pytest.mark.long\ndef test_it(): pass\ndef test_that(): pass\n"
    every = "import pytest\npytestmark = [pytest.mark.long]\ndef test_it(): pass\n"
    for name, text in {"new": "def test_it(): pass\n", "long": long, "all": every}.items():
        (tree / "tests" / f"test_{name}.py").write_text(text)
    hiding = ["--ignore=tests/test_drawn.py", "--ignore-glob=*new*", "-m", "not long"]
    assert missing(tree, *hiding, "-k", "not two and not that") == [
        "tests/test_drawn.py::test_n",
        "tests/test_long.py::test_that",
        "tests/test_new.py::test_it",
        "tests/test_shown.py::TestIt::test_two",
    ]


def test_this_trees_own_settings_hide_no_folder(pytestconfig):
    patterns = pytestconfig.getini("norecursedirs")
    folders = {part for path in GUARD.files(ROOT) for part in path.relative_to(ROOT).parts[:-1]}
    assert {"tests", "training", "packaging"} <= folders
    assert [one for one in folders if any(fnmatch(one, pattern) for pattern in patterns)] == []
    assert pytestconfig.getini("python_files") == ["test_*.py", "*_test.py"]


def test_every_step_of_ci_is_a_make_target():
    steps = STEP.findall((ROOT / ".ci" / "run").read_text())
    assert {"lint", "test", "test-slow", "test-cluster", "sanitize-python"} <= set(steps)
    assert set(steps) <= set(TARGET.findall((ROOT / "Makefile").read_text()))


def test_a_module_that_a_package_lacks_is_named():
    """As the tests of packages look: in a package without a folder of the tree."""
    assert ("training", "__init__") in modules()
    hidden = [*modules(), ("training", "hidden", "module")]
    words = [sys.executable, "-c", PROBE.replace("{modules}", repr(hidden))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.endswith("AssertionError: [('training', 'hidden', 'module')]\n")


def test_what_git_knows_is_ignored_by_no_pattern():
    """A tracked file that .gitignore names goes into no archive that is made of the rest."""
    words = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout == ""


def test_every_native_source_is_compiled_and_every_c_test_runs():
    native = ROOT / "native"
    lists = "".join(p.read_text() for p in [native / "CMakeLists.txt", *native.glob("cmake/*")])
    named = set(re.findall(r"[\w/]+\.c(?:pp)?\b", lists))
    sources = {path.relative_to(native) for path in native.rglob("*.c*") if path.suffix != ".cmake"}
    tests = {path.name.removeprefix("test_") for path in (native / "tests").glob("test_*.c*")}
    groups = re.findall(r"(?:set\(|list\(APPEND )C_TESTS ([^)]*)\)", lists)
    assert tests == set(" ".join(groups).split())
    globs = set(re.findall(r"(\w+)/\*(\.c(?:pp)?)\b", lists))
    assert ("layers", ".cpp") in globs
    left = {str(p) for p in sources if p.parts[0] != "tests" and p.suffix in {".c", ".cpp"}}
    left -= {str(p) for p in sources if (p.parts[0], p.suffix) in globs}
    assert left - named == set()


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tests_that_the_docs_cite_are_there(guide):
    """Those that are there are collected by CI, or .ci/collected.py fails."""
    for cited in CITED.findall(guide.read_text(encoding="utf-8")):
        name, _, function = cited.partition("::")
        assert (ROOT / name).exists(), f"{guide.name} cites {cited}"
        assert not function or function in GUARD.functions(ROOT / name), f"{guide.name}: {cited}"
