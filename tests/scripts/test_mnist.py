"""LeNet by its solver file on handwritten digits: how well it does, and that it does so again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.digits import TRAINED, digits
from tests.goldens import ROOT
from tests.scripts.test_scripts import run


def convert(out: Path, *words: str) -> None:
    command = [sys.executable, "-m", "sparknet", "convert", "mnist", *map(str, digits()), str(out)]
    environment = {"PYTHONPATH": str(ROOT)}
    subprocess.run([*command, *words], check=True, env=environment, capture_output=True)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("mnist")
def test_lenet_learns_handwritten_digits_and_does_so_again(tmp_path: Path) -> None:
    train, test = tmp_path / "train_lmdb", tmp_path / "test_lmdb"
    convert(train, "--take", str(TRAINED))
    convert(test, "--skip", str(TRAINED))
    solver = ROOT / "models" / "lenet" / "solver.prototxt"
    weights = []
    for name in ("first.npz", "second.npz"):
        said = run("mnist", str(solver), str(train), str(test), name, cwd=tmp_path)
        found = re.search(r"iteration 1500: accuracy (\d\.\d+)", said)
        assert found, said
        print(found.group(0))
        assert float(found.group(1)) > 0.975
        weights.append(dict(np.load(tmp_path / name)))
    assert set(weights[0]) == {f"{n}_{i}" for n in ("conv1", "conv2", "ip1", "ip2") for i in (0, 1)}
    for name, values in weights[0].items():
        np.testing.assert_array_equal(values, weights[1][name], err_msg=name)
