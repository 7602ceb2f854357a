"""Batches of one: the times of the first prediction and of the next: python -m benchmarks.latency

Each library starts a process of its own, reads the model of a file, and predicts one record; they
take turns.  The first time counts from the start of the process, the next are medians of 20.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.contests import CONTESTS, Contest
from benchmarks.peers.process import ROOT, can_import, environment

NETS = ("caffenet", "resnet50", "mobilenet", "lenet")
PEERS = ("openvino", "onnxruntime")

START = """
import json, resource, sys, time
begun, folder, precision = float(sys.argv[1]), sys.argv[2], sys.argv[3]
"""
END = """
step()
first, spent = time.time() - begun, resource.getrusage(resource.RUSAGE_SELF)
times = []
for _ in range(20):
    start = time.perf_counter()
    step()
    times.append((time.perf_counter() - start) * 1e3)
print(json.dumps([first * 1e3, (spent.ru_utime + spent.ru_stime) * 1e3, sorted(times)[10]]))
"""
SIDES = {
    "sparknet": """
from sparknet.caffe import Net, TEST
net = Net(folder + "/net.prototxt", TEST, weights=folder + "/" + precision + ".caffemodel",
          precision=precision, keep_blobs=False)
def step():
    return net.forward()["prob"][0, 0]
""",
    "openvino": """
import openvino
settings = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32"}
model = openvino.Core().compile_model(folder + "/net.onnx", "CPU", settings)
request = model.create_infer_request()
request.get_input_tensor().data[...] = 0
def step():
    request.infer()
""",
    "onnxruntime": """
import numpy, onnxruntime
session = onnxruntime.InferenceSession(folder + "/net.onnx", providers=["CPUExecutionProvider"])
given = session.get_inputs()[0]
values = {given.name: numpy.zeros(given.shape, numpy.float32)}
def step():
    session.run(None, values)
""",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=CONTESTS, default=NETS)
    parser.add_argument(
        "--precisions", nargs="*", choices=("float32", "bf16", "int8"), default=("float32", "bf16")
    )
    parser.add_argument("--rounds", type=int, default=5, help="processes of each library (5)")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    sides = ["sparknet", *(name for name in PEERS if can_import(sys.executable, name))]
    print("net, precision, library: first ms, processor ms until then, next ms")
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            write(replace(CONTESTS[name], batch=1), Path(folder), options.precisions)
            for precision in options.precisions:
                for line in turns(folder, precision, sides, options.rounds, options.threads):
                    print(f"{name}, {precision}, {line}", flush=True)
    return 0


def write(contest: Contest, folder: Path, precisions: Any) -> None:
    """The net's files for all libraries."""
    from benchmarks.peers.nets import inference_net
    from benchmarks.peers.ours import calibrated, fill
    from sparknet.caffe import Net
    from sparknet.caffe.weights_io import as_model
    from sparknet.onnx import write_model
    from sparknet.proto import write_text

    described = inference_net(contest)
    net = Net.from_proto(described)
    fill(net, contest)
    write_text(folder / "net.prototxt", described)
    for precision in precisions:
        if precision == "int8":
            net.use_int8(calibrated(described, contest))
        net.save(folder / f"{precision}.caffemodel")
        if precision == "float32":
            write_model(folder / "net.onnx", as_model(net._runtime), dynamic_batch=False)


def turns(folder: str, precision: str, sides: list[str], rounds: int, threads: int) -> list[str]:
    """A line for each library that has the precision."""
    able = [name for name in sides if name == "sparknet" or precision == "float32"
            or (name, precision) == ("openvino", "bf16")]  # fmt: skip
    found: dict[str, list[list[float]]] = {name: [] for name in able}
    for _ in range(rounds):
        for name in able:
            code = START + SIDES[name] + END
            done = subprocess.run(
                [sys.executable, "-c", code, str(time.time()), folder, precision],
                capture_output=True, text=True, cwd=ROOT, env=environment(threads), check=True,
            )  # fmt: skip
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    return [
        f"{name}: " + ", ".join(f"{median(part):.1f}" for part in zip(*runs, strict=True))
        for name, runs in found.items()
    ]


if __name__ == "__main__":
    raise SystemExit(main())
