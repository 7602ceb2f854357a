"""Draws graphs and holds their nets against onnxruntime: python -m tests.onnx --seconds 60

A finding is a line that names the seed and the number of nodes; `--case SEED NODES` repeats it.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random, randrange

from tests.onnx.random_graphs import Drawing
from tests.onnx.test_random_graphs import wrong

MOST_NODES = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=randrange(1 << 32))
    parser.add_argument("--case", type=int, nargs=2, metavar=("SEED", "NODES"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.case:
        return int(bool(outcome(*options.case) == "wrong"))
    print(f"drawing graphs for {options.seconds:g} s, seed {options.seed}", flush=True)
    counts, random = Counter[str](), Random(options.seed)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        counts[outcome(random.randrange(1 << 32), random.randint(1, MOST_NODES))] += 1
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return int(counts["wrong"] > 0)


def outcome(seed: int, nodes: int) -> str:
    drawing = Drawing(Random(seed), nodes)
    if not drawing.nodes:
        return "empty"
    with tempfile.TemporaryDirectory() as folder:
        found = wrong(drawing, Path(folder))
    if found:
        print(f"wrong: --case {seed} {nodes}: {', '.join(found)}", flush=True)
    return "refused" if found is None else "wrong" if found else "right"


if __name__ == "__main__":
    sys.exit(main())
