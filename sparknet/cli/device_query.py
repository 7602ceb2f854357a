"""`sparknet device_query`: shows processors, where `caffe device_query` shows GPUs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sparknet.cli import caffe_flags, doctor, flags
from sparknet.cli.verb import Verb


def _arguments(parser: ArgumentParser) -> None:
    flags.add_gpu(parser)
    caffe_flags.add_unused(parser)


def _execute(chosen: Namespace) -> int:
    findings = [one for one in doctor.examine() if one.group in ("engine", "machine")]
    print("\n".join(doctor.table(findings)))
    return 0


VERB = Verb(
    "device_query",
    "Show what the net computes on: processors, threads, instructions.  There are no GPUs.",
    _arguments,
    _execute,
)
