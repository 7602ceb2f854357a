"""Epochs of Fawaz's nets here and in PyTorch, in turn, on one thread each.

    python -m benchmarks.papers.fawaz_speed [--nets MLP …] [--data Coffee …] [--rounds 3]

It needs PyTorch beside the data's packages (`pip install torch`).  The times are the processor's:
other programs do not count, and on a quiet machine they are the wall's.  The least time of each
side is a line of the store, and a cell of the page.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.fawaz import RECIPES, STORE, batches, solver, train_epoch
from benchmarks.papers.ucr import FILES, series
from sparknet import Net
from sparknet.native import set_threads


def torch_net(kind: str, length: int, classes: int) -> Any:
    import torch
    from torch import nn

    def normalised(bottom: int, filters: int, width: int) -> list[Any]:
        conv = nn.Conv1d(bottom, filters, width, padding="same")
        return [conv, nn.BatchNorm1d(filters, eps=1e-3, momentum=0.01)]

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, bottom: int, filters: int) -> None:
            super().__init__()
            self.long = nn.Sequential(
                *normalised(bottom, filters, 8),
                nn.ReLU(),
                *normalised(filters, filters, 5),
                nn.ReLU(),
                *normalised(filters, filters, 3),
            )
            short = normalised(bottom, filters, 1)
            self.short = nn.Sequential(*(short if bottom != filters else short[1:]))

        def forward(self, values: Any) -> Any:
            return torch.relu(self.short(values) + self.long(values))

    if kind == "MLP":
        layers: list[Any] = [nn.Flatten(), nn.Dropout(0.1)]
        for width, share in ((length, 0.2), (500, 0.2), (500, 0.3)):
            layers += [nn.Linear(width, 500), nn.ReLU(), nn.Dropout(share)]
        return nn.Sequential(*layers, nn.Linear(500, classes))
    if kind == "FCN":
        sizes = ((1, 128, 8), (128, 256, 5), (256, 128, 3))
        layers = [layer for size in sizes for layer in (*normalised(*size), nn.ReLU())]
    else:
        layers = [Block(1, 64), Block(64, 128), Block(128, 128)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, classes))


def torch_epoch(kind: str, name: str) -> Callable[[Any], float]:
    """Return what trains PyTorch's net over batches of rows, and returns the mean loss."""
    import torch

    torch.set_num_threads(1)
    data, recipe = series(name), RECIPES[kind].solver
    net = torch_net(kind, data.train.shape[1], data.classes)
    if recipe["type"] == "Adam":
        descent: Any = torch.optim.Adam(net.parameters(), lr=0.001, eps=1e-7)
    else:
        descent = torch.optim.Adadelta(net.parameters(), lr=1.0, rho=0.95, eps=1e-7)
    values = torch.from_numpy(np.ascontiguousarray(data.train[:, None]))
    labels = torch.from_numpy(data.train_labels.astype(np.int64))

    def train(parts: Any) -> float:
        loss = 0.0
        for rows in parts:
            descent.zero_grad()
            mean = torch.nn.functional.cross_entropy(net(values[rows]), labels[rows])
            mean.backward()
            descent.step()
            loss += float(mean.detach()) * len(rows)
        return loss / sum(map(len, parts))

    return train


def in_turn(kind: str, name: str, rounds: int) -> list[float]:
    """Return the least seconds of an epoch of ours and of PyTorch's."""
    set_threads(1)
    data, net, draw = series(name), Net(solver(kind, name, 1)), np.random.default_rng(1)
    theirs = torch_epoch(kind, name)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        parts = batches(RECIPES[kind], data, draw)
        for side, train in enumerate((lambda parts: train_epoch(net, data, parts), theirs)):
            begin = time.process_time()
            train(parts)
            times[side].append(time.process_time() - begin)
    return [min(side) for side in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nets", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--data", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", type=Path, default=STORE)
    options = parser.parse_args()
    for kind, name in product(options.nets, options.data):
        seconds = [float(f"{least:.4g}") for least in in_turn(kind, name, options.rounds)]
        line = json.dumps({"epoch": [kind, name], "seconds": seconds})
        print(line, flush=True)
        with options.store.open("a") as file:
            print(line, file=file)


if __name__ == "__main__":
    main()
