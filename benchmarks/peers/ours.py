"""sparknet's side."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.contests import Contest
from benchmarks.peers.nets import inference_net, training_solver
from benchmarks.peers.side import Side, give_back, held_on, serve
from sparknet.caffe import TEST, Net
from sparknet.caffe.solvers import SGDSolver


class Ours(Side):
    _step: Any
    _device: str

    def load(self, contest: Contest, mode: str, precision: str, variant: str) -> dict[str, Any]:
        self._device, self._step = variant, None  # the step of the contest before, with its net
        options: dict[str, Any] = {} if precision == "float32" else {"precision": precision}
        if variant:  # a device of PyTorch's
            options["device"] = variant
            give_back(variant)
        if mode == "train":
            solver = SGDSolver(training_solver(contest), keep_blobs=False, **options)
            net, self._step = solver.net, lambda: solver.step(1)
        else:
            described = inference_net(contest)
            if precision == "int8":
                described.int8_param.CopyFrom(calibrated(described, contest))
            made = Net.from_proto(described, keep_blobs=False, **options)
            net, self._step = made, lambda: made._forward(0, len(made.layers) - 1)
        fill(net, contest)
        return {"parameters": learned(net)}

    def step(self) -> None:
        self._step()

    def finish(self) -> None:
        if self._device.startswith("cuda"):
            import torch

            torch.cuda.synchronize()

    def memory(self) -> int:
        return held_on(self._device) or super().memory()


def calibrated(described: Any, contest: Contest) -> Any:
    """What the blobs of a net are rounded to, found on its own batch."""
    from sparknet.caffe.int8 import Calibration

    net = Net.from_proto(described)
    fill(net, contest)
    net._forward(0, len(net.layers) - 1)
    found = Calibration(net.graph)
    found.note({name: net.blobs[name].data for name in found.blobs})
    return found.done()


def learned(net: Any) -> int:
    """The number of parameters that training changes, without BatchNorm's statistics."""
    return sum(
        blob.count
        for node, blobs in zip(net.graph.nodes, net._runtime.params, strict=True)
        if not node.layer.freezes_by_default
        for blob in blobs
    )


def fill(net: Any, contest: Contest) -> None:
    """Fill the inputs with noise or words, labels, and one sentence per stream.

    Statistics that no training has found become 0 and 1."""
    for node in net.graph.nodes:
        if node.type == "BatchNorm" and net.graph.phase == TEST:
            for blob, value in zip(net.params[node.name], (0, 1, 1), strict=False):
                blob.data[...] = value
    rng = np.random.default_rng(1)
    data = net.blobs["data"].data
    if contest.words:
        data[...] = rng.integers(0, contest.classes, contest.data_shape)
        net.blobs["cont"].data[...] = np.arange(contest.shape[0])[:, None] > 0
    else:
        data[...] = rng.standard_normal(contest.data_shape, np.float32)
    if "label" in net.blobs:
        net.blobs["label"].data[...] = rng.integers(0, contest.classes, contest.label_shape)


if __name__ == "__main__":
    serve(Ours())
