"""`sparknet train`: trains as `caffe train` does, or with several workers on any data."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sparknet.cli import (
    caffe_flags,
    flags,
    image_flags,
    net_file,
    settings,
    train_outputs,
    train_solver,
    train_workers,
)
from sparknet.cli.train_solver import EFFECTS
from sparknet.cli.verb import Verb, WrongUse


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_solver(parser)
    flags.add(parser, "weights", metavar="FILE[,FILE]", help="models to start from (fine-tuning)")
    flags.add(parser, "snapshot", metavar="FILE", help="a .solverstate to resume from")
    flags.add(
        parser,
        "iterations",
        "--steps",
        type=flags.positive,
        help="the iteration to stop at, in place of max_iter",
    )
    flags.add_state(parser)
    flags.add_trust(parser)
    flags.add_precision(parser, training=True)
    flags.add_threads(parser)
    net_file.add_axes(parser)
    for name, default in (("sigint", "stop"), ("sighup", "snapshot")):
        flags.add(
            parser,
            f"{name}_effect",
            choices=EFFECTS,
            default=default,
            help=f"what {name.upper()} does; '{default}' by default",
        )
    flags.add_gpu(parser)
    caffe_flags.add_unused(parser)
    train_outputs.add(parser)


def _more(parser: ArgumentParser) -> None:
    train_workers.add(parser)
    image_flags.add(parser, training=True)


def _execute(chosen: Namespace) -> int:
    net_file.take_learned(chosen)
    if not settings.is_recipe(chosen):
        net_file.take_solver(chosen)
    if chosen.snapshot and chosen.weights:
        raise WrongUse("give -snapshot to resume or -weights to fine-tune, not both")
    if "data" in chosen and train_workers.are_wanted(chosen):
        return train_workers.train(chosen)
    flags.use_threads(chosen)
    return train_solver.train(chosen)


VERB = Verb(
    "train",
    "Train a net by a solver file, as caffe train does; or by several workers.",
    _arguments,
    _execute,
    more=_more,
)
