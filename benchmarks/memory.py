"""Compares the memory of nets with what their values alone need.

Each net runs three passes in a process of its own:
    python -m benchmarks.memory
The floor is every blob once, its gradient where one flows, the parameters, their
gradients and the solver's history. Rows, layouts and scratch are the engine's memory:
row-major blobs, blobs and parameters in oneDNN's layouts, and temporary memory.  Pages are the most
memory in use at once, apart from temporary memory and values that layers store.  Process is the
largest resident size, less the size before the net was made.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

from benchmarks.peers.contests import CONTESTS, Contest
from benchmarks.peers.process import ROOT

NETS = ("lenet", "caffenet", "googlenet", "resnet50", "vgg16", "mobilenet")
MODES = ("train-keep", "train", "test-keep", "test")
"""Training and the test phase, with all blobs stored or sharing memory."""
COLUMNS = ("parameters", "floor", "rows", "layouts", "scratch", "pages", "process")
LOOKING = frozenset({"Split", "Reshape", "Flatten"})
"""Layers whose tops share their bottom's values."""


def floor(net: Any, train: bool) -> dict[str, int]:
    """The least bytes of an engine that stores every blob."""
    graph = net.graph
    values = dict(zip(graph.blob_names, map(size, graph.blob_shapes), strict=True))
    data = dict(values)
    gradients: dict[str, int] = {}
    for node in graph.nodes:
        if node.type in LOOKING:
            data.update(dict.fromkeys(node.tops, 0))
        if train and node.needs_backward:
            gradients.update({name: values[name] for name in node.tops})
    parameters = net.flat_params.nbytes
    return {
        "parameters": parameters,
        "floor": sum(data.values()) + sum(gradients.values()) + parameters * (3 if train else 1),
    }


def size(shape: tuple[int, ...]) -> int:
    count = 4
    for one in shape:
        count *= one
    return count


def measure(contest: Contest, mode: str, passes: int = 3) -> dict[str, int]:
    """Measure a net; runs in the child process."""
    from benchmarks.peers.nets import inference_net, training_solver
    from benchmarks.peers.ours import fill
    from sparknet.caffe import Net
    from sparknet.caffe.solvers import SGDSolver

    phase, _, kept = mode.partition("-")
    description: Any = (training_solver if phase == "train" else inference_net)(contest)
    before = peak()
    solver = SGDSolver(description, keep_blobs=bool(kept)) if phase == "train" else None
    net: Any = solver.net if solver else Net.from_proto(description, keep_blobs=bool(kept))
    fill(net, contest)
    for _ in range(passes):
        if solver:
            solver.step(1)
        else:
            net._forward(0, len(net.layers) - 1)
    process = peak() - before
    return {**floor(net, phase == "train"), **net._runtime.engine.memory(), "process": process}


def peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def in_child(name: str, mode: str) -> dict[str, int] | None:
    """Measure in a child process; None if the net does not run, with the reason on stderr."""
    command = [sys.executable, "-m", "benchmarks.memory", "--child", name, mode]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode:
        return None
    found: dict[str, int] = json.loads(done.stdout)
    return found


def row(title: str, found: dict[str, int] | None) -> str:
    if found is None:
        return f"{title:<24}  does not run"
    figures = "".join(f"{found[column] / 1e6:>12.1f}" for column in COLUMNS)
    return f"{title:<24}{figures}{found['process'] / found['floor']:>9.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", default=NETS, choices=CONTESTS)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        print(json.dumps(measure(CONTESTS[chosen.child[0]], chosen.child[1])))
        return
    print(f"{'MB':<24}" + "".join(f"{column:>12}" for column in COLUMNS) + f"{'/ floor':>9}")
    for name in chosen.nets:
        for mode in chosen.modes:
            title = f"{name} x {CONTESTS[name].batch}, {mode}"
            print(row(title, in_child(name, mode)), flush=True)


if __name__ == "__main__":
    main()
