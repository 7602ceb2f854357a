"""LeNet by its solver file on handwritten digits: how well it does, and that it does so again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.goldens import ROOT, SHARED
from tests.scripts.test_scripts import run

DIGITS = SHARED / "data" / "mnist10k"
TRAINED_ON, TESTED_ON = 8500, 1500


def convert(out: Path, *words: str) -> None:
    files = [str(DIGITS / f"t10k-{what}.gz") for what in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    command = [sys.executable, "-m", "sparknet", "convert", "mnist", *files, str(out), *words]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(ROOT)}, capture_output=True)


@pytest.mark.slow
@pytest.mark.skipif(not DIGITS.is_dir(), reason=f"no handwritten digits: {DIGITS} is absent")
def test_lenet_learns_handwritten_digits_and_does_so_again(tmp_path: Path) -> None:
    train, test = tmp_path / "train_lmdb", tmp_path / "test_lmdb"
    convert(train, "--take", str(TRAINED_ON))
    convert(test, "--skip", str(TRAINED_ON), "--take", str(TESTED_ON))
    solver = ROOT / "sparknet" / "models" / "lenet" / "solver.prototxt"
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
