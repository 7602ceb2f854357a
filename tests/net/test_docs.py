"""docs/net.md is true: its examples run, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path

from sparknet import Net, WeightCollection
from tests.guides import examples, guide, run_examples
from tests.net.nets import NET


def test_examples_run(tmp_path: Path) -> None:
    assert len(examples("net.md")) == 5
    done = run_examples("net.md", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_exists() -> None:
    net = Net(NET)
    for name in re.findall(r"`net\.(\w+)", guide("net.md")):
        assert hasattr(net, name), name
    for name in re.findall(r"`WeightCollection\.(\w+)", guide("net.md")):
        assert hasattr(WeightCollection, name), name
