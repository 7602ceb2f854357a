"""The data that the applications draw or find."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    yield
    for name in ("scenes", "nowcast", "languages"):
        sys.modules.pop(name, None)


def test_boxes_are_those_of_the_masks() -> None:
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


def test_films_move() -> None:
    pytest.importorskip("pyspark")
    from nowcast import film

    pictures = film(np.random.default_rng(0)).astype(float)
    assert pictures.shape == (10, 32, 32)
    near = abs(pictures[1:] - pictures[:-1]).mean()
    far = abs(pictures[5:] - pictures[:-5]).mean()
    assert 0 < near < far


def test_translations_are_read() -> None:
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
