"""The example without Spark: it learns, and what it leaves is what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet.net import Net
from sparknet.report import History

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_demo(tmp_path):
    pytest.importorskip("sklearn")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "digits.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    (percent,) = re.findall(r"accuracy ([0-9.]+)% on 360 digits", done.stdout)
    assert float(percent) >= 97
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "digits.caffemodel",
        "digits.jsonl",
        "digits.svg",
    ]
    history = History.read(tmp_path / "digits.jsonl")
    assert next(e for e in history.events if e["event"] == "start")["workers"] == 2
    assert history.metrics["accuracy"][1][-1] == pytest.approx(float(percent) / 100, abs=1e-4)
    assert history.loss[1][-1] < 0.1 * history.loss[1][0]
    assert (tmp_path / "digits.svg").read_text().startswith("<svg")
    # The model alone is as right as it was said to be.
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import digits
    finally:
        sys.path.pop(0)
    net = Net(digits.net, tmp_path / "digits.caffemodel")
    net.set_validation_data(digits.digits()[1])
    assert net.test()["accuracy"] == pytest.approx(float(percent) / 100, abs=1e-4)
