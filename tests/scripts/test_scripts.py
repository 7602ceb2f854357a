"""pycaffe scripts of the year 2016, unchanged, under `sparknet run`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.goldens import ROOT

HERE = Path(__file__).parent
GUIDE = (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")

SAYS = {
    "learn_lenet": r"""
        \('conv1', \(50, 20, 24, 24\)\).*\('score', \(50, 10\)\), \('loss', \(\)\)\]
        \('fc1', \(100, 800\)\)
        first labels \[5. 8. 9. 5. 0. 0. 1. 7.\]
        loss 2.\d+ -> 0.[01]\d+
        test accuracy \[\S+ +(1\.|0\.9\d*) *\]""",
    "classify": r"""
        mean-subtracted values: .*110.0
        sunset is red 1.00
        meadow is green 1.00
        sea is blue 1.00
        oversampled \(3, 3\) \['red' 'green' 'blue'\]
        centre only \(3, 3\) \['red' 'green' 'blue'\]""",
    "net_surgery": r"""
        fc6 weights are \(32, 1152\) and biases are \(32,\)
        fc6-conv weights are \(32, 8, 12, 12\) and biases are \(32,\)
        map of predictions \(1, 10, 5, 9\)
        every place agrees with the classifier: True""",
    "deep_dream": r"""
        0 \(24, 20\) grows
        1 \(34, 28\) grows
        2 \(48, 40\) grows
        image \(48, 40, 3\)""",
    "style_transfer": r"""
        gradient agrees with differences: True
        shapes \(1, 32, 10, 7\) \(1, 10\)
        falls to a tenth: True
        a class again: \(1, 10\)""",
    "extract_features": r"""
        features \(50, 4, 4, 4\) float32
        50 features in HDF5 and LMDB, equal one by one""",
    "fine_tune": r"""
        ten digits: accuracy (1.00|0.9\d)
        frozen layer unchanged: True
        odd or even: accuracy (1.00|0.[89]\d)
        better than from scratch: True
        refused: layer 'fc8': parameter 0 .* shape \(10, 40\), the net's has shape \(2, 40\)""",
    "pyloss": r"""
        falls to a tenth: True
        the losses agree: True
        the weights agree: True""",
    "siamese": r"""
        \['ip1', 'feat', 'ip1_p', 'feat_p'\]
        both sides are the same: True
        falls to a fifth: True
        nearest centre (1.00|0.9\d)""",
    "lstm_sequence": r"""
        AdamSolver \[\(96, 8\), \(96,\), \(96, 24\)\]
        0 1.\d\d
        accuracy (1.00|0.9\d)""",
    "logreg": r"""
        1 1
        linear: accuracy 0.[78]\d
        hidden: accuracy 0.9\d""",
    "roidb_train": r"""
        Wrote snapshot to: frcnn_iter_50.caffemodel
        Wrote snapshot to: frcnn_iter_100.caffemodel
        (1.00|0.[6789]\d) of 106 regions""",
}
"""What each script says, line after line, other lines between them aside."""


def run(script: str, *words: str, cwd: Path) -> str:
    """What a script prints under `sparknet run`, in a folder of its own."""
    command = [sys.executable, "-m", "sparknet", "run", str(HERE / f"{script}.py"), *words]
    env = dict(
        os.environ, PYTHONPATH=str(ROOT), OMP_WAIT_POLICY="passive", PYTHONDONTWRITEBYTECODE="1"
    )
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=170)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", SAYS)
def test_script(script: str, tmp_path: Path) -> None:
    said = run(script, cwd=tmp_path)
    rest = said
    for line in SAYS[script].strip().splitlines():
        found = re.search(line.strip(), rest)
        assert found, f"{line.strip()!r} is not in what follows:\n{rest}\nof:\n{said}"
        rest = rest[found.end() :]


def test_the_guide_lists_every_script() -> None:
    listed = re.findall(r"^\| \[`(\w+)\.py`\]\(\.\./tests/scripts/(\w+)\.py\) \|", GUIDE, re.M)
    assert {name for name, _ in listed} == {*SAYS, "mnist"}
    assert all(name == target and (HERE / f"{name}.py").is_file() for name, target in listed)


@pytest.mark.parametrize("path", sorted(HERE.glob("[!t_]*.py")), ids=lambda path: str(path.stem))
def test_scripts_know_nothing_of_sparknet(path: Path) -> None:
    assert "sparknet" not in path.read_text(encoding="utf-8")
