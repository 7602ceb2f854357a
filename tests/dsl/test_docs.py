"""docs/dsl.md: its table and its error sentences are real."""

import re

import pytest

import sparknet.dsl as dsl
from sparknet.errors import LayerError
from tests.dsl.nets import lenet
from tests.guides import guide

GUIDE = guide("dsl.md")
ROWS = re.findall(r"^\| `(\w+\(.*?\))` \| `(layer .*?)` \|$", GUIDE, re.MULTILINE)


def test_the_table():
    assert lenet().summary() in GUIDE


@pytest.mark.parametrize(("written", "said"), ROWS)
def test_mistakes(written, said):
    with pytest.raises(LayerError) as caught:
        eval(written, {"Convolution": dsl.Convolution, "Pooling": dsl.Pooling})
    assert str(caught.value) == said


def test_there_are_mistakes():
    assert len(ROWS) == 3
