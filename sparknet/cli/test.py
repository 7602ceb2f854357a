"""`sparknet test`: a net's outputs over batches of its data (Caffe: tools/caffe.cpp, test)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.cli import caffe_flags, flags, image_flags, inputs, net_file
from sparknet.cli.verb import Verb, WrongUse
from sparknet.errors import DataError, clean

if TYPE_CHECKING:
    from sparknet.caffe import Net

Means = dict[str, Any]
ITERATIONS = 50


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_weighed(parser)
    flags.add(
        parser, "iterations", type=flags.positive, help="batches; else 50, or all of --data once"
    )
    parser.add_argument(
        "--data",
        metavar="SOURCE",
        nargs="+",
        help=f"records for the net, in place of what its data layers read: {inputs.HELP}",
    )
    flags.add_gpu(parser)
    image_flags.add(parser)
    caffe_flags.add_unused(parser)
    flags.add_json(parser)


def _execute(chosen: Namespace) -> int:
    net_file.take_words(chosen)
    report = _of_data(chosen) if chosen.data else _of_own_data(chosen)
    if chosen.json:
        from sparknet.report.log import as_json

        print(as_json(report.as_dict()))
    else:
        print("\n".join(report.lines()))
    return 0


@dataclass(frozen=True)
class Report:
    """Means over some batches: the loss, and each output with its loss weight."""

    counted: dict[str, int]
    loss: float
    means: dict[str, Any]
    weights: Mapping[str, float]

    def lines(self) -> Iterator[str]:
        yield f"Loss: {self.loss:g}"
        for name, values in self.means.items():
            weight = self.weights[name]
            for value in np.ravel(values).tolist():
                share = f" (* {weight:g} = {weight * value:g} loss)" if weight else ""
                yield f"{clean(name)} = {value:g}{share}"

    def as_dict(self) -> dict[str, Any]:
        """Return the means as JSON: an output of one number is a number, others are lists."""
        plain = {
            name: float(np.ravel(values)[0])
            if np.size(values) == 1
            else np.asarray(values).tolist()
            for name, values in self.means.items()
        }
        return {**self.counted, "loss": self.loss, "outputs": plain}


def _of_data(chosen: Namespace) -> Report:
    """Test on --data; each record counts once, whatever the batch size."""
    records = inputs.open_records(chosen.data, image_flags.preprocessing(chosen))
    net = net_file.fed_net(chosen)
    net.set_validation_data(records)
    means = net.test_arrays(chosen.iterations)
    if not means:
        raise DataError("the net has neither a loss nor an accuracy to test by")
    weights = net.net.blob_loss_weights
    loss = sum(weights[name] * float(values.sum()) for name, values in means.items())
    count = {"iterations": chosen.iterations} if chosen.iterations else {"records": len(records)}
    return Report(count, loss, dict(means), weights)


def _of_own_data(chosen: Namespace) -> Report:
    if unused := image_flags.flags_given(chosen):
        flag = next(iter(unused)).replace("_", "-")
        raise WrongUse(
            f"--{flag} is for --data: the net's own data layers have a transform_param",
            "give --data SOURCE, or change the net's transform_param",
        )
    net = net_file.test_net(chosen)
    if net.inputs:
        raise WrongUse(
            f"{chosen.model}: nothing feeds the net's inputs: {', '.join(net.inputs)}",
            "give --data SOURCE, or a net with Data layers",
        )
    iterations = chosen.iterations or ITERATIONS
    loss, means = score(net, iterations)
    return Report({"iterations": iterations}, loss, means, net.blob_loss_weights)


def score(net: Net, iterations: int) -> tuple[float, Means]:
    """Return the means of the loss and of all outputs, and report each batch on stderr."""
    losses, sums = 0.0, dict[str, Any]()
    for number in range(iterations):
        losses += net._forward(0, len(net.layers) - 1)
        for name in net.outputs:
            values = np.array(net.blobs[name].data, np.float64)
            sums[name] = sums.get(name, 0.0) + values
            for value in values.ravel().tolist():
                print(f"Batch {number}, {clean(name)} = {value:g}", file=sys.stderr)
    return losses / iterations, {name: total / iterations for name, total in sums.items()}


VERB = Verb(
    "test",
    "Run a net over batches of its data in the test phase and print the means of its outputs.",
    _arguments,
    _execute,
)
