"""`sparknet alias`: writes programs with the names of Caffe's, for old scripts."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sparknet.cli.verb import Verb

PLACES = {
    "caffe": "tools",
    "compute_image_mean": "tools",
    "convert_imageset": "tools",
    "extract_features": "tools",
    "upgrade_net_proto_binary": "tools",
    "upgrade_net_proto_text": "tools",
    "upgrade_solver_proto_text": "tools",
    "convert_mnist_data": "examples/mnist",
    "convert_cifar_data": "examples/cifar10",
    "convert_mnist_siamese_data": "examples/siamese",
}
"""Each program, and its folder in Caffe's build."""

LAUNCHER = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys

from sparknet.cli.tools import main

sys.exit(main("{name}"))
"""
"""A shell runs only the second line; Python reads that line as a string."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="where the programs go; it is made if needed")
    parser.add_argument(
        "--build",
        action="store_true",
        help="give DIR the folders of Caffe's build: tools, examples/mnist, …",
    )


def _execute(chosen: Namespace) -> int:
    from sparknet.errors import FileError

    for name, place in PLACES.items():
        folder = Path(chosen.folder) / (place if chosen.build else ".")
        for path in (folder / name, folder / f"{name}.bin"):
            try:
                _write(path, name)
            except OSError as error:
                if isinstance(error, FileError):
                    raise
                raise FileError(path, f"cannot be written: {error.strerror}") from error
            print(path)
    return 0


def _write(path: Path, name: str) -> None:
    """Write a launcher; replaces only an older one, since another file may be Caffe's."""
    from sparknet.errors import FileError

    if path.exists() and b"sparknet.cli.tools" not in path.read_bytes()[:500]:
        raise FileError(path, "exists already and is not sparknet's: choose another folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LAUNCHER.format(python=sys.executable, name=name), encoding="utf-8")
    path.chmod(0o755)


VERB = Verb(
    "alias",
    "Write programs named caffe, convert_imageset, … that take the words and flags of Caffe's.",
    _arguments,
    _execute,
)
