"""A net behind MLflow's scoring server, beside its ONNX Runtime flavour behind the same server.

    build/mlflow/bin/python -m benchmarks.serving [--nets lenet] [--clients 1 8 64] [--rounds 3]

`make test-mlflow` makes the environment.  Each client sends one record at a time over a connection
that it keeps, as fast as answers come.  The two servers run in turns, each with one process and as
many threads, and only one of them runs at a time.  Figures are medians of the rounds.  The time of
processors that a server takes for a request is the measure where other programs run beside it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import sparknet.mlflow
from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.nets import inference_net
from sparknet.net import Net

WAYS = ("sparknet", "onnxruntime")
BOOTS = 120.0
"""Seconds that a server has to start."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", choices=CONTESTS, default=["lenet"])
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of a turn")
    parser.add_argument("--threads", type=int, default=1, help="of a server")
    asked = parser.parse_args()
    columns = ["requests/s", "p95, ms", "CPU, ms"]
    print(
        "| net | clients |",
        " | ".join(f"{way}, {one}" for way in WAYS for one in columns),
        end=" | ",
    )
    print("ratio of requests | ratio of CPU |")
    print("|---" * 10 + "|")
    for name in asked.nets:
        with TemporaryDirectory() as folder:
            record = models(name, Path(folder), asked.threads)
            found = measured(Path(folder), record, asked)
        for clients in asked.clients:
            print(row(name, clients, found), flush=True)


def models(name: str, folder: Path, threads: int) -> list[Any]:
    """Write the net for both ways; returns a record as JSON has it."""
    import mlflow.onnx
    import onnx
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    contest = CONTESTS[name]
    shape = contest.shape
    net = Net(inference_net(contest), seed=1)
    entry = net.tested.entries[0].name
    takes = Schema([TensorSpec(np.dtype(np.float32), (-1, *shape), entry)])
    signature = ModelSignature(inputs=takes)
    sparknet.mlflow.save_model(net, folder / "sparknet", signature=signature)
    net.save(folder / "net.caffemodel")
    file = folder / "net.onnx"
    words = [sys.executable, "-m", "sparknet", "export", str(folder / "net.caffemodel"), str(file)]
    subprocess.run(words, check=True, capture_output=True)
    options = {"intra_op_num_threads": threads}  # ONNX Runtime does not read OMP_NUM_THREADS
    mlflow.onnx.save_model(
        onnx.load(str(file)),
        folder / "onnxruntime",
        signature=signature,
        onnx_session_options=options,
    )
    values: list[Any] = np.random.default_rng(0).random((1, *shape)).round(3).tolist()
    return [entry, values]


def measured(folder: Path, record: list[Any], asked: argparse.Namespace) -> dict[Any, list[Any]]:
    """(way, clients) → what each round gave."""
    body = json.dumps({"inputs": {record[0]: record[1]}}).encode()
    found: dict[Any, list[Any]] = {}
    for number in range(asked.rounds):
        for way in WAYS if number % 2 else WAYS[::-1]:
            with served(folder / way, asked.threads) as (port, server):
                said = loaded(port, body, 1, 1.0)[2]
                for clients in asked.clients:
                    before = processor_seconds(server)
                    rate, slow, _, count = loaded(port, body, clients, asked.seconds)
                    cost = 1000 * (processor_seconds(server) - before) / count
                    found.setdefault((way, clients), []).append((rate, slow, cost))
            found.setdefault(way, []).append(said)
    first, second = (np.ravel(answer(found[way][0])) for way in WAYS)
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-5)
    return found


def answer(text: bytes) -> Any:
    """The numbers of an answer, whatever it calls them."""
    made = json.loads(text)["predictions"]
    while isinstance(made, (list, dict)) and len(made) == 1:
        made = next(iter(made.values())) if isinstance(made, dict) else made[0]
    return made


def processor_seconds(session: int) -> float:
    """Return the time of processors that a session of processes has taken."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = process.read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12]) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def loaded(port: int, body: bytes, clients: int, seconds: float) -> tuple[float, float, bytes, int]:
    """Requests a second, their 95th percentile in milliseconds, the last answer, and how many."""
    end = time.perf_counter() + seconds

    def client(_: int) -> tuple[list[float], bytes]:
        times: list[float] = []
        said = b""
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
            while (begin := time.perf_counter()) < end or not times:
                line.request("POST", "/invocations", body, {"Content-Type": "application/json"})
                answered = line.getresponse()
                said = answered.read()
                if answered.status != 200:
                    raise RuntimeError(said.decode())
                times.append(time.perf_counter() - begin)
        return times, said

    begin = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        made = list(pool.map(client, range(clients)))
    taken = time.perf_counter() - begin
    times = [one for part, _ in made for one in part]
    slow = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    return len(times) / taken, 1000 * slow, made[0][1], len(times)


@contextmanager
def served(model: Path, threads: int) -> Iterator[tuple[int, int]]:
    """MLflow's scoring server of a model, with one process; yields its port and its session."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        port = int(bound.getsockname()[1])
    words = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(model)]
    words += ["--env-manager", "local", "-p", str(port), "-h", "127.0.0.1", "--workers", "1"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": str(threads)}
    environment["MLFLOW_DISABLE_TELEMETRY"] = "true"
    server = subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait(port, server)
        yield port, server.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, 15)
        server.wait(30)


def wait(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return once the server says that it is well."""
    end = time.monotonic() + BOOTS
    while True:
        with (
            suppress(OSError, http.client.HTTPException),
            closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as line,
        ):
            line.request("GET", "/health")
            if line.getresponse().status == 200:
                return
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the server did not start: {server.poll()}")
        time.sleep(0.1)


def row(name: str, clients: int, found: dict[Any, list[Any]]) -> str:
    ours, theirs = (found[way, clients] for way in WAYS)
    cells = [name, str(clients)]
    for rounds in (ours, theirs):
        rate, slow, cost = (median(column) for column in zip(*rounds, strict=True))
        cells += [f"{rate:,.0f}", f"{slow:.1f}", f"{cost:.2f}"]
    pairs = list(zip(ours, theirs, strict=True))
    for ratios in (
        [one[0] / other[0] for one, other in pairs],
        [other[2] / one[2] for one, other in pairs],
    ):
        cells.append(f"{min(ratios):.2f}, **{median(ratios):.2f}**, {max(ratios):.2f}")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
