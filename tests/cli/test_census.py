"""`sparknet census`."""

import json
from pathlib import Path

import pytest

from sparknet.cli import census, main
from sparknet.cli.census import take

INPUT = 'layer { name: "i" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }\n'
FILES = {
    "good.prototxt": INPUT + 'layer { name: "t" type: "TanH" bottom: "x" top: "y" }',
    "more/legacy.pt": 'input: "x" input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4\n',
    "type.prototxt": INPUT + 'layer { name: "t" type: "Hotspot" bottom: "x" top: "y" }',
    "field.prototxt": INPUT + 'layer { name: "t" type: "TanH" bottom: "x" top: "y" future: 3 }',
    "data.prototxt": 'layer { name: "d" type: "Data" top: "x" '
    'data_param { source: "no" batch_size: 1 } }',
    "python.prototxt": INPUT + 'layer { name: "p" type: "Python" bottom: "x" top: "y" '
    'python_param { module: "os" layer: "x" } }',
    "shape.prototxt": INPUT + 'layer { name: "p" type: "Pooling" bottom: "x" top: "y" }',
    "broken.prototxt": "layer { name: ",
    "solver.prototxt": 'net: "good.prototxt" base_lr: 0.1 lr_policy: "fixed"',
    "odd_solver.prototxt": "base_lr: 0.1 clip_weights: true",
    "labelmap.prototxt": 'item { name: "none" }',
    "readme.txt": "layer { }",
}


def test_the_reason_of_the_phase_that_has_data(tmp_path):
    text = INPUT.replace("input_param", "include { phase: TEST } input_param")
    text += 'layer { name: "p" type: "Pooling" bottom: "x" top: "y" }'
    (tmp_path / "net.prototxt").write_text(text)
    assert take(tmp_path).files[0].reason.startswith("Pooling: ")


def test_one_bad_file_ends_no_census(tmp_path, monkeypatch):
    """Two generations and an unknown field in one file; a file that nobody may read; a defect."""
    (tmp_path / "a.prototxt").write_text('layer { type: "TanH" }\nlayers { nosuch: 1 }')
    (tmp_path / "b.prototxt").write_text(FILES["good.prototxt"])
    (tmp_path / "c.prototxt").write_text(FILES["good.prototxt"] + "# secret")
    read, build = Path.read_bytes, census._build

    def read_bytes(path: Path) -> bytes:
        if path.name == "c.prototxt":
            raise PermissionError(13, "Permission denied")
        return read(path)

    def built(net, trusted, types):
        if len(net.layer) > 2:
            raise ZeroDivisionError("division by zero")
        return build(net, trusted, types)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    monkeypatch.setattr(census, "_build", built)
    (tmp_path / "d.prototxt").write_text(FILES["good.prototxt"] + 'layer { type: "TanH" }')
    found = {one.path: one for one in take(tmp_path).files}
    assert found["a.prototxt"].result == "unread"
    assert found["a.prototxt"].unknown_fields == ("V1LayerParameter nosuch",)
    assert found["b.prototxt"].result == "built"
    assert (found["c.prototxt"].result, found["c.prototxt"].reason) == (
        "unread", "Permission denied",
    )  # fmt: skip
    assert found["d.prototxt"].reason == "ZeroDivisionError: division by zero"
    assert main(["census", str(tmp_path), "--list"]) == 0


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "same.prototxt").write_text(FILES["good.prototxt"])
    (tmp_path / "folder.prototxt").mkdir()
    return tmp_path


def test_counts(folder, capsys):
    assert main(["census", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    files = {one["path"]: one for one in found.pop("files")}
    assert found == {
        "nets": 8,
        "nets that parse": 6,
        "nets that need a file": 2,
        "nets that build": 2,
        "nets that do not build": 2,
        "solvers": 2,
        "solvers that parse": 1,
    }
    results = {name: one["result"] for name, one in files.items()}
    assert results == {
        "good.prototxt": "built",
        "more/legacy.pt": "built",
        "type.prototxt": "failed",
        "field.prototxt": "unread",
        "data.prototxt": "missing",
        "python.prototxt": "missing",
        "shape.prototxt": "failed",
        "broken.prototxt": "unread",
        "solver.prototxt": "parsed",
        "odd_solver.prototxt": "unread",
    }
    assert files["type.prototxt"]["unknown_types"] == ["Hotspot"]
    assert files["field.prototxt"]["unknown_fields"] == ["LayerParameter future"]
    assert files["odd_solver.prototxt"]["unknown_fields"] == ["SolverParameter clip_weights"]


def test_as_text(folder, capsys):
    assert main(["census", str(folder), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["     8  nets", "     6  nets that parse", "     2  nets that need a file"]
    assert "     1  Hotspot" in lines
    assert "     1  LayerParameter future" in lines
    assert any(line.startswith("shape.prototxt: Pooling: takes N axes") for line in lines)


def test_no_folder(tmp_path, capsys):
    assert main(["census", str(tmp_path / "no")]) == 1
    assert "no such folder" in capsys.readouterr().err
