"""python -m benchmarks.modern: today's models beside ONNX Runtime and OpenVINO, in turn.

Ratios are the peer's time by ours, medians of the rounds, above 1 where sparknet is faster.
Closeness is the least cosine of a record's outputs with those of ONNX Runtime in float32.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.modern.models import MODELS
from benchmarks.peers.__main__ import PRECISIONS, _processors
from benchmarks.peers.precision import precisions
from benchmarks.peers.process import ROOT, Process, SideFailed, can_import

PEERS = ("onnxruntime", "openvino")
EXPORTERS = ("torch", "torchvision", "transformers", "onnx")
HEAD = (
    "| model, batch | numbers | sparknet | closeness | ONNX Runtime | ratio | OpenVINO | ratio |\n"
    "|---|---|---|---|---|---|---|---|"
)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.modern", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--batch", type=int, help="of all models, such as 1; else each has its own")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--threads", type=int, default=_processors())
    parser.add_argument("--folder", type=Path, help="where exported models are kept")
    parser.add_argument(
        "--export-python", default=sys.executable, metavar="PATH", help="the Python that exports"
    )
    chosen = parser.parse_args(words)
    unknown = [name for name in chosen.models if name not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}, only {', '.join(MODELS)}")
    peers = [name for name in chosen.peers if can_import(sys.executable, name)]
    for name in set(chosen.peers) - set(peers):
        _say(f"{name} is not installed (pip install 'sparknet[bench]'): it has no column.")
    with tempfile.TemporaryDirectory() as made:
        folder = chosen.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        print(HEAD, flush=True)
        for name in chosen.models or MODELS:
            batch = chosen.batch or MODELS[name].batch
            path = _exported(folder, name, batch, chosen.export_python)
            if path is None:
                return 1
            for precision in [one for one in chosen.precisions if one in precisions()]:
                rows.append(_row(path, precision, peers, chosen))
                print(rows[-1]["text"], flush=True)
    print(means(rows))
    return 0


def _exported(folder: Path, name: str, batch: int, python: str) -> Path | None:
    path = folder / f"{name}-{batch}.onnx"
    if path.with_suffix(".npz").exists():
        return path
    missing = [one for one in EXPORTERS if not can_import(python, one)]
    if missing:
        _say(
            f"{python} has no {missing[0]}, with which models are exported: "
            "pip install 'sparknet[bench]'."
        )
        return None
    words = [
        python,
        "-W",
        "ignore",
        "-m",
        "benchmarks.modern.models",
        str(folder),
        name,
        str(batch),
    ]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        _say(f"{name} was not exported: {done.stderr.strip().splitlines()[-1]}")
        return None
    return path


def _row(path: Path, precision: str, peers: Sequence[str], chosen: Any) -> dict[str, Any]:
    """The times of one model, side by side."""
    times: dict[str, list[float]] = {}
    closeness, failures = float("nan"), {}
    with ExitStack() as stack:
        sides: dict[str, tuple[Process, int]] = {}
        for library in ("sparknet", *peers):
            if (library, precision) == ("onnxruntime", "bf16"):
                continue
            try:
                process, ms = _opened(stack, library, precision, path, chosen)
            except SideFailed as failure:
                failures[library] = str(failure)
                _say(str(failure))
                continue
            sides[library] = process, min(max(round(chosen.seconds * 1e3 / ms), 3), 500)
        if "sparknet" in sides:
            closeness = _closeness(path, precision, chosen, stack)
        for _ in range(chosen.rounds):
            for library, (process, steps) in sides.items():
                found = process.ask({"do": "run", "steps": steps})
                times.setdefault(library, []).append(median(found["ms"]))
    return {
        "times": times,
        "text": _line(path, precision, times, closeness),
        "precision": precision,
    }


def _opened(
    stack: ExitStack, library: str, precision: str, path: Path, chosen: Any
) -> tuple[Process, float]:
    """A side that has run once, and its milliseconds a step."""
    module = ["benchmarks.modern.side", library]
    log_file = path.parent / "log"
    process = stack.enter_context(
        Process(library, sys.executable, chosen.threads, log_file, 600, module)
    )
    output = str(_output(path, library, precision))
    process.ask({"do": "open", "path": str(path), "precision": precision, "output": output})
    return process, median(process.ask({"do": "run", "steps": 3})["ms"])


def _output(path: Path, library: str, precision: str) -> Path:
    return path.with_name(f"{path.stem}-{library}-{precision}.npy")


def _closeness(path: Path, precision: str, chosen: Any, stack: ExitStack) -> float:
    """Of our outputs with ONNX Runtime's in float32; with our own where that is not installed."""
    reference = "onnxruntime" if "onnxruntime" in chosen.peers else "sparknet"
    if not can_import(sys.executable, reference):
        reference = "sparknet"
    exact = _output(path, reference, "float32")
    if not exact.exists():
        with ExitStack() as own:
            _opened(own, reference, "float32", path, chosen)
    return cosine(np.load(_output(path, "sparknet", precision)), np.load(exact))


def cosine(ours: Any, exact: Any) -> float:
    """The least cosine of two records."""
    a, b = (x.reshape(len(x), -1).astype(np.float64) for x in (ours, exact))
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(np.min(np.sum(a * b, axis=1) / norms))


def _line(path: Path, precision: str, times: dict[str, list[float]], closeness: float) -> str:
    ours = times.get("sparknet")
    cells = [path.stem.replace("-", ", "), precision]
    cells += [f"{median(ours):.1f}", f"{closeness:.5f}"] if ours else ["", ""]
    for library in PEERS:
        peer = times.get(library)
        ratios = [their / own for their, own in zip(peer or [], ours or [], strict=False)]
        cells.append(f"{median(peer):.1f}" if peer else "")
        spread = f"{min(ratios):.2f}, **{median(ratios):.2f}**, {max(ratios):.2f}" if ratios else ""
        cells.append(spread)
    return f"| {' | '.join(cells)} |"


def means(rows: Sequence[dict[str, Any]]) -> str:
    """The geometric means of the ratios against each peer, and against the fastest of each row."""
    lines = []
    for precision in PRECISIONS:
        found: dict[str, list[float]] = {}
        for row in [one for one in rows if one["precision"] == precision]:
            times = row["times"]
            ratios = {
                library: median(
                    their / own for their, own in zip(peer, times["sparknet"], strict=True)
                )
                for library, peer in times.items()
                if library != "sparknet" and "sparknet" in times
            }
            for library, ratio in ratios.items():
                found.setdefault(library, []).append(ratio)
            if ratios:
                found.setdefault("the fastest peer", []).append(min(ratios.values()))
        lines += [
            f"{precision}, geometric mean against {library}: {_mean(ratios):.2f} of {len(ratios)}, "
            f"{sum(one >= 1 for one in ratios)} at 1.0 or more"
            for library, ratios in found.items()
        ]
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
