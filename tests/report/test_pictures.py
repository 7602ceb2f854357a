"""What stands where in a drawing, number by number, and what a page says of few runs."""

import importlib
import json
import re
from xml.etree import ElementTree

import pytest

from sparknet.errors import FileError
from sparknet.graph.boxes import drawing
from sparknet.graph.curves import svg
from sparknet.report import TensorBoard, charts, plot, report
from sparknet.report.charts import Curve, lines, stacks
from sparknet.report.page import document_sections
from tests.report.events import layers, round_event, validation

Parts = list[dict[str, str]]


def parsed(text: str, kind: str) -> Parts:
    """The attributes of all elements of a kind, and what stands in them."""
    found = ElementTree.fromstring(re.search("<svg.*</svg>", text, re.DOTALL).group())
    return [
        {**one.attrib, "said": "".join(one.itertext())}
        for one in found.iter()
        if one.tag.rpartition("}")[2] == kind
    ]


def where(parts: Parts) -> dict[str, tuple[float, float]]:
    return {one["said"]: (float(one["x"]), float(one["y"])) for one in parts}


# -- a chart ---------------------------------------------------------------------------------

CURVE = Curve("a", [(0, 0), (5, 1), (10, 4)], 1)


def test_a_curve_goes_from_corner_to_corner():
    drawn = lines("Loss", [CURVE], "round")
    [line] = parsed(drawn, "polyline")
    assert line["points"] == "62.0,210.0 254.0,160.5 446.0,12.0"
    assert line["class"] == "line c1"
    assert [(one["cx"], one["cy"]) for one in parsed(drawn, "circle")] == [
        ("62.0", "210.0"),
        ("254.0", "160.5"),
        ("446.0", "12.0"),
    ]
    assert parsed(drawn, "title")[1]["said"] == "a: 1 at 5 round"
    assert "legend" not in drawn


def test_each_tick_has_its_number_and_its_line():
    drawn = lines("Loss", [CURVE], "round")
    texts = parsed(drawn, "text")
    across = [(one["said"], float(one["x"])) for one in texts if one["y"] == "225.0"]
    assert across == [(str(2 * i), round(62 + 76.8 * i, 1)) for i in range(6)]
    down = [(one["said"], float(one["y"])) for one in texts if one["text-anchor"] == "end"]
    assert down == [(str(i), 214 - 49.5 * i) for i in range(5)]
    assert {one["x"] for one in texts if one["text-anchor"] == "end"} == {"56.0"}
    grid = [(one["x1"], one["x2"], float(one["y1"])) for one in parsed(drawn, "line")]
    assert grid == [("62", "446", 210 - 49.5 * i) for i in range(5)]
    assert where(texts)["round"] == (254.0, 244.0)


@pytest.mark.parametrize(
    ("count", "kept", "last"), [(600, 600, 599 / 600), (601, 302, 1), (1200, 601, 1199 / 1500)]
)
def test_a_long_curve_is_thinned_and_keeps_its_end(count, kept, last):
    [line] = parsed(lines("Loss", [Curve("a", [(i, i) for i in range(count)], 0)], ""), "polyline")
    points = line["points"].split()
    assert len(points) == kept
    assert points[0].startswith("62.0,")
    assert float(points[-1].split(",")[0]) == pytest.approx(62 + 384 * last, abs=0.06)


@pytest.mark.parametrize(("count", "dots"), [(60, 60), (61, 0)])
def test_few_points_are_marked(count, dots):
    drawn = lines("Loss", [Curve("a", [(i, i) for i in range(count)], 0)], "")
    assert len(parsed(drawn, "circle")) == dots


def test_bars_stand_on_each_other():
    bars = [("p", [1.0, 3.0]), ("q", [2.0, 0.0])]
    drawn = stacks("Seconds", ["one", "two"], bars, "worker", "s")
    boxes = [
        tuple(float(one[name]) for name in ("x", "width", "y", "height"))
        for one in parsed(drawn, "rect")
    ]
    assert boxes == [
        (73.5, 169.0, 160.5, 49.5),
        (73.5, 169.0, 12.0, 148.5),
        (265.5, 169.0, 111.0, 99.0),
    ]
    texts = where(parsed(drawn, "text"))
    assert (texts["p"], texts["q"], texts["worker"]) == ((158, 225), (350, 225), (254, 244))
    assert parsed(drawn, "title")[1]["said"] == "worker p: two 3 s"
    assert stacks("Seconds", ["one"], [("p", [0.0])], "worker", "s") == ""


@pytest.mark.parametrize(("count", "every"), [(8, 1), (9, 2), (17, 3)])
def test_many_bars_have_few_labels(count, every):
    bars = [(f"b{i}", [1.0]) for i in range(count)]
    texts = where(parsed(stacks("S", ["one"], bars, "", "s"), "text"))
    assert [name for name in texts if name.startswith("b")] == [
        f"b{i}" for i in range(0, count, every)
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [(9999, "9999"), (1e4, "10k"), (-2.5e5, "-250k"), (1e6, "1M"), (1e9, "1G"), (0.5, "0.5")],
)
def test_short_numbers(value, said):
    assert charts.short(value) == said


# -- a net -----------------------------------------------------------------------------------

NET = [
    {"name": "in", "type": "Input", "bottoms": [], "tops": ["x"]},
    {"name": "left", "type": "A", "bottoms": ["x"], "tops": ["l"], "parameters": 1200},
    {"name": "right", "type": "A", "bottoms": ["x"], "tops": ["r"]},
    {"name": "both", "type": "B", "bottoms": ["l", "r"], "tops": ["y"]},
]


def test_boxes_stand_in_rows_about_the_middle():
    drawn = drawing(NET)
    assert 'viewBox="0 0 342 190" width="342" height="190"' in drawn
    boxes = [(float(one["x"]), float(one["y"])) for one in parsed(drawn, "rect")]
    assert boxes == [(96, 22), (14, 78), (178, 78), (96, 134)]
    assert {(one["width"], one["height"]) for one in parsed(drawn, "rect")} == {("150", "34")}
    texts = [(one["said"], one["x"], one["y"]) for one in parsed(drawn, "text")]
    assert texts[2:4] == [("left", "89", "92"), ("A", "89", "106")]
    kinds = [one["class"] for one in parsed(drawn, "g")]
    assert kinds == ["layer source", "layer learns", "layer plain", "layer plain"]
    assert parsed(drawn, "title")[1]["said"] == "left (A), 1,200 parameters"


def test_edges_go_from_border_to_border():
    paths = [one["d"] for one in parsed(drawing(NET), "path")]
    assert paths == [
        "M171 56C171 67 89 67 89 78",
        "M171 56C171 67 253 67 253 78",
        "M89 112C89 123 171 123 171 134",
        "M253 112C253 123 171 123 171 134",
    ]


def test_a_shortcut_goes_around_what_it_skips():
    chain = [*NET[:2], {"name": "sum", "type": "B", "bottoms": ["l", "x"], "tops": ["y"]}]
    paths = [one["d"] for one in parsed(drawing(chain), "path")]
    assert paths[1:] == ["M89 56C199 56 199 134 89 134", "M89 112C89 123 89 123 89 134"]


@pytest.mark.parametrize(("length", "shown"), [(24, "x" * 24), (25, "x" * 23 + "…")])
def test_long_names_are_cut(length, shown):
    drawn = drawing([{"name": "x" * length, "type": "T", "bottoms": [], "tops": []}])
    assert parsed(drawn, "text")[0]["said"] == shown


# -- a plot ----------------------------------------------------------------------------------


def test_where_a_plots_words_stand(tmp_path):
    events = [round_event(10), round_event(20), validation(20, loss=1.0, accuracy=0.5)]
    plot(events, tmp_path / "p.svg")
    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    assert (root.get("width"), root.get("height")) == ("960", "340")
    first, second = (one for one in root if one.tag.endswith("}g"))
    assert [one.get("transform") for one in (first, second)] == ["translate(0)", "translate(480)"]
    texts = [
        {**one.attrib, "said": str(one.text)} for one in first.iter() if one.tag.endswith("}text")
    ]
    found = where(texts)
    assert found["loss"] == (240, 18)
    assert texts[1]["said"] == "iteration"
    assert (texts[1]["x"], texts[1]["y"]) == ("240.0", "332.0")
    assert (found["training"], found["validation"]) == ((382, 46), (382, 61))
    squares = [one.attrib for one in first.iter() if one.tag.endswith("}rect")]
    assert [(one["x"], one["y"]) for one in squares] == [("368", "38"), ("368", "53")]
    assert (found["100"], found["200"]) == ((56, 311), (464, 311))
    ends = [float(one["x"]) for one in texts if one["text-anchor"] == "end"]
    assert set(ends) == {50.0}
    grid = [one.attrib for one in first.iter() if one.tag.endswith("}line")]
    upright = [one for one in grid if one["x1"] == one["x2"]]
    assert {(one["y1"], one["y2"]) for one in upright} == {("32.0", "296.0")}
    level = [one for one in grid if one["y1"] == one["y2"]]
    assert {(one["x1"], one["x2"]) for one in level} == {("56.0", "464.0")}
    assert svg([]).startswith("<svg")


@pytest.mark.parametrize(("count", "marker"), [(49, "."), (50, "None")])
def test_what_matplotlib_is_given(count, marker, tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure
    made = []

    def kept(*args, **options):
        made.append(figure(*args, **options))
        return made[-1]

    module = importlib.import_module("sparknet.graph.curves")
    monkeypatch.setattr(module, "_figure", lambda kind: kept)
    plot(
        [*(round_event(n) for n in range(1, count + 1)), validation(1, loss=1.0)],
        tmp_path / "p.pdf",
    )
    [axes] = made[0].axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training", "validation"]
    assert str(axes.lines[0].get_marker()) == marker
    assert (axes.get_title(), axes.get_xlabel()) == ("loss", "iteration")


# -- a page ----------------------------------------------------------------------------------


def said(tmp_path, *events):
    text = "".join(json.dumps(one) + "\n" for one in events)
    (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
    report(tmp_path / "log.jsonl", out=tmp_path / "page.html")
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def a_round(number, **more):
    return {"event": "round", "round": number, "iteration": 5 * number, "samples": 40, **more}


def test_the_loss_of_training_is_a_curve_beside_that_of_validation(tmp_path):
    text = said(
        tmp_path,
        a_round(1, loss=4.0),
        a_round(2, loss=2.0),
        {"event": "validation", "iteration": 10, "metrics": {"loss": 3.0}},
    )
    assert '<i class="f0"></i>training' in text
    assert '<i class="f0 open"></i>validation' in text
    assert "training: 4 at 40" in text


def test_a_page_of_one_run_has_no_part_that_is_empty(tmp_path):
    text = said(tmp_path, a_round(1, loss=4.0), a_round(2, loss=2.0), layers(1))
    assert "Weights and gradients" in text
    assert "Classes" not in text
    assert "<h3>" not in text
    assert '<p class="sub">log' in text


@pytest.mark.parametrize("side", [1, 2])
def test_small_tables_of_classes_are_shown(side, tmp_path):
    counts = {f"confusion[{i}]": 1.0 for i in range(side * side)}
    text = said(tmp_path, a_round(1), {"event": "validation", "iteration": 5, "metrics": counts})
    assert f"<th>{side - 1}</th><td>{1 / side:.1%}</td>" in text
    assert f"<th>{side}</th><td>" not in text


def test_each_rounds_seconds_are_told_in_turn(tmp_path):
    parts = ("loading", "computing", "waiting", "communicating")
    rounds = [
        a_round(n, workers=[{f"seconds_{part}": n * (i + 1.0) for i, part in enumerate(parts)}])
        for n in (1, 2, 3)
    ]
    text = said(tmp_path, *rounds)
    told = re.findall(r"<title>round (\d): (\w+) ([\d.]+) seconds", text)
    assert told == [
        (str(n), part, f"{n * seconds:.4g}")
        for n in (1, 2, 3)
        for part, seconds in zip(parts, (1, 1, 3, 1), strict=True)
    ]


def test_a_documents_words_stand_above_its_tables():
    head = {"title": "T", "tables": [{"head": ["h"], "rows": [[0.25], [None], [7]]}]}
    content = {"event": "experiment", "parts": [{**head, "text": "a < b"}, head]}
    text = "".join(document_sections(content))
    assert text.count("<p>") == 1
    assert text.index("<p>a &lt; b</p>") < text.index("<th>h</th>")
    assert re.findall("<td>([^<]*)</td>", text) == ["0.25", "–", "7"] * 2


# -- TensorBoard -----------------------------------------------------------------------------


def test_a_log_folder_is_made_with_those_above_it(tmp_path):
    pytest.importorskip("tensorboard")
    for _ in range(2):
        TensorBoard(tmp_path / "a" / "b").close()
    assert list((tmp_path / "a" / "b").iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written: File exists"):
        TensorBoard(tmp_path / "file")
