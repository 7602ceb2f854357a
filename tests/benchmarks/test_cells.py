"""The papers' page in docs/: how its cells are drawn again, found, and compared."""

from dataclasses import replace

import pytest

from benchmarks.papers import __main__ as papers
from benchmarks.papers import trainings
from benchmarks.papers.cells import MarkdownTable, Part, Said, TableCell
from benchmarks.papers.drawing_again import Place, agree, drawn, on_page
from benchmarks.papers.page import text
from sparknet.training.planning.trials import Spread


def part(value: float = 0.951) -> Part:
    cell = TableCell(lambda: Spread(value, 0.004, 5), 100, unit=" %")
    clock = TableCell(lambda: Spread(3.0, 1.0, 3), is_timed=True)
    return Part(
        "some",
        "Some figure",
        lambda: "Words | with a bar.",
        [
            MarkdownTable(("a", "b"), [["x", "1"]]),
            MarkdownTable(
                ("K", "accuracy", "ms", "verdict"), [["2", cell, clock, Said(lambda: "so")]]
            ),
        ],
    )


@pytest.mark.parametrize(
    ("page", "again", "same"),
    [
        ("95.10 ± 0.40 %", "95.80 ± 0.10 %", True),
        ("95.10 ± 0.40 %", "96.00 ± 0.10 %", False),
        ("+1.20 ± 0.10", "+0.90 ± 0.05", False),
        ("-0.12 ± 0.10", "+0.05 ± 0.10", True),
        ("1,234 ± 10", "1,250 ± 5", True),
        ("81", "81", True),
        ("81", "82", False),
        ("inf", "inf", True),
    ],
)
def test_cells_agree_within_twice_their_error(page, again, same):
    assert agree(page, again) == same


def test_a_drawn_cell_is_found_on_the_page():
    one = part()
    page = "\n".join(["# The page", *text(one), "", "`python -m benchmarks.papers some`"])
    [(place, cell)] = drawn([one], 1.0, 0)
    assert place == Place("some", 1, 0, 1)
    assert on_page(page, place) == str(cell) == "95.10 ± 0.40 %"
    with pytest.raises(LookupError, match="no part 'other'"):
        on_page(page, Place("other", 0, 0, 0))


def test_a_page_that_is_wrong_is_told(tmp_path, monkeypatch, capsys):
    page = tmp_path / "experiments.md"
    page.write_text("\n".join([*text(part()), "", "`python -m benchmarks.papers some`"]))
    monkeypatch.setattr(papers, "DOCS", tmp_path)
    monkeypatch.setattr(trainings, "folder", trainings.folder)
    assert papers.check([part], 0.1, 0) == 0
    assert papers.check([lambda: part(0.97)], 0.1, 0) == 1
    assert "WRONG some, table 2, row 1, column 2: 95.10 ± 0.40 % on the page" in (
        capsys.readouterr().out
    )


def test_each_part_has_cells_that_are_drawn_again():
    one = TableCell(lambda: Spread(1.0, 0.1, 5))
    clock = replace(one, is_timed=True)
    parts = [
        Part(name, name, lambda: "", [MarkdownTable(("a",), [[cell]] * count)])
        for name, cell, count in (("many", one, 30), ("few", one, 2), ("timed", clock, 4))
    ]
    found = [[place.part for place, _ in drawn(parts, 0.1, seed)] for seed in (0, 1)]
    assert found == [["many"] * 3 + ["few"]] * 2
    assert drawn(parts, 0.1, 0) != drawn(parts, 0.1, 1)
    assert [place for place, _ in drawn(parts[1:], 0.1, 0)] == [
        place for place, _ in drawn(parts, 0.1, 0) if place.part == "few"
    ]


def test_a_page_older_than_the_code_is_told(monkeypatch):
    commits = {"abc..HEAD": "1\n2\n", "def..HEAD": ""}
    monkeypatch.setattr(papers, "_git", lambda *words: commits[words[2]])
    timed = replace(part(), measures=["sparknet/comm/tcp_comm.py"])
    page = "`python -m benchmarks.papers some`, made on 2026-01-01 from commit abc"
    line = "some: made from abc; sparknet/comm/tcp_comm.py changed 2 times since"
    assert papers.older(page, [timed]) == [line]
    assert papers.older(page, [part()]) == papers.older(page.replace("abc", "def"), [timed]) == []
