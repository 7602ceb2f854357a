"""DiLoCo by sparknet and by torchft over gloo: one module, one set of digits, two workers.

    pip install torch torchft
    python -m benchmarks.beside_torchft [--seeds 5] [--steps 1000] [--every 50]

Both start from the same weights and take the same inner and outer optimizers.  Each training has
two processes with a thread each, and the sides take turns.  Bytes are what a worker sends: of
sparknet by its own count, of torchft by the loopback device's, which its gloo, quorum and store
use.  The loss is that of the last 1,500 digits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from benchmarks.digits import ALL, TRAINED, records

WORKERS, BATCH = 2, 32
INNER, OUTER = {"lr": 1e-3, "weight_decay": 0.1}, {"lr": 0.7, "momentum": 0.9}


def digits() -> list[dict[str, Any]]:
    """Return the digits to learn and those to judge by, each as a row of 784 numbers."""
    parts = [records(part).arrays for part in (slice(TRAINED), slice(TRAINED, ALL))]
    return [
        {"data": one["data"].reshape(-1, 784), "label": one["label"].astype(np.int64)}
        for one in parts
    ]


def module(seed: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10))


def loss_of(trained: Any, held_out: Any) -> float:
    import torch

    with torch.no_grad():
        scores = trained(torch.from_numpy(held_out["data"]))
        return float(torch.nn.functional.cross_entropy(scores, torch.from_numpy(held_out["label"])))


def ours(seed: int, steps: int, every: int) -> tuple[float, float, float]:
    """Return loss, seconds and bytes of a worker."""
    import torch

    import sparknet
    from sparknet.training import DiLoCo

    learned, held_out = digits()
    trained = sparknet.train(
        module=module(seed),
        loss=torch.nn.CrossEntropyLoss(),
        optimizer=partial(torch.optim.AdamW, **INNER),
        data=learned,
        strategy=DiLoCo(every, outer_lr=OUTER["lr"], outer_momentum=OUTER["momentum"]),
        workers=WORKERS,
        batch_size=BATCH,
        steps=steps,
        threads=1,
        seed=seed,
    )
    end = trained.history[-1]
    return (
        loss_of(trained.module, held_out),
        end["total_seconds"],
        end["total_bytes_sent"] / WORKERS,
    )


def theirs(seed: int, steps: int, every: int) -> tuple[float, float, float]:
    from torchft.coordination import LighthouseServer

    house = LighthouseServer(bind="[::]:0", min_replicas=WORKERS, join_timeout_ms=100)
    try:
        words = [sys.executable, "-m", "benchmarks.beside_torchft", "--seed", str(seed)]
        words += ["--steps", str(steps), "--every", str(every), "--house", house.address()]
        workers = [
            subprocess.Popen([*words, "--worker", str(one)], stdout=subprocess.PIPE, text=True)
            for one in range(WORKERS)
        ]
        answers = [one.communicate(timeout=600)[0].split() for one in workers]
    finally:
        house.shutdown()
    losses, seconds, sent = np.array(answers, float).T
    if np.ptp(losses) > 1e-6:
        raise RuntimeError(f"the workers of torchft ended with different weights: {losses}")
    return losses[0], seconds.max(), sent.max() / WORKERS


def worker(rank: int, seed: int, steps: int, every: int, house: str) -> None:
    """One worker of torchft; prints loss, seconds and the bytes of all workers."""
    import torch
    from torch import nn
    from torch.distributed import TCPStore
    from torchft import Manager, ProcessGroupGloo
    from torchft.local_sgd import DiLoCo

    torch.set_num_threads(1)
    learned, held_out = digits()
    order = np.random.default_rng(seed).permutation(len(learned["label"]))[rank::WORKERS]
    rows = {name: torch.from_numpy(values[order]) for name, values in learned.items()}
    net, rng = module(seed), np.random.default_rng((seed, rank))
    inner = torch.optim.AdamW(net.parameters(), **INNER)
    outer = torch.optim.SGD(net.parameters(), **OUTER, nesterov=True)
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=60)),
        min_replica_size=WORKERS,
        use_async_quorum=False,
        load_state_dict=lambda state: net.load_state_dict(state),
        state_dict=lambda: net.state_dict(),
        replica_id=f"worker{rank}",
        store_addr="localhost",
        store_port=store.port,
        rank=0,
        world_size=1,
        lighthouse_addr=house,
    )
    criterion, used = nn.CrossEntropyLoss(), len(order)
    with DiLoCo(manager, [net], inner, outer, sync_every=every):
        begin, before = time.perf_counter(), loopback()
        for _ in range(steps):
            if used + BATCH > len(order):
                order, used = rng.permutation(len(order)), 0
            batch = order[used : used + BATCH]
            used += BATCH
            inner.zero_grad()
            criterion(net(rows["data"][batch]), rows["label"][batch]).backward()
            inner.step()
        seconds, sent = time.perf_counter() - begin, loopback() - before
    print(loss_of(net, held_out), seconds, sent, flush=True)
    manager.shutdown(wait=False)
    os._exit(0)  # its threads go on


def loopback() -> int:
    """Return the bytes that this machine has sent to itself."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, fields = line.partition(":")
        if name.strip() == "lo":
            return int(fields.split()[8])
    raise RuntimeError("this machine has no loopback device")


def shown(values: list[float], scale: float = 1, digits: int = 4) -> str:
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{scale * mean(values):.{digits}f} ± {scale * error:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=int, default=50)
    for name in ("--worker", "--seed"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--house", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker is not None:
        worker(asked.worker, asked.seed, asked.steps, asked.every, asked.house)
        return
    sides = {"sparknet": ours, "torchft": theirs}
    made: dict[str, list[tuple[float, float, float]]] = {name: [] for name in sides}
    for seed in range(asked.seeds):
        for name in list(sides)[:: 1 if seed % 2 else -1]:
            made[name].append(sides[name](seed, asked.steps, asked.every))
    print("| DiLoCo by | loss | seconds | MB of each worker |\n|---|---|---|---|")
    for name, runs in made.items():
        losses, seconds, sent = (list(column) for column in zip(*runs, strict=True))
        print(f"| {name} | {shown(losses)} | {shown(seconds, digits=1)} | {shown(sent, 1e-6, 1)} |")
    pairs = [one[0] - other[0] for one, other in zip(*made.values(), strict=True)]
    print(f"\nThe loss of sparknet less that of torchft, in pairs of a seed: {shown(pairs)}.")


if __name__ == "__main__":
    main()
