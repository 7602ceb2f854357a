"""Prints tables of `sparknet.opencv` beside OpenCV 4 and 5, which it installs.

    python -m benchmarks.opencv FOLDER [files] [drawn] [exports] [speed]
    python -m benchmarks.opencv FOLDER --scripts SCRIPTS

FOLDER gets an environment for each OpenCV, and the packages from PyPI that hold models.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPENCV = {4: "opencv-python-headless<5", 5: "opencv-python-headless>=5"}
TABLES = ("files", "drawn", "exports", "speed")


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.opencv", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--scripts", type=Path, help="only these scripts: a folder of repositories")
    chosen, words = parser.parse_known_args()
    if unknown := set(chosen.tables) - set(TABLES):
        parser.error(f"no such table: {', '.join(sorted(unknown))}")
    folder = chosen.folder.resolve()
    pythons = {version: environment(folder, version) for version in OPENCV}
    status = 0
    tables = chosen.tables or TABLES
    if chosen.scripts:
        tables, words = ["scripts"], [str(chosen.scripts.resolve()), *words]
    for table in tables:
        call = [str(pythons[4]), "-m", f"benchmarks.opencv.{table}", str(folder), *words]
        more = {"OPENCV_5_PYTHON": str(pythons[5])}
        status |= subprocess.run(call, cwd=ROOT, env={**os.environ, **more}).returncode
    return status


def environment(folder: Path, version: int) -> Path:
    """Return the Python of an environment with an OpenCV, and this one's packages behind it."""
    place = folder / f"cv{version}"
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", OPENCV[version]], check=True)
    own = sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)})
    here = sysconfig.get_path("purelib")
    Path(own, "sparknet.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    return python


if __name__ == "__main__":
    sys.exit(main())
