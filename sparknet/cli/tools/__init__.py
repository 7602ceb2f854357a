"""Caffe's programs under their own names, with their arguments, for `sparknet alias`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sparknet.cli import main as command
from sparknet.cli.tools import cifar, features, images, mnist, upgrade
from sparknet.cli.tools.tool import Tool

__all__ = ["TOOLS", "main"]

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        images.CONVERT_IMAGESET,
        images.COMPUTE_IMAGE_MEAN,
        features.EXTRACT_FEATURES,
        mnist.CONVERT_MNIST_DATA,
        mnist.CONVERT_MNIST_SIAMESE_DATA,
        cifar.CONVERT_CIFAR_DATA,
        upgrade.NET_TEXT,
        upgrade.NET_BINARY,
        upgrade.SOLVER_TEXT,
    )
}


def main(name: str, arguments: Sequence[str] | None = None) -> int:
    """Run `caffe` or one of the tools; returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    return command(words, name) if name == "caffe" else TOOLS[name].run(words)
