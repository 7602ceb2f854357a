"""`sparknet upgrade`: a net, solver or model file in Caffe's current format."""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli.verb import Verb

KINDS = ("net", "solver", "model")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("old", metavar="IN", help="the file to upgrade")
    parser.add_argument("new", metavar="OUT", help="where the result goes; may be IN")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        help="what IN is; by default a .caffemodel is a model, and text is told by its fields",
    )


def _execute(chosen: Namespace) -> int:
    return upgrade(chosen.old, chosen.new, chosen.kind, "sparknet upgrade")


def upgrade(old: str, new: str, kind: str | None, program: str) -> int:
    """Upgrade a file; returns 1 if something could not be translated, which stderr names."""
    from sparknet.proto import UpgradeWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UpgradeWarning)
        _upgrade(kind or _kind(old), old, new)
    for warning in caught:
        print(f"{program}: {warning.message}", file=sys.stderr)
    return 1 if any(issubclass(w.category, UpgradeWarning) for w in caught) else 0


def _kind(path: str) -> str:
    from sparknet.errors import TextError
    from sparknet.proto import caffe_pb2, read_text

    if Path(path).suffix == ".caffemodel":
        return "model"
    failures = []
    for kind, message in (("net", caffe_pb2.NetParameter), ("solver", caffe_pb2.SolverParameter)):
        try:
            read_text(path, message)
        except TextError as error:
            failures.append(error)
        else:
            return kind
    raise max(failures, key=lambda error: (error.line, error.column))


def _upgrade(kind: str, old: str, new: str) -> None:
    from sparknet import proto

    if kind == "net":
        proto.write_text(new, proto.read_net(old))
    elif kind == "solver":
        solver = proto.read_text(old, proto.caffe_pb2.SolverParameter)
        proto.write_text(new, proto.upgrade_solver(solver))
    else:
        proto.write_model(new, proto.read_model(old))


VERB = Verb(
    "upgrade",
    "Write a net, solver or caffemodel of an earlier Caffe in the current form; "
    "exit status 1 where something could not be translated.",
    _arguments,
    _execute,
)
