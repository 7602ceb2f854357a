"""Public scripts that call readNetFromCaffe, with OpenCV 4 and with OpenCV 5 and `install()`.

    python -m benchmarks.opencv FOLDER --scripts SCRIPTS [WORD ...]

SCRIPTS is a folder of fetched repositories; a WORD of a path picks scripts.  Cameras, windows and
arguments are stood in for; files of nets are searched by name, and absent weights are drawn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.opencv.files import places

LIMIT = 1e-5
SECONDS = 600


def main() -> int:
    folder, place, *words = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    work = folder / "scripts"
    pythons = {4: sys.executable, 5: os.environ["OPENCV_5_PYTHON"]}
    for python in pythons.values():
        packages = ["imutils", "scikit-image", "matplotlib", "pillow", "scipy"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    ran = same = count = 0
    print("| script | nets | ran | same as OpenCV 4 | remark |\n|---|---|---|---|---|", flush=True)
    for script in sorted(place.rglob("*.py")):
        name = str(script.relative_to(place))
        text = script.read_text(errors="replace")
        if "readNetFromCaffe" not in text and "dnn.readNet(" not in text:
            continue
        if words and not any(word in name for word in words):
            continue
        count += 1
        before, today = (run(python, script, work, place) for python in pythons.values())
        has_run = bool(today.outputs) and not today.error
        equal = bool(today.outputs) and alike(before.outputs, today.outputs)
        ran, same = ran + has_run, same + (has_run and equal)
        remark = "" if has_run and equal else f"4: {before.error}; 5: {today.error}"
        cells = (name, "; ".join(today.nets), has_run, equal, remark)
        print("|", " | ".join(map(str, cells)), "|", flush=True)
    print(f"\n{count} scripts: {ran} ran a net to their end, {same} with OpenCV 4's outputs")
    return 0


@dataclass
class Outcome:
    """What a script's nets computed, what they were, and what ended the script."""

    outputs: list[Any]
    nets: list[str]
    error: str


def run(python: str, script: Path, work: Path, place: Path) -> Outcome:
    work.mkdir(parents=True, exist_ok=True)
    out = work / "outputs.npz"
    out.unlink(missing_ok=True)
    words = [python, "-m", "benchmarks.opencv.script_side", str(script), str(out), str(place)]
    path = os.pathsep.join([str(Path.cwd()), str(script.parent)])
    env = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "SCRIPT_WORK": str(work)}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, env=env)
        last = (done.stderr.strip().splitlines() or ["?"])[-1] if done.returncode else ""
    except subprocess.TimeoutExpired:
        last = f"more than {SECONDS} s"
    if not out.exists():
        return Outcome([], [], last[:110])
    with np.load(out) as arrays:
        order = range(len(arrays.files) - 1)
        outputs = [arrays[f"arr_{number}"] for number in order]
        return Outcome(outputs, arrays["nets"].tolist(), last[:110])


def alike(first: list[Any], second: list[Any]) -> bool:
    if len(first) != len(second):
        return False
    for a, b in zip(first, second, strict=True):
        if a.shape != b.shape:
            return False
        if a.shape[-1] == 7:
            a, b = (array[0, 0][np.lexsort(places(array))] for array in (a, b))
        limit = LIMIT * max(1, np.abs(a).max(initial=0))
        if not np.allclose(a, b, rtol=0, atol=limit):
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
