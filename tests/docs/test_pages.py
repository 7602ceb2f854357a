"""README and docs/ are true: every block has a word, and every program runs.

How a block says that it does not run, and why: tests/guides.py.
"""

import re
from pathlib import Path

import pytest

from tests.goldens import ROOT
from tests.guides import PAGES, blocks, run_page

WORDS = {"python", "sh", "text", "prototxt"}
PROGRAMS = [name for name in PAGES if any(block.runs for block in blocks(name))]

MOST_FRAGMENTS = 10
"""May only fall: a fragment is a block that nobody can try."""

SLOW = {
    "README",
    "cli",
    "clusters",
    "cookbook",
    "cookbook-spark",
    "images",
    "measuring",
    "pipelines",
    "planning",
    "predicting",
    "rdd",
    "reports",
    "spark",
    "tutorial-caffe",
    "tutorial-photographs",
    "tutorial-pytorch",
    "tutorial-table",
}
"""Pages that start Spark, or take long."""

LONG = {"cli", "planning", "tutorial-table"}
"""Minutes each."""

SILENT = {"data", "pycaffe"}

LEFT = {
    "training": ["lines.caffemodel", "snapshots/run-*/round-00000010/manifest.json"],
    "spark": ["points/model.json"],
    "pipelines": ["models/side-net/weights.caffemodel"],
    "cookbook": ["snapshots/run-*/round-*/manifest.json"],
    "cookbook-spark": ["model.sparknet.json"],
    "saved-models": ["net.caffemodel"],
    "tutorial-caffe": ["new.prototxt", "tuned/weights.caffemodel"],
    "tutorial-photographs": ["shapes/model.json"],
    "tutorial-pytorch": ["trained.onnx"],
    "tutorial-table": ["biopsies/metadata", "predicted/_SUCCESS"],
    "README": ["small.caffemodel", "lenet/solver.prototxt"],
}
"""Files that a page's program leaves."""

NEEDED = ["PIL", "matplotlib", "onnx", "pandas", "pyarrow", "pyspark", "sklearn"]


def fragments() -> list[str]:
    return [
        f"{name}:{block.line}: {block.mark}"
        for name in PAGES
        for block in blocks(name)
        if block.mark.startswith("fragment")
    ]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_has_a_word(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert {block.word for block in blocks(name)} <= WORDS
    assert len(blocks(name)) * 2 == len(re.findall(r"^ *```", text, re.MULTILINE))
    assert len(re.findall("<!-- (?:fragment|run by)", text)) == sum(
        bool(block.mark) for block in blocks(name)
    ), "a mark that stands before no block"


def test_fragments_are_few():
    found = fragments()
    assert len(found) <= MOST_FRAGMENTS, "\n".join(found)


@pytest.mark.parametrize("name", PAGES)
def test_what_another_test_runs(name):
    for block in blocks(name):
        if block.mark.startswith("run by"):
            test = ROOT / block.mark.removeprefix("run by ")
            assert test.is_file(), f"{name}:{block.line}"
            for script in re.findall(r"examples/(\w+)\.py", block.text):
                assert script in test.read_text(encoding="utf-8"), f"{name}:{block.line}"


slow = pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[slow, pytest.mark.long] if Path(name).stem in LONG else slow)
        if Path(name).stem in SLOW
        else name
        for name in PROGRAMS
    ],
)
def test_it_runs(name, tmp_path):
    page = Path(name).stem
    for package in (
        NEEDED
        if page
        in SLOW | {"caffemodel-to-onnx", "onnx", "onnx-to-caffe", "saved-models", "training"}
        else []
    ):
        pytest.importorskip(package)
    done = run_page(name, tmp_path)
    assert done.returncode == 0, done.stderr
    if page in SILENT:
        assert (done.stdout, done.stderr) == ("", "")
    for path in LEFT.get(page, []):
        assert list(tmp_path.glob(path)), path
