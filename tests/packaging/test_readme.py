"""README as a stranger reads it: its commands and programs, in order, beside an installed wheel."""

import os
import re
import shutil

import pytest

from tests.goldens import ROOT
from tests.guides import blocks, program
from tests.packaging.venvs import make_venv, run


def test_what_is_no_program_is_a_make_target():
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    plain = [block.text for block in blocks("README.md") if block.mark.startswith("fragment")]
    commands = [line for text in plain for line in text.splitlines() if line[:1].strip("# ")]
    assert commands
    for command in commands:
        program, target = command.split()[:2]
        assert program == "make"
        assert target in targets


TUTORIALS = ["table", "pytorch", "photographs", "caffe"]


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_says_how_one_gets_it(page):
    install = next(block for block in blocks(f"docs/tutorial-{page}.md") if block.word == "sh")
    assert 'pip install "$(ls dist/sparknet-*.whl)' in install.text
    extras = re.findall(r"\[([\w,-]+)\]", install.text)
    known = re.findall(r"^([\w-]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(",".join(extras).split(",")) - {""} <= set(known)


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_runs_as_it_stands(page, wheel, tmp_path):
    """In an environment that has what the page's own first command installs."""
    name, folder = f"docs/tutorial-{page}.md", tmp_path / "folder"
    python = make_venv(tmp_path / "venv")
    (folder / "dist").mkdir(parents=True)
    shutil.copy(wheel, folder / "dist")
    path = os.pathsep.join([str(python.parent), "/usr/bin", "/bin"])
    install = next(block for block in blocks(name) if block.word == "sh")
    run("bash", "-euc", install.text, cwd=folder, PATH=path)
    run(python, "-c", program(name), cwd=folder, PATH=path)


@pytest.mark.slow
def test_its_commands_run_as_they_stand(wheel, tmp_path):
    python = make_venv(tmp_path / "venv")
    folder = tmp_path / "folder"
    (folder / "dist").mkdir(parents=True)
    shutil.copy(wheel, folder / "dist")
    path = os.pathsep.join([str(python.parent), "/usr/bin", "/bin"])
    programs = [
        block
        for block in blocks("README.md")
        if block.word != "text" and not block.mark.startswith("fragment")
    ]
    assert len(programs) > 4
    said = ""
    for block in programs:
        words = ["bash", "-euc"] if block.word == "sh" else [python, "-c"]
        said += run(*words, block.text, cwd=folder, PATH=path)
    accuracy = re.search(r"'accuracy': (0\.\d+)", said)
    assert accuracy, said
    assert float(accuracy[1]) > 0.9
    assert (folder / "small.caffemodel").is_file()
    assert (folder / "lenet" / "solver.prototxt").is_file()
