"""docs/data.md: every kind of data and every name is on it."""

import re

from sparknet import loaders
from sparknet.loaders.opening import KINDS
from tests.guides import guide

GUIDE = guide("data.md")


def test_every_kind_and_every_name_is_there():
    assert sorted(re.findall(r"^\| `(\w+)`", GUIDE, re.MULTILINE)) == sorted(KINDS)
    for name in loaders.__all__:
        if name not in ("Column", "Records"):
            assert f"{name}(" in GUIDE, f"{name} is not told of"
