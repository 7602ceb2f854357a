"""Plots: curves where they belong, files whole or not there."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sparknet.errors import FileError, MissingExtra
from sparknet.graph.curves import ticks
from sparknet.report import History, JsonLines, plot
from tests.report.events import START, TRAINING, round_event, validation

SVG = "{http://www.w3.org/2000/svg}"


def curves(path: Path) -> list[ElementTree.Element]:
    return ElementTree.parse(path).getroot().findall(f"{SVG}g")


def test_svg(tmp_path):
    out = tmp_path / "plot.svg"
    plot(History(TRAINING), out)
    loss, accuracy = curves(out)
    texts = [text.text for text in loss.iter(f"{SVG}text")]
    assert texts[0] == "loss"
    assert texts[-2:] == ["training", "validation"]
    training, validated = (line.get("points", "").split() for line in loss.iter(f"{SVG}polyline"))
    assert len(training) == 4
    assert len(validated) == 2
    heights = [float(point.split(",")[1]) for point in training]
    assert heights == sorted(heights)  # downwards is more: the loss falls
    # Ticks go from 10 to 40 and from 0.5 to 2, so the first point is in the upper left corner.
    assert training[0] == "56.0,32.0"
    assert [line.get("points") for line in accuracy.iter(f"{SVG}polyline")] == [
        "56.0,296.0 464.0,32.0"
    ]


def test_from_a_log(tmp_path):
    log = JsonLines(tmp_path / "log.jsonl")
    for event in TRAINING:
        log(event)
    log.close()
    plot(tmp_path / "log.jsonl", tmp_path / "a.svg")
    plot(TRAINING, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_text() == (tmp_path / "b.svg").read_text()


def test_names_are_escaped_and_one_point_is_enough(tmp_path):
    plot([validation(1, **{"<top&5>": 0.5})], tmp_path / "plot.svg")
    (panel,) = curves(tmp_path / "plot.svg")
    assert "<top&5>" in [text.text for text in panel.iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ["plot.png", "plot.pdf"])
def test_matplotlib(name, tmp_path):
    pytest.importorskip("matplotlib")
    plot(TRAINING, tmp_path / name)
    magic = {"plot.png": b"\x89PNG", "plot.pdf": b"%PDF"}[name]
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_matplotlib_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"sparknet\[plots\]"):
        plot(TRAINING, tmp_path / "plot.png")
    assert list(tmp_path.iterdir()) == []


def test_refusals(tmp_path):
    with pytest.raises(FileError, match=r"ends in \.svg"):
        plot(TRAINING, tmp_path / "plot.bmp")
    with pytest.raises(FileError, match="nothing to plot"):
        plot([START], tmp_path / "plot.svg")
    with pytest.raises(FileError, match=r"none.plot\.svg"):
        plot(TRAINING, tmp_path / "none" / "plot.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_loss_that_is_unknown_leaves_a_gap(tmp_path):
    plot([round_event(1), round_event(2, loss=None), round_event(3)], tmp_path / "plot.svg")
    (panel,) = curves(tmp_path / "plot.svg")
    (line,) = panel.iter(f"{SVG}polyline")
    assert len(line.get("points", "").split()) == 2


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0.13, 0.97, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (7, 7, [2, 4, 6, 8, 10, 12]),
        (-3, 2, [-3, -2, -1, 0, 1, 2]),
    ],
)
def test_ticks(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)
