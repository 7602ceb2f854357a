"""The papers' page: how its cells are drawn again, found, and compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import __main__ as papers
from benchmarks.papers import bigdl, controls, trainings
from benchmarks.papers.cells import Cell, Part, Place, Said, Table, agree, drawn, on_page
from benchmarks.papers.controls import Task, equal_bytes, equal_synchronisations, verdict
from benchmarks.papers.sparknet_figures import divided
from benchmarks.papers.trainings import Arm, Run, over_seeds, run, spread
from sparknet.summary.spread import Difference, Spread
from sparknet.training import AllReduce, Averaging, DynamicAveraging, SlowMo
from sparknet.training.planning import predict


def part(value: float = 0.951) -> Part:
    cell = Cell(lambda: Spread(value, 0.004, 5), 100, unit=" %")
    clock = Cell(lambda: Spread(3.0, 1.0, 3), is_timed=True)
    return Part(
        "some",
        "Some figure",
        lambda: "Words | with a bar.",
        [
            Table(("a", "b"), [["x", "1"]]),
            Table(("K", "accuracy", "ms", "verdict"), [["2", cell, clock, Said(lambda: "so")]]),
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
def test_cells_agree_within_twice_their_error(page: str, again: str, same: bool) -> None:
    assert agree(page, again) == same


def test_a_drawn_cell_is_found_on_the_page() -> None:
    one = part()
    page = "\n".join(["# The page", *papers.text(one), "", "`… --only some`"])
    [(place, cell)] = drawn([one], 1.0, 0)
    assert place == Place("some", 1, 0, 1)
    assert on_page(page, place) == str(cell) == "95.10 ± 0.40 %"
    with pytest.raises(LookupError, match="no part 'other'"):
        on_page(page, Place("other", 0, 0, 0))


def test_a_page_that_is_wrong_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("\n".join([*papers.text(part()), "", "`… --only some`"]))
    monkeypatch.setattr(papers, "PAGE", page)
    monkeypatch.setattr(trainings, "folder", trainings.folder)
    assert papers.check([part], 0.1, 0) == 0
    assert papers.check([lambda: part(0.97)], 0.1, 0) == 1
    assert "WRONG some, table 2, row 1, column 2: 95.10 ± 0.40 % on the page" in (
        capsys.readouterr().out
    )


def test_each_part_has_cells_that_are_drawn_again() -> None:
    one = Cell(lambda: Spread(1.0, 0.1, 5))
    clock = replace(one, is_timed=True)
    parts = [
        Part(name, name, lambda: "", [Table(("a",), [[cell]] * count)])
        for name, cell, count in (("many", one, 30), ("few", one, 2), ("timed", clock, 4))
    ]
    found = [[place.part for place, _ in drawn(parts, 0.1, seed)] for seed in (0, 1)]
    assert found == [["many"] * 3 + ["few"]] * 2
    assert drawn(parts, 0.1, 0) != drawn(parts, 0.1, 1)
    assert [place for place, _ in drawn(parts[1:], 0.1, 0)] == [
        place for place, _ in drawn(parts, 0.1, 0) if place.part == "few"
    ]


def test_the_page_tells_of_its_last_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    before = "\n".join(["# Page", "", "Head.", *papers.text(part()), "", "`… --only some`", ""])
    page.write_text(before)
    monkeypatch.setattr(papers, "PAGE", page)
    monkeypatch.setattr(trainings, "folder", trainings.folder)
    assert papers.check([part], 0.1, 3, is_written=True) == 0
    first = page.read_text()
    (told,) = set(first.splitlines()) - set(before.splitlines())
    assert told.startswith(f"{papers.CHECKED} on ")
    assert told.endswith("`--share 0.1 --seed 3`: as here are some 1 of 1 (0 s).")
    assert papers.check([lambda: part(0.97)], 0.1, 4, is_written=True) == 1
    assert page.read_text() == first.replace("seed 3", "seed 4").replace("1 of 1", "0 of 1")


def test_other_parts_of_the_page_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("figure3", "figure4", "dynamic")
    parts = {name: replace(part(), name=name, title=f"Of {name}") for name in names}
    page = tmp_path / "experiments.md"
    monkeypatch.setattr(papers, "PAGE", page)
    monkeypatch.setattr(papers, "DOCS", tmp_path)
    monkeypatch.setattr(papers, "_commit", lambda: "abc")

    def write(*chosen: Part) -> str:
        papers.write(chosen, [one.json(f"… --only {one.name}") for one in chosen])
        return page.read_text()

    both = write(parts["dynamic"], parts["figure3"])
    assert both.index("## Of figure3") < both.index("## Of dynamic")
    assert both.count("`, made on ") == both.count("from commit abc\n") == 2
    changed = write(replace(part(0.5), name="figure3", title="Of figure3"))
    assert changed == both.replace("95.10 ± 0.40 %", "50.00 ± 0.40 %", 1)
    more = write(parts["figure4"])
    assert more.replace("figure4", "figure3").count("95.10") == 2
    assert [more.index(f"## Of {name}") for name in names] == sorted(
        more.index(f"## Of {name}") for name in names
    )


def test_the_naive_way_is_the_papers_formula() -> None:
    found = [round(divided(5, cost), 2) for cost in (0.0, 0.1, 0.5, 0.8, 1.0)]
    assert found == [5.0, 3.33, 1.43, 1.0, 0.83]


def test_trainings_are_kept_by_arm_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "folder", tmp_path)
    static = Arm(Averaging(10), 2, 40, task="cancer", batch=8, hidden=4)
    losses = over_seeds(static, lambda one: one.loss)
    assert len(set(losses.values())) == trainings.SEEDS
    assert len(list(tmp_path.glob("*.json"))) == trainings.SEEDS
    made: Run = run(static, 1)
    assert (made.iterations, made.synchronisations) == (40, 4)
    size = 4 * (31 * 4 + 5 * 2)
    assert made.sent == pytest.approx(4 * size)  # a mean of two sends the buffer once
    assert run(static, 1) == made
    found = spread(static, lambda one: one.loss)
    assert found.mean == pytest.approx(np.mean(list(losses.values())))
    never = Arm(DynamicAveraging(1e9), 2, 40, task="cancer", batch=8, hidden=4)
    assert run(never, 1).synchronisations <= 1


def test_controls_send_as_many_bytes_or_synchronise_as_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "folder", tmp_path)
    monkeypatch.setattr(trainings, "SEEDS", 2)
    task = Task("cancer", "", 60, 8, (0.02,), 16, "loss")
    for strategy in (SlowMo(10), Averaging(10, codec="fp16")):
        sent = spread(task.arm(strategy, 2), lambda one: one.sent).mean
        control = equal_bytes(task, strategy, 2)
        assert spread(control, lambda one: one.sent).mean == pytest.approx(sent, rel=0.03)
        often = equal_synchronisations(task, strategy, 2)
        assert often.strategy == Averaging(10)
    assert equal_bytes(task, SlowMo(10), 2).strategy == Averaging(5)
    assert equal_bytes(task, Averaging(10, codec="fp16"), 2).strategy == Averaging(20)


def test_each_arm_has_the_best_of_the_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "folder", tmp_path)
    task = Task("cancer", "", 30, 8, (1e-5, 0.05), 16, "loss")
    assert task.arm(Averaging(10), 2).rate == 0.05


def test_beyond_the_first_rates_the_next_is_tried_as_long_as_the_best_is_at_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "folder", tmp_path)
    asked: list[float] = []

    def scored(arm: Arm, seed: int) -> Run:
        """The loss is the least at 0.03."""
        asked.append(arm.rate)
        loss = abs(np.log(arm.rate / 0.03))
        return Run([], 1 - loss, loss, 0, 0.0, 0.0, 0.0, [])

    monkeypatch.setattr(controls, "run", scored)
    rates = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    for first in ((1, 3), (5, None), (3, 6), (0, 2)):
        asked.clear()
        task = Task("cancer", "", 30, 8, rates, 16, "loss", first=first)
        assert task.arm(Averaging(10), 2).rate == 0.03
        assert replace(task, measure="accuracy").arm(Averaging(10), 2).rate == 0.03
        assert len(set(asked)) < len(rates)
        narrow = task.narrow()
        best = min(narrow.rates, key=lambda rate: abs(np.log(rate / 0.03)))
        assert narrow.arm(Averaging(10), 2).rate == best
    ends = replace(task, rates=rates[:3], first=(0, 1))
    assert ends.arm(Averaging(10), 2).rate == 0.0001


def test_a_difference_that_the_digits_do_not_show_is_none() -> None:
    task = Task("cancer", "", 30, 8, (0.1,), 16, "loss")
    share = replace(task, measure="accuracy")
    far, near = (Difference(Spread(mean, 1e-6, 5), 4, paired=True) for mean in (0.00006, 0.00004))
    assert far.seen
    assert near.seen
    assert [verdict(task, one) for one in (far, near)] == ["worse", "no difference seen"]
    assert [verdict(share, one) for one in (far, near)] == ["better", "no difference seen"]


def test_an_iteration_of_all_reduce_takes_what_the_strategy_takes() -> None:
    found = predict(AllReduce(), bigdl.WIRE, 16, bigdl.nbytes())
    assert bigdl.iteration(16) == pytest.approx(found.seconds, rel=0.01)
    assert bigdl.nbytes() == 53_513_120  # bvlc_googlenet.caffemodel, with both auxiliary heads
