"""python -m benchmarks.peers: ours, PyTorch, Caffe, and for inference OpenVINO and ONNX Runtime,
in turn, over nine nets."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.peers import table
from benchmarks.peers.contests import CONTESTS, Contest
from benchmarks.peers.match import VARIANTS, Match, Result, Rules
from benchmarks.peers.precision import precisions
from benchmarks.peers.process import SideFailed, can_import, import_cost

MODES = ("train", "inference")
PRECISIONS = ("float32", "bf16", "int8")
PEERS = ("torch", "caffe", "openvino", "onnxruntime")
OURS = ("import sparknet", "import sparknet.caffe")


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument(
        "--precisions",
        nargs="+",
        choices=PRECISIONS,
        help="of ours; all that the processor has by default",
    )
    parser.add_argument("--batch", type=int, help="of all nets, such as 1; else each has its own")
    parser.add_argument(
        "--peers", nargs="+", choices=PEERS, default=list(PEERS), help="those that may run"
    )
    parser.add_argument("--rounds", type=int, default=7, help="turns of each side (7)")
    parser.add_argument(
        "--variants", nargs="+", choices=VARIANTS, help="of PyTorch; the fastest one competes"
    )
    parser.add_argument("--quick", action="store_true", help="short turns, no torch.compile")
    parser.add_argument("--threads", type=int, default=_processors())
    parser.add_argument("--json", action="store_true", help="print JSON, not tables")
    parser.add_argument(
        "--peer-python",
        default=sys.executable,
        metavar="PATH",
        help="the Python that has the peers, if they are installed elsewhere",
    )
    chosen = parser.parse_args(words)
    chosen.precisions = [
        precision for precision in precisions() if precision in (chosen.precisions or PRECISIONS)
    ]
    if min(chosen.rounds, chosen.threads, 1 if chosen.batch is None else chosen.batch) < 1:
        parser.error("--rounds, --threads and --batch are at least 1")
    return chosen


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main(words: Sequence[str] | None = None) -> int:
    chosen = arguments(words)
    pythons = {"sparknet": sys.executable}
    pythons |= {
        name: chosen.peer_python for name in chosen.peers if can_import(chosen.peer_python, name)
    }
    if len(pythons) == 1:
        _say("PyTorch is not installed (pip install 'sparknet[bench]'): sparknet runs alone.")
    log = Path(tempfile.mkdtemp(prefix="peers-")) / "log"
    variants = chosen.variants or (VARIANTS[:2] if chosen.quick else VARIANTS)
    seconds = 0.2 if chosen.quick else 1.5
    rules = Rules(chosen.rounds, seconds, chosen.threads, variants, 1200, log)
    costs = _costs(pythons, 2 if chosen.quick else 5)
    contests = [CONTESTS[name] for name in chosen.models]
    if chosen.batch:
        contests = [replace(contest, batch=chosen.batch) for contest in contests]
    results = _play(rules, contests, chosen.modes, chosen.precisions, pythons)
    facts = {
        "threads": chosen.threads,
        "rounds": chosen.rounds,
        "processor": _processor(),
        "variants": list(variants) if "torch" in pythons else [],
    }
    found = table.as_dict(results, costs, facts)
    print(json.dumps(found, indent=1) if chosen.json else table.as_text(found))
    trained = len([one for one in chosen.precisions if one != "int8"])
    asked = sum(trained if mode == "train" else len(chosen.precisions) for mode in chosen.modes)
    return 0 if len(results) >= len(chosen.models) * asked else 1


def _play(
    rules: Rules,
    contests: Sequence[Contest],
    modes: Sequence[str],
    wanted: Sequence[str],
    pythons: dict[str, str],
) -> list[Result]:
    """Run every match; one that cannot run is reported and left out."""
    results: list[Result] = []
    for contest in contests:
        for mode in modes:
            for precision in wanted:
                if mode == "train" and precision == "int8":
                    continue
                try:
                    sides = {
                        name: python
                        for name, python in pythons.items()
                        if _runs(name, mode, precision)
                    }
                    result = Match(rules, contest, mode, precision, sides).play()
                except SideFailed as failure:
                    _say(f"{contest.name} {mode} {precision} could not be run: {failure}")
                    continue
                results.append(result)
    return results


def _runs(library: str, mode: str, precision: str) -> bool:
    """Whether the library has this contest: not all train, and not all have all precisions."""
    if mode == "train":
        return precision != "int8" and library not in ("openvino", "onnxruntime")
    return (library, precision) not in (("torch", "int8"), ("onnxruntime", "bf16"))


def _costs(pythons: dict[str, str], rounds: int) -> table.Costs:
    statements = [(pythons["sparknet"], statement) for statement in (*OURS, "import numpy")]
    statements += [
        (python, f"import {name}") for name, python in pythons.items() if name != "sparknet"
    ]
    costs: table.Costs = {}
    for python, statement in statements:
        try:
            costs[statement] = import_cost(python, statement, rounds)
        except SideFailed as failure:
            _say(str(failure))
    return costs


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
