"""The notebooks of examples/notebooks run from end to end, and show what they say."""

import base64
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"

nbformat = pytest.importorskip("nbformat")


def executed(name, folder, monkeypatch):
    """What the cells of a notebook show, in order."""
    for package in ("ipykernel", "pyspark", "sklearn"):
        pytest.importorskip(package)
    client = pytest.importorskip("nbclient").NotebookClient
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    client(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    assert not list(folder.iterdir()), "a notebook leaves files beside itself"
    return [
        one.get("data", {"text/plain": one.get("text")})
        for one in shown
        if one["output_type"] == "execute_result" or one.get("name") == "stdout"
    ]


def share(shown, what):
    """The share that a cell shows or prints with these words."""
    message = "\n".join(str(data["text/plain"]) for data in shown)
    (found,) = re.findall(rf"([0-9.]+)% {what}", message)
    return float(found) / 100


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_outputs_are_committed(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs"), cell.source
        assert cell.get("execution_count") is None, cell.source


@pytest.mark.slow
def test_train_on_spark(tmp_path, monkeypatch):
    shown = executed("train_on_spark.ipynb", tmp_path, monkeypatch)
    held_out = share(shown, "of the digits that were held out")
    assert held_out >= 0.95
    assert share(shown, "without Spark") == held_out
    assert "<NetParams 'digits': 8 layers" in shown[1]["text/plain"]
    assert "20 rounds, 5 validations" in shown[2]["text/plain"]
    assert "<svg" in shown[2]["text/html"]


@pytest.mark.slow
def test_fine_tune_a_caffemodel(tmp_path, monkeypatch):
    shown = executed("fine_tune_a_caffemodel.ipynb", tmp_path, monkeypatch)
    assert "<caffe.Net 'old', TRAIN: 9 layers, 8,714 parameters" in shown[0]["text/plain"]
    assert "16 tiles" in shown[1]["text/plain"]
    assert base64.b64decode(shown[1]["image/png"]).startswith(b"\x89PNG")
    old, anew = share(shown, "with the old weights"), share(shown, "without them")
    assert old >= 0.85
    assert old >= anew + 0.01, "the old weights are of no use"
    assert shown[-1]["text/plain"] == "['odd.caffemodel', 'old.caffemodel']"


@pytest.mark.slow
def test_embeddings_and_search(tmp_path, monkeypatch):
    shown = executed("embeddings_and_search.ipynb", tmp_path, monkeypatch)
    assert shown[1]["image/svg+xml"].count("<rect") >= 8
    assert share(shown, "have a nearest one of the same digit") >= 0.9
    assert share(shown, "would by chance") == pytest.approx(1 / 3, abs=0.01)
    rows = [line.split() for line in shown[-1]["text/plain"].splitlines()[1:]]
    assert len(rows) == 5
    assert [row[2] for row in rows] == ["7"] * 5, "the nearest of a 7 are not all 7"
    distances = [float(row[3]) for row in rows]
    assert distances[0] == 0
    assert distances == sorted(distances)
    assert distances[-1] < 1
