"""The notebooks of examples/notebooks run from end to end, and show what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"

nbformat = pytest.importorskip("nbformat")


def executed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the cells of a notebook show, in order."""
    for package in ("ipykernel", "pyspark", "sklearn"):
        pytest.importorskip(package)
    client = pytest.importorskip("nbclient").NotebookClient
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    client(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    assert not list(folder.iterdir()), "a notebook leaves files beside itself"
    return [one["data"] for one in shown if one["output_type"] == "execute_result"]


def share(shown: list[Any], what: str) -> float:
    """The share that a cell shows with these words."""
    said = "\n".join(str(data["text/plain"]) for data in shown)
    (found,) = re.findall(rf"([0-9.]+)% {what}", said)
    return float(found) / 100


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_outputs_are_committed(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs"), cell.source
        assert cell.get("execution_count") is None, cell.source


@pytest.mark.slow
def test_train_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = executed("train_on_spark.ipynb", tmp_path, monkeypatch)
    held_out = share(shown, "of the digits that were held out")
    assert held_out >= 0.95
    assert share(shown, "without Spark") == held_out
    assert "<NetParams 'digits': 8 layers" in shown[1]["text/plain"]
    assert "20 rounds, 5 validations" in shown[2]["text/plain"]
    assert "<svg" in shown[2]["text/html"]
