"""The papers' experiments: the page, its pictures and the report that a run leaves."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import digits
from benchmarks.papers import PARTS, page, trainings
from benchmarks.papers import __main__ as papers
from benchmarks.papers.cells import CurvePanel, MarkdownTable, Part, TableCell
from sparknet.cli import main
from sparknet.training.planning.trials import Spread


def part(name: str = "figure3", value: float = 0.951) -> Part:
    cell = TableCell(lambda: Spread(value, 0.004, 5), 100, unit=" %")
    return Part(
        name,
        f"Of {name}",
        lambda: "Words.",
        [MarkdownTable(("K", "accuracy"), [["2", cell]], "**Size of the data**")],
        [CurvePanel("Accuracy", "iteration", lambda: {"static": [(0.0, 0.5), (10.0, value)]})],
    )


def maker(name: str) -> Callable[[], Part]:
    return lambda: part(name)


@pytest.fixture
def makers(monkeypatch):
    monkeypatch.setattr(page, "makers", lambda: {name: maker(name) for name in PARTS})
    monkeypatch.setattr(trainings, "folder", trainings.folder)


def test_every_part_has_a_maker_and_a_page():
    assert list(page.makers()) == PARTS


def test_words_are_short_lines_and_tables_stay():
    word, row, code = "word " * 30, "| a " * 40, f"`{'long code ' * 12}`"
    assert page.wrapped(word) == [("word " * 22).strip(), ("word " * 8).strip()]
    assert page.wrapped(f"- {word}")[1].startswith("  word")
    assert page.wrapped(row) == [row]
    assert page.wrapped(f"{'word ' * 10}{code}") == [("word " * 10).strip(), code]


@pytest.mark.usefixtures("makers")
def test_a_run_leaves_a_page_pictures_and_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(papers, "KEPT", tmp_path)
    monkeypatch.setattr(papers, "DOCS", tmp_path)
    monkeypatch.setattr(papers, "real", lambda: tmp_path)
    monkeypatch.setattr("sys.argv", ["papers", "dynamic", "figure3", "--write"])
    papers.main()
    out, err = capsys.readouterr()
    assert out.index("## Of figure3") < out.index("## Of dynamic")
    assert "| 2 | 95.10 ± 0.40 % |" in out
    assert "digits: " in err
    written = (tmp_path / "experiments-sparknet.md").read_text()
    assert "![Accuracy](experiments/figure3.svg)" in written
    assert "benchmarks.papers dynamic`" not in written
    other = (tmp_path / "experiments-spark.md").read_text()
    assert "`python -m benchmarks.papers dynamic`, made on " in other
    assert "![Accuracy](experiments/dynamic.svg)" in other
    assert (tmp_path / "experiments" / "figure3.svg").read_text().startswith("<svg")
    assert main(["report", str(tmp_path / "experiments.json")]) == 0
    shown = (tmp_path / "experiments.html").read_text()
    assert "95.10 ± 0.40 %" in shown
    assert "<h3>Size of the data</h3>" in shown


def test_a_part_that_is_none(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["papers", "figure33"])
    with pytest.raises(SystemExit, match="2"):
        papers.main()
    assert "there is no part 'figure33': there are fawaz, " in capsys.readouterr().err


def test_other_parts_of_the_page_stay(tmp_path):
    path = tmp_path / "experiments.md"
    names = ("figure3", "figure4", "dynamic")
    parts = {name: part(name) for name in names}

    def write(*chosen: Part) -> str:
        page.write(chosen, path, page.HEADS[0], "from commit abc")
        return path.read_text()

    both = write(parts["dynamic"], parts["figure3"])
    assert both.index("## Of figure3") < both.index("## Of dynamic")
    assert both.count("`, made on ") == both.count("from commit abc.\n") == 2
    changed = write(replace(part(value=0.5), title="Of figure3"))
    assert changed == both.replace("95.10 ± 0.40 %", "50.00 ± 0.40 %", 1)
    more = write(parts["figure4"])
    assert more.count("95.10") == 2
    assert [more.index(f"## Of {name}") for name in names] == sorted(
        more.index(f"## Of {name}") for name in names
    )


def test_records_are_those_of_the_files(mnist, monkeypatch):
    from sparknet.loaders.mnist_cifar10 import MNIST

    wanted = MNIST(*mnist).take(slice(8498, 8503))
    monkeypatch.setattr(digits, "_all", digits._all.__wrapped__)
    for folder in (str(mnist[0].parent), ""):
        monkeypatch.setenv("SPARKNET_MNIST", folder)
        found = digits.records(slice(8498, 8503)).take(slice(None))
        assert found["data"].dtype == np.float32
        assert found["label"].dtype == wanted["label"].dtype
        if folder:
            assert (found["data"] * 256 == wanted["data"]).all()
            assert (found["label"] == wanted["label"]).all()
        else:
            images, labels = digits.draw()
            assert (found["data"][:, 0] * 256 == images[8498:8503]).all()
            assert (found["label"] == labels[8498:8503]).all()
