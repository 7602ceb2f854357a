"""What a type checker says of users' scripts, with sparknet installed as a package with types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from sparknet.loaders.preprocessing import ImageSettings, Preprocessing
from stubs import builders, params
from tests.goldens import ROOT

SCRIPTS = Path(__file__).with_name("scripts")
FOUND = re.compile(r"^(\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", re.MULTILINE)


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, str]]:
    """The file, line and code of each error that `mypy --strict` finds in the scripts."""
    place = tmp_path_factory.mktemp("outside")
    words = [sys.executable, "-m", "venv", "--without-pip", str(place / "venv")]
    subprocess.run(words, check=True)
    python = place / "venv" / "bin" / "python"
    (packages,) = place.glob("venv/lib/python*/site-packages")
    (packages / "sparknet").symlink_to(ROOT / "sparknet")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))  # numpy
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    words += [f"--cache-dir={place / 'cache'}", f"--python-executable={python}"]
    done = subprocess.run(
        [*words, "--hide-error-context", *sorted(path.name for path in SCRIPTS.glob("*.py"))],
        cwd=SCRIPTS,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return [(file, int(line), code) for file, line, code in FOUND.findall(done.stdout)]


@pytest.mark.slow
def test_right_uses_are_no_errors(checked: list[tuple[str, int, str]]) -> None:
    assert [one for one in checked if one[0] != "wrong"] == []


@pytest.mark.slow
def test_wrong_uses_are_errors_where_they_stand(checked: list[tuple[str, int, str]]) -> None:
    lines = (SCRIPTS / "wrong.py").read_text().splitlines()
    expected = [
        (number, line.partition("  # ")[2])
        for number, line in enumerate(lines, 1)
        if "  # " in line
    ]
    assert len(expected) > 50
    assert [(line, code) for file, line, code in checked if file == "wrong"] == expected


@pytest.mark.parametrize("stub", [builders, params])
def test_the_stubs_are_current(stub: ModuleType) -> None:
    written = (ROOT / "sparknet" / stub.PATH).read_text(encoding="utf-8")
    assert written == stub.stub(), "run make layers"


def test_the_stubs_without_pyspark(tmp_path: Path) -> None:
    """A wheel is built where pyspark and what it imports are not installed."""
    program = """
import importlib.util, runpy, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *words: None if name == "pyspark" else find(name, *words)
sys.modules.update(dict.fromkeys(["pandas", "py4j", "pyarrow", "cloudpickle"]))
sys.argv = ["stubs", "out"]
runpy.run_module("stubs", run_name="__main__")
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    for stub in (builders, params):
        assert (tmp_path / "out" / stub.PATH).read_text(encoding="utf-8") == stub.stub()


def test_the_keywords_of_transform_have_types() -> None:
    from sparknet.predict.request import FunctionOptions, Request, TransformOptions

    known = Request.__dataclass_fields__.keys() - {"outputs"}
    assert TransformOptions.__annotations__.keys() == known
    assert FunctionOptions.__annotations__.keys() == known - {"prefix", "best", "key"}


def test_every_setting_of_images_is_a_keyword() -> None:
    assert list(ImageSettings.__annotations__) == list(Preprocessing.__dataclass_fields__)
