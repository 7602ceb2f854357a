"""Measures whole jobs from Parquet to Parquet, beside other engines at their best.

    python -m benchmarks.jobs [--jobs mobilenet texts] [--rows 256] [--rounds 3]
        [--folder DIRECTORY] [--engines sparknet-float32 udf-onnxruntime …]
        [--python PATH] [--tasks 2] [--threads 1] [--master local-cluster[2,1,1024]]

Each engine has a process of its own for a job.  In each round the engines run in turn, every other
round in reverse.  The default table takes some 20 minutes on two cores.  The folder gets a line of
JSON in results.jsonl for each run, and a command that was cut short goes on after the last one.
An engine that fails has a row that says so, and is not tried again.

The Python of --python needs sparknet, PyTorch, onnxscript, onnxruntime, daft, ray[data], and what
`benchmarks.jobs.data` names.  A ratio is the other engine's seconds divided by ours in float32, in
the same round.  First row is the time from the process's start.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.jobs.data import JOBS
from benchmarks.peers.process import ROOT, Process, SideFailed

OURS = "sparknet-float32"
ENGINES = (
    *(OURS, "sparknet-bf16", "sparknet-int8", "udf-onnxruntime", "udf-torch", "pandas-torch"),
    *("daft-onnxruntime", "daft-torch", "ray-onnxruntime", "ray-torch"),
    *("ml-perceptron", "ml-xgboost"),
)
LIMIT = 300
"""Seconds that an engine may take to start, and for each run."""
HEADER = "| job | rows | engine | rows/s | CPU s | first row, s | MB | ratio | cosine |"
Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--rows", type=int, help="of each job, in place of its own number")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where data, nets and results are kept")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each task")
    parser.add_argument("--master", help="of Spark's sessions, in place of local slots")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (chosen.folder or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{HEADER}\n|{'---|' * (HEADER.count('|') - 1)}", flush=True)
        for name in chosen.jobs:
            for line in Contest(name, folder, chosen).measure():
                print(line, flush=True)


@dataclass
class Contest:
    """The engines in turn at one job."""

    name: str
    folder: Path
    chosen: argparse.Namespace

    def __post_init__(self) -> None:
        job = JOBS[self.name]
        self.rows = self.chosen.rows or job.rows
        self.engines = [one for one in self.chosen.engines if job.has(one)]
        self._results = self.folder / "results.jsonl"

    def measure(self) -> list[str]:
        """Return a row for each engine."""
        words = ["benchmarks.jobs.data", str(self.folder), self.name, str(self.rows)]
        subprocess.run(
            [self.chosen.python, "-m", *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
        with ExitStack() as stack:
            sides: dict[str, Side] = {}
            for number in range(self.chosen.rounds):
                for engine in self.engines[:: 1 if number % 2 == 0 else -1]:
                    answers = self.answers(engine)
                    if len(answers) > number or "error" in (answers or [{}])[-1]:
                        continue
                    if engine not in sides:
                        sides[engine] = stack.enter_context(Side(self, engine))
                    self._write(engine, sides[engine].run())
        return [self._line(engine) for engine in self.engines]

    def answers(self, engine: str) -> list[Figures]:
        """Return the figures of an engine's runs."""
        lines = self._results.read_text().splitlines() if self._results.exists() else []
        key = self._key(engine)
        return [one for one in map(json.loads, lines) if key.items() <= one.items()]

    def _key(self, engine: str) -> Figures:
        settings = {name: getattr(self.chosen, name) for name in ("tasks", "threads", "master")}
        return {"job": self.name, "rows": self.rows, "engine": engine, **settings}

    def _write(self, engine: str, answer: Figures) -> None:
        with self._results.open("a") as file:
            file.write(json.dumps(self._key(engine) | answer) + "\n")

    def _line(self, engine: str) -> str:
        answers, begin = self.answers(engine), f"| {self.name} | {self.rows:,} | {engine} |"
        failures = [one["error"] for one in answers if "error" in one]
        if failures or not answers:
            return f"{begin} failed | | | | | {(*failures, 'no run')[0].replace('|', '/')} |"
        middle = {name: median(one[name] for one in answers) for name in ("seconds", "cpu")}
        ours = [one for one in self.answers(OURS) if "error" not in one]
        ratios = [b["seconds"] / a["seconds"] for a, b in zip(ours, answers, strict=False)]
        ratio = f"{min(ratios):.2f}, **{median(ratios):.2f}**, {max(ratios):.2f}" if ratios else ""
        return (
            f"{begin} {self.rows / middle['seconds']:,.0f} | {middle['cpu']:.1f} | "
            f"{answers[0]['first']:.1f} | {max(one['memory'] for one in answers):,.0f} | "
            f"{'1' if engine == OURS else ratio} | {answers[0]['cosine']} |"
        )


class Side:
    """An engine in a process of its own, which starts with its first run."""

    def __init__(self, contest: Contest, engine: str) -> None:
        chosen, folder, name = contest.chosen, contest.folder, contest.name
        self._rows, self._ours = contest.rows, folder / f"{name}-{OURS}.out"
        self._is_other_model = engine.startswith("ml-")
        self._out = folder / f"{name}-{engine}.out"
        shutil.rmtree(self._out, ignore_errors=True)
        words = ["benchmarks.jobs.side", engine, name, str(folder)]
        words += [str(folder / f"{JOBS[name].column}-{contest.rows}"), str(self._out)]
        words += [f"--tasks={chosen.tasks}", f"--threads={chosen.threads}"]
        words += [f"--begin={time.time()}"]
        words += [] if chosen.master is None else [f"--master={chosen.master}"]
        log = folder / f"{name}-{engine}.log"
        self._process = Process(engine, chosen.python, chosen.threads, log, LIMIT, words)
        self._first: Figures = {}

    def __enter__(self) -> Side:
        self._process.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.__exit__(*failure)

    def run(self) -> Figures:
        """Return the figures of a run; at the first one also the agreement with our vectors."""
        try:
            if not self._first:
                self._first = {"first": self._process.ask({"do": "load"})["first"], "cosine": ""}
            figures = self._process.ask({"do": "run"})
            if not self._first["cosine"]:
                self._first["cosine"] = self._agreement()
        except SideFailed as failure:
            return {"error": str(failure)}
        return figures | self._first

    def _agreement(self) -> str:
        """Return the least cosine of a row's vector and ours."""
        theirs = read_vectors(self._out)
        if len(theirs) != self._rows:
            raise SideFailed(f"wrote {len(theirs)} rows of {self._rows}")
        if not self._ours.exists() or self._is_other_model:
            return "–"
        ours = read_vectors(self._ours)
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
        return f"{float(((ours * theirs).sum(1) / lengths).min()):.5f}"


def read_vectors(out: Path) -> Any:
    """Return the vectors in the order of their rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"id": pa.int64(), "vector": pa.list_(pa.float32())})
    tables = [pq.read_table(file) for file in out.rglob("*.parquet")]
    table = pa.concat_tables([one.cast(schema) for one in tables]).sort_by("id")
    return np.stack(table["vector"].to_numpy())


if __name__ == "__main__":
    main()
