"""docs/dsl.md is true: its examples run, its table and its error sentences are real."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sparknet.dsl as dsl
from sparknet.errors import LayerError
from tests.dsl.nets import lenet
from tests.guides import examples, guide

GUIDE = guide("dsl.md")
ROWS = re.findall(r"^\| `(\w+\(.*?\))` \| `(layer .*?)` \|$", GUIDE, re.MULTILINE)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = examples("dsl.md")
    assert len(blocks) == 6
    monkeypatch.chdir(tmp_path)
    lenet().save("train_val.prototxt")
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    assert space["net"].summary() in GUIDE
    assert space["slower"].base_lr == pytest.approx(0.001)


@pytest.mark.parametrize(("written", "said"), ROWS)
def test_mistakes(written: str, said: str) -> None:
    with pytest.raises(LayerError) as caught:
        eval(written, {"Convolution": dsl.Convolution, "Pooling": dsl.Pooling})
    assert str(caught.value) == said


def test_there_are_mistakes() -> None:
    assert len(ROWS) == 3
