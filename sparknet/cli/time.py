"""`sparknet time`: measures each layer, and compares it with the limits of the machine.

It does the work of `caffe time`, with its flags.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.cli import caffe_flags, flags, net_file
from sparknet.cli.verb import Verb, WrongUse

if TYPE_CHECKING:
    from sparknet.caffe import Net
    from sparknet.caffe.timing import Timing
    from sparknet.proto.caffe_pb2 import NetParameter
    from sparknet.weights import Opened


def _arguments(parser: ArgumentParser) -> None:
    add = partial(flags.add, parser)

    net_file.add_file(parser)
    add("solver", metavar="FILE", help="a solver, whose update is timed too; it may name the net")
    add(
        "weights", metavar="FILE", help="parameters, a .caffemodel, .h5 or .onnx; else the fillers'"
    )
    net_file.add_phase(parser, "train: forward and backward; test: forward only")
    flags.add_state(parser)
    flags.add_trust(parser)
    net_file.add_axes(parser)
    add("iterations", type=flags.positive, default=50, help="50 by default, after 2 to warm up")
    add("batch", type=flags.positive, metavar="N", help="a batch size in place of the file's")
    flags.add_precision(parser)
    flags.add_threads(parser)
    flags.add_gpu(parser)
    caffe_flags.add_unused(parser)
    flags.add_json(parser)
    add("forward_only", action="store_true", help="leave the backward pass out")
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="also print which kernel computes each convolution, and why",
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="also write a trace for chrome://tracing or Perfetto"
    )


def _execute(chosen: Namespace) -> int:
    from sparknet.caffe.solvers.report import say as report_line
    from sparknet.caffe.timing import fill_inputs, measure
    from sparknet.cli import time_report
    from sparknet.native.machine import measure_machine
    from sparknet.weights import check_layers, copy_weights, open_weights

    net_file.take_words(chosen)
    if not (chosen.model or chosen.solver):
        raise WrongUse("give NET or -model, or a -solver that names its net")
    if chosen.solver and chosen.phase == "test":
        raise WrongUse("a solver updates in the train phase only")
    if chosen.solver and chosen.forward_only:
        raise WrongUse("a solver updates after a backward pass only: leave -forward_only out")
    flags.use_threads(chosen)
    own = chosen.model if Path(chosen.model or "").suffix in net_file.MODELS else None
    opened = open_weights(filter(None, [chosen.weights or own]))
    net, update = _solver(chosen) if chosen.solver else (_net(chosen, opened), None)
    if chosen.solver:
        copy_weights(net, opened)
    if chosen.weights:
        check_layers(net, opened)
    _say("measuring the machine")
    machine = measure_machine()
    fill_inputs(net)
    _say(f"measuring {chosen.iterations} iterations of {net.name or 'the net'}")
    backward = chosen.phase == "train" and not chosen.forward_only
    timing = measure(net, chosen.iterations, backward, update)
    if chosen.trace:
        _write_trace(chosen.trace, timing)
    report = time_report.report(timing, machine, chosen.phase, net.precision)
    if chosen.program == "caffe":
        for line in time_report.caffe_lines(report):
            report_line(line)
    print(time_report.as_json(report) if chosen.json else time_report.as_table(report))
    if chosen.kernels and not chosen.json:
        print("", time_report.kernels_table(report), sep="\n")
    return 0


def _say(message: str) -> None:
    print(f"sparknet time: {message}", file=sys.stderr)


def _net(chosen: Namespace, opened: Opened) -> Net:
    from sparknet.caffe import Net

    return Net.from_proto(
        _described(chosen),
        net_file.phase_number(chosen),
        chosen.level,
        flags.stages(chosen),
        precision=chosen.precision,
        keep_blobs=False,
        models=list(opened.values()),
    )


def _described(chosen: Namespace) -> NetParameter:
    """The net of the file, with the batch size of -batch."""
    model = net_file.opened(chosen.model, chosen)
    net = net_file.read(chosen.model, chosen.trusted, dialect=chosen.dialect, model=model)
    if chosen.batch:
        from sparknet.graph.batch import set_batch

        set_batch(net, chosen.batch)
    return net


def _solver(chosen: Namespace) -> tuple[Net, Any]:
    """The solver's net without test nets, and the solver's update."""
    from sparknet.caffe.solvers import get_solver
    from sparknet.caffe.solvers.settings import settings
    from sparknet.proto import solver_nets

    source = settings(chosen.solver, _described(chosen) if chosen.model else None)
    net = solver_nets(source).train
    if chosen.batch and not chosen.model:
        from sparknet.graph.batch import set_batch

        set_batch(net, chosen.batch)
    for field in ("test_iter", "test_interval", "test_net", "test_net_param", "test_state"):
        source.ClearField(field)
    source.display = 0
    solver = get_solver(settings(source, net), precision=chosen.precision, keep_blobs=False)
    return solver.net, solver.apply_update


def _write_trace(path: str, timing: Timing) -> None:
    from sparknet.cli.time_report import trace
    from sparknet.errors import FileError

    try:
        Path(path).write_text(trace(timing), encoding="utf-8")
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror}") from error
    _say(f"wrote {path}")


VERB = Verb(
    "time",
    "Measure how long each layer takes forward and backward, as caffe time does, and what share "
    "that is of what this machine can do.",
    _arguments,
    _execute,
)
