"""PyTorch's side."""

from __future__ import annotations

import os
from typing import Any

import torch

from benchmarks.peers.contests import DECAY, MOMENTUM, RATE, Contest
from benchmarks.peers.side import Side, serve
from benchmarks.peers.torch_nets import EXTRA_PARAMETERS, NETS


class PyTorch(Side):
    def load(self, contest: Contest, mode: str, precision: str, variant: str) -> dict[str, Any]:
        if precision == "int8":
            raise ValueError("it is not run in int8")
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        torch.manual_seed(1)
        net = NETS[contest.name]()
        parameters = sum(part.numel() for part in net.parameters())
        self._train = mode == "train"
        self._bf16 = precision == "bf16"
        net.train(self._train)
        self._data, self._label = _inputs(contest)
        if "channels_last" in variant:
            if self._data.dim() != 4:
                raise ValueError("channels_last is for images")
            net = net.to(memory_format=torch.channels_last)
            self._data = self._data.contiguous(memory_format=torch.channels_last)
        if self._train:
            self._descent = _descent(net)
        self._net = torch.compile(net) if "compile" in variant else net
        return {
            "parameters": parameters - EXTRA_PARAMETERS.get(contest.name, 0),
            "version": torch.__version__,
        }

    def step(self) -> None:
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
        return torch.autocast("cpu", torch.bfloat16, enabled=self._bf16)


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
