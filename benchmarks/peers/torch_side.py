"""PyTorch's side.

A variant is words: channels_last, compile, cuda.  On a GPU steps also run as one CUDA graph each,
in the turns that ask for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.peers.contests import DECAY, MOMENTUM, RATE, Contest
from benchmarks.peers.side import Side, give_back, held_on, serve
from benchmarks.peers.torch_nets import EXTRA_PARAMETERS, NETS


class PyTorch(Side):
    _net: Any
    _descent: Any
    _step: Any
    _way: Callable[[], Any]

    def load(self, contest: Contest, mode: str, precision: str, variant: str) -> dict[str, Any]:
        if precision == "int8":
            raise ValueError("it is not run in int8")
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        torch.manual_seed(1)
        words = variant.split()
        self._device = "cuda" if "cuda" in words else "cpu"
        if self._device == "cuda":
            self._net = self._descent = self._step = None  # those of the contest before
            give_back(self._device)
            torch.backends.cudnn.benchmark = True
            for switches in (torch.backends.cuda.matmul, torch.backends.cudnn):
                switches.allow_tf32 = precision == "tf32"
        with torch.device(self._device):
            net = NETS[contest.name]()
        parameters = sum(part.numel() for part in net.parameters())
        self._train = mode == "train"
        self._bf16 = precision == "bf16"
        net = net.train(self._train).to(self._device)
        self._data, self._label = (one.to(self._device) for one in _inputs(contest))
        if "channels_last" in words:
            if self._data.dim() != 4:
                raise ValueError("channels_last is for images")
            net = net.to(memory_format=torch.channels_last)
            self._data = self._data.contiguous(memory_format=torch.channels_last)
        if self._train:
            self._descent = _descent(net)
        self._net = torch.compile(net) if "compile" in words else net
        self._step = None
        return {
            "parameters": parameters - EXTRA_PARAMETERS.get(contest.name, 0),
            "version": torch.__version__,
        }

    def choose(self, way: str) -> None:
        if way == "graph" and self._step is None:
            self._step = _graphed(self._run)
        self._way = self._step if way == "graph" else self._run

    def step(self) -> None:
        self._way()

    def finish(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def memory(self) -> int:
        return held_on(self._device) or super().memory()

    def _run(self) -> None:
        if not self._train:
            with torch.no_grad(), self._precision():
                self._net(self._data)
            return
        self._descent.zero_grad(set_to_none=True)
        with self._precision():
            loss = self._net(self._data, self._label)
        loss.backward()
        self._descent.step()

    def _precision(self) -> Any:
        # Weights that were cast outside a graph would not be those of its next steps.
        return torch.autocast(
            self._device, torch.bfloat16, enabled=self._bf16, cache_enabled=self._device == "cpu"
        )


def _graphed(step: Callable[[], Any]) -> Callable[[], Any]:
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    replay: Callable[[], Any] = graph.replay
    return replay


def _descent(net: Any) -> Any:
    settings: dict[str, Any] = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY}
    try:
        return torch.optim.SGD(net.parameters(), fused=True, **settings)
    except (RuntimeError, TypeError):
        return torch.optim.SGD(net.parameters(), **settings)


def _inputs(contest: Contest) -> tuple[Any, Any]:
    label = torch.randint(0, contest.classes, contest.label_shape)
    if contest.words:
        return torch.randint(0, contest.classes, contest.data_shape), label
    return torch.randn(contest.data_shape), label


if __name__ == "__main__":
    serve(PyTorch())
