"""The nets of a solver.  Caffe: solver.cpp, InitTrainNet, InitTestNets and Test."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import numpy as np

from sparknet.caffe import weights_io
from sparknet.caffe.modes import next_seed, set_random_seed, solver_rank
from sparknet.caffe.net import Net
from sparknet.caffe.precision import Precision, available
from sparknet.devices import resolve_device
from sparknet.errors import SolverError
from sparknet.proto import caffe_pb2, read_solver, solver_nets, upgrade_solver
from sparknet.proto.message_fields import HasMessage

Array = np.ndarray[Any, Any]


def build(
    solver: caffe_pb2.SolverParameter,
    precision: Precision = "float32",
    keep_blobs: bool = True,
    device: str | None = None,
) -> tuple[Net, list[Net]]:
    """Return the net for training and those for testing, with the weights that the solver names."""
    described = solver_nets(solver)
    precision = available(precision, resolve_device(device))
    seeds = _seeds(solver.random_seed, 1 + len(described.tests))
    models = [weights_io.open_model(name) for name in weight_files(solver)]
    built = [
        Net.from_proto(
            net,
            seed=seed,
            precision=precision,
            keep_blobs=keep_blobs,
            models=models,
            device=device,
        )
        for net, seed in zip([described.train, *described.tests], seeds, strict=True)
    ]
    return built[0], built[1:]


def weight_files(solver: caffe_pb2.SolverParameter) -> list[str]:
    """Return the files that a solver's ``weights`` name: several fields, or several by commas."""
    return [name.strip(" ") for names in solver.weights for name in names.split(",")]


def _seeds(seed: int, count: int) -> list[int]:
    """Return a seed for each net; random_seed makes them the same whatever other threads build."""
    if seed < 0:
        return [next_seed() for _ in range(count)]
    seed += solver_rank()
    set_random_seed(seed)
    for _ in range(count):  # nets that are built later draw others
        next_seed()
    sequence = np.random.default_rng(seed)
    return [int(sequence.integers(0, 2**63)) for _ in range(count)]


def share(test: Net, train: Net) -> None:
    """Share the trained weights with a test net, unless it has them already."""
    theirs = dict(zip(train.graph.layers, train._runtime.params, strict=True))
    for node, own in zip(test.graph.nodes, test._runtime.params, strict=True):
        pairs = zip(own, theirs.get(node.name, ()), strict=False)
        if any(mine.array is not other.array for mine, other in pairs):
            test.share_with(train)
            return


def mean_outputs(
    net: Net, passes: int, ap_version: str = "Integral"
) -> tuple[float, dict[str, Array]]:
    """Return the means of the loss and outputs over passes, of DetectionEvaluate its metric."""
    loss = 0.0
    sums: dict[str, Array] = {}
    evaluated = {
        top: node.layer.summary
        for node in net.graph.nodes
        if node.layer.summary
        for top in node.tops
    }
    judged: dict[str, list[Array]] = {top: [] for top in evaluated}
    for number in range(passes):
        loss += net._forward(0, len(net.layers) - 1)
        for name in net.outputs:
            values = np.array(net.blobs[name].data)
            if name in judged:
                judged[name].append(values)
                values = np.zeros((), np.float32)
            sums[name] = values if number == 0 else sums[name] + values
    count = np.float32(max(passes, 1))
    means = {name: total / count for name, total in sums.items()}
    for name in judged.keys() & means.keys():
        means[name] = np.float32(evaluated[name](judged[name], ap_version)).reshape(())
    return loss / max(passes, 1), means


SolverSource: TypeAlias = caffe_pb2.SolverParameter | HasMessage | str | os.PathLike[str]
"""A path, a SolverParameter, or an object whose ``to_proto()`` is one (`SolverParams`)."""
NetSource: TypeAlias = caffe_pb2.NetParameter | HasMessage | str | os.PathLike[str] | None
"""A net that replaces the solver's own."""

_NETS = ("net", "net_param", "train_net", "train_net_param")


def settings(source: SolverSource, net: NetSource = None) -> caffe_pb2.SolverParameter:
    """Return the solver's settings, its own copy; a net given here replaces the one they name."""
    if isinstance(source, (str, os.PathLike)):
        solver = read_solver(source)
    else:
        solver = upgrade_solver(_message(source, caffe_pb2.SolverParameter, "solver"))
    if net is not None:
        for field in _NETS:
            solver.ClearField(field)
        if isinstance(net, (str, os.PathLike)):
            solver.net = os.fspath(net)
        else:
            solver.net_param.CopyFrom(_message(net, caffe_pb2.NetParameter, "net"))
    return solver


def _message(source: Any, kind: Any, what: str) -> Any:
    message = source.to_proto() if hasattr(source, "to_proto") else source
    if not isinstance(message, kind):
        raise SolverError(f"a {what} cannot be made from a {type(source).__name__}")
    return message
