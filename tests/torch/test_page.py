"""The page about modules of PyTorch is one program."""

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("pyspark")

from tests.guides import blocks


def test_it_runs(tmp_path):
    programs = [block.text for block in blocks("docs/pytorch-modules.md") if block.word == "python"]
    assert len(programs) == 3
    path = tmp_path / "page.py"
    told = """
print(trained.outcome.reason, scored.where("class = label").count() / scored.count() > 0.8)
"""
    path.write_text("\n".join([*programs, told]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "steps True"
    assert (tmp_path / "trained.pt").is_file()
