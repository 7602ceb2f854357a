"""The data that the applications draw or find."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    yield
    for name in ("scenes", "nowcast", "languages", "regions", "trials"):
        sys.modules.pop(name, None)


def test_boxes_are_those_of_the_masks():
    pytest.importorskip("PIL")
    from scenes import MOST, NAMES, scene

    for seed in range(40):
        picture, classes, boxes = scene(np.random.default_rng(seed), 96)
        assert picture.shape == (96, 96, 3)
        assert 1 <= len(boxes) <= MOST
        assert {label for label, *_ in boxes} == set(np.unique(classes)) - {0}
        for label, *corners in boxes:
            left, top, right, bottom = np.rint(np.array(corners) * 96).astype(int)
            inside = classes[top:bottom, left:right]
            assert set(np.unique(inside)) <= {0, label}
            rows, columns = np.nonzero(inside == label)
            assert (rows.min(), columns.min()) == (0, 0)
            assert (rows.max() + 1, columns.max() + 1) == inside.shape
            assert 0 < label < len(NAMES)


def test_a_threshold_and_outlines_find_shapes():
    """The means of a hand-made scene, and those of a finder of one's own making."""
    pytest.importorskip("PIL")
    pytest.importorskip("sklearn")
    from regions import Finder, mean_iou, mean_precision, overlap, regions

    picture = np.full((40, 40, 3), 50, np.uint8)
    picture[5:15, 20:30] = 200, 60, 60
    picture[30:38, 3:9] = 60, 20, 90
    assert [(at[0].start, at[1].stop, inside.sum()) for at, inside in regions(picture)] == [
        (5, 30, 100),
        (30, 9, 48),
    ]
    assert overlap((0, 0, 0.4, 0.2), (0.2, 0, 0.6, 0.2)) == pytest.approx(1 / 3)
    finder = Finder(range(60), 64)
    assert 0.8 < mean_iou(finder, range(100, 130)) < 1
    assert 0.8 < mean_precision(finder, range(100, 130)) <= 1


def test_films_move():
    pytest.importorskip("pyspark")
    from nowcast import film

    pictures = film(np.random.default_rng(0)).astype(float)
    assert pictures.shape == (10, 32, 32)
    near = abs(pictures[1:] - pictures[:-1]).mean()
    far = abs(pictures[5:] - pictures[:-5]).mean()
    assert 0 < near < far


def test_translations_are_read():
    pytest.importorskip("pyspark")
    from languages import messages

    catalogue = """
msgid ""
msgstr ""
"Language: xx\\n"

#: place
msgid "Save"
msgstr "Spara"

#, fuzzy
msgid "Delete"
msgstr "Radera"

msgid "%(n)d row"
msgid_plural "%(n)d rows"
msgstr[0] "%(n)d rad "
"till"
msgstr[1] "%(n)d rader"

msgid "Nothing"
msgstr ""
"""
    assert list(messages(catalogue)) == ["Spara", "%(n)d rad till", ""]


def test_a_row_has_the_mean_and_its_standard_error(capsys):
    from trials import head, row

    head("accuracy", "loss")
    assert row("the net", [[0.8, 2.0], [0.9, 2.0], [1.0, 5.0]], ".2f") == pytest.approx([0.9, 3.0])
    assert row("trees", [0.5]) == [0.5]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    # The deviations 0.1 and sqrt(3), each over the root of three.
    assert lines[1] == ["the", "net", "0.90", "±", "0.06", "3.00", "±", "1.00"]
    assert lines[2] == ["trees", "50.0%"]


def test_a_difference_is_told_in_pairs_of_a_seed(capsys):
    """Differences of 3, 4 and 5 points: a mean of 4, a deviation of 1, t = 4 * sqrt(3) > 4.3."""
    from trials import against

    assert against([0.1, 0.9, 0.5], [0.13, 0.94, 0.55]) == "higher"
    assert "4.00 ± 0.58 points, higher" in capsys.readouterr().out
    assert against([0.1, 0.9, 0.5], [0.13, 0.89, 0.55], scale=1) == "no difference seen"
    assert against([0.1], [0.9]) == "one run says nothing of it"


def test_the_net_of_forecasts_begins_as_the_linear_regression():
    """Its convolution computes what scikit-learn's regression on the same pixels does."""
    pytest.importorskip("pyspark")
    linear_model = pytest.importorskip("sklearn.linear_model")
    from nowcast import (
        AROUND,
        BATCH,
        SEEN,
        SIDE,
        begun,
        film,
        forecaster,
        regression,
        straight_on,
    )

    from sparknet.net import Net

    films = np.stack([film(np.random.default_rng(number)) for number in range(BATCH)])
    seen, future = np.split(films.astype(np.float32) / 255, [SEEN], 1)
    weights, biases = regression(seen, future)
    rows, expected, edge = [], [], (AROUND // 2, AROUND // 2)
    for number, one in enumerate(seen):
        wide = np.pad(one, ((0, 0), edge, edge))
        for y in range(number % 4, SIDE, 4):
            for x in range(SIDE):
                rows.append(wide[:, y : y + AROUND, x : x + AROUND].ravel())
                expected.append(future[number, :, y, x])
    asked = linear_model.Ridge(alpha=0.1).fit(rows, expected).predict(rows[:SIDE])
    forecasts = straight_on(seen, weights, biases)
    assert forecasts[0, :, 0] == pytest.approx(asked.T, abs=0.005)
    net = Net(forecaster())
    net.set_weights(begun(weights, biases))
    inputs = {"seen": films[:, :SEEN], "next": films[:, SEEN:]}
    assert net.forward(inputs, ["linear"])["linear"] == pytest.approx(forecasts, abs=1e-4)


def test_runs_of_letters_tell_languages_that_words_do_not():
    pytest.importorskip("pyspark")
    pytest.importorskip("sklearn")
    from languages import plain

    learned = [("mostrare salvare", 0), ("zeigen sichern", 1)] * 4
    told = plain(learned, [("cercare", 0), ("suchen", 1)])
    assert told == {"words, logistic regression": 0.5, "runs of letters, linear SVM": 1.0}
