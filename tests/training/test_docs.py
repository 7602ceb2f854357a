"""docs/training.md is true: its example runs; docs/strategies.md knows every strategy."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from sparknet.training import STRATEGIES
from tests.guides import examples, guide, run_examples


def test_the_example_runs_as_a_program(tmp_path: Path) -> None:
    assert len(examples("training.md")) == 2
    done = run_examples("training.md", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lines.caffemodel").is_file()
    (kept,) = (tmp_path / "snapshots").glob("run-*/round-00000010")
    assert (kept / "manifest.json").is_file()


def test_every_setting_is_listed() -> None:
    page = guide("strategies.md")
    for name, kind in STRATEGIES.items():
        assert f"`{name}`" in page
        assert f"| {kind.__name__} |" in page or f"| `{kind.__name__}(" in page
        for field in fields(kind):
            assert f"`{field.name}`" in page, f"{kind.__name__}.{field.name} is not in the guide"
