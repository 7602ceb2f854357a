"""`sparknet test`: a net's outputs over some batches of its data, and their means.

Does the work of `caffe test`, with its flags and its words.  Caffe: tools/caffe.cpp, test.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.cli import flags, net_file
from sparknet.cli.verb import Verb, WrongUse

if TYPE_CHECKING:
    from sparknet.caffe import Net

Means = dict[str, Any]


def _arguments(parser: ArgumentParser) -> None:
    flags.add(parser, "model", metavar="FILE", help="the net, a .prototxt")
    flags.add(parser, "weights", metavar="FILE", help="its parameters, a .caffemodel or .h5")
    flags.add(parser, "iterations", type=flags.positive, default=50, help="batches; 50 by default")
    flags.add_state(parser)
    flags.add_gpu(parser)
    flags.add_json(parser)


def _execute(chosen: Namespace) -> int:
    flags.needed(chosen, "model", "weights")
    net = net_file.test_net(chosen)
    if net.inputs:
        raise WrongUse(
            f"{chosen.model}: nothing feeds the net's inputs: {', '.join(net.inputs)}",
            "give --data SOURCE, or a net with Data layers",
        )
    loss, means = score(net, chosen.iterations)
    if chosen.json:
        print(json.dumps({"iterations": chosen.iterations, "loss": loss, "outputs": _plain(means)}))
    else:
        print("\n".join(_lines(net, loss, means)))
    return 0


def score(net: Net, iterations: int) -> tuple[float, Means]:
    """The means of the loss and of all outputs; each batch is reported on stderr."""
    losses, sums = 0.0, dict[str, Any]()
    for number in range(iterations):
        losses += net._forward(0, len(net.layers) - 1)
        for name in net.outputs:
            values = np.array(net.blobs[name].data, np.float64)
            sums[name] = sums.get(name, 0.0) + values
            for value in values.ravel().tolist():
                print(f"Batch {number}, {name} = {value:g}", file=sys.stderr)
    return losses / iterations, {name: total / iterations for name, total in sums.items()}


def _lines(net: Net, loss: float, means: Means) -> list[str]:
    weights = net.blob_loss_weights
    lines = [f"Loss: {loss:g}"]
    for name, values in means.items():
        for value in np.ravel(values).tolist():
            weight = weights[name]
            share = f" (* {weight:g} = {weight * value:g} loss)" if weight else ""
            lines.append(f"{name} = {value:g}{share}")
    return lines


def _plain(means: Means) -> dict[str, Any]:
    """A number for an output of one, else lists."""
    return {
        name: float(values) if np.size(values) == 1 else np.asarray(values).tolist()
        for name, values in means.items()
    }


VERB = Verb(
    "test",
    "Run a net over batches of its data in the test phase and print the means of its outputs.",
    _arguments,
    _execute,
)
