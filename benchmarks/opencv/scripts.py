"""Public scripts that call readNetFromCaffe, with OpenCV 4 and with OpenCV 5 and `install()`.

    python -m benchmarks.opencv FOLDER --scripts SCRIPTS

SCRIPTS is a folder of fetched repositories.  Cameras, windows and arguments are stood in for; the
nets' files are looked for by name, and weights that are nowhere are drawn and written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.opencv.files import places

LIMIT = 1e-5
SECONDS = 100


def main() -> int:
    folder, place = Path(sys.argv[1]), Path(sys.argv[2])
    work = folder / "scripts"
    pythons = {4: sys.executable, 5: os.environ["OPENCV_5_PYTHON"]}
    for python in pythons.values():
        wanted = ["imutils", "scikit-learn", "matplotlib", "pillow", "scipy"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
    ran = same = count = 0
    print("| script | ran | same as OpenCV 4 | remark |\n|---|---|---|---|", flush=True)
    for script in sorted(place.rglob("*.py")):
        text = script.read_text(errors="replace")
        if "readNetFromCaffe" not in text and "dnn.readNet(" not in text:
            continue
        count += 1
        results = {v: run(python, script, work, place) for v, python in pythons.items()}
        calls, words = results[5]
        equal = bool(calls) and alike(results[4][0], calls)
        ran, same = ran + bool(calls), same + equal
        remark = "" if equal else f"4: {results[4][1]}; 5: {words}"
        name = script.relative_to(place)
        print(f"| {name} | {bool(calls)} | {equal} | {remark} |", flush=True)
    print(f"\n{count} scripts: {ran} ran a net, {same} with OpenCV 4's outputs")
    return 0


def run(python: str, script: Path, work: Path, place: Path) -> tuple[list[Any], str]:
    """Return what a script's nets computed, and its last words."""
    work.mkdir(parents=True, exist_ok=True)
    out = work / "outputs.npz"
    out.unlink(missing_ok=True)
    words = [python, "-m", "benchmarks.opencv.script_side", str(script), str(out), str(place)]
    path = os.pathsep.join([str(Path.cwd()), str(script.parent)])
    env = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "SCRIPT_WORK": str(work)}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, env=env)
        last = (done.stderr.strip().splitlines() or [""])[-1] if done.returncode else ""
    except subprocess.TimeoutExpired:
        last = f"more than {SECONDS} s"
    if not out.exists():
        return [], last[:110]
    with np.load(out) as arrays:
        return [arrays[name] for name in json.loads(str(arrays["order"]))], last[:110]


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
