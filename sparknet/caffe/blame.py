"""Which layer was it?  numpy's errors do not say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sparknet.errors import LayerError, SparkNetError
from sparknet.graph import Node
from sparknet.layers.host import Host
from sparknet.layers.layer import Shape, shape_text
from sparknet.layers.python import PythonHost

FOREIGN = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What numpy raises where shapes or values fit no rule that the layer has checked."""


@contextmanager
def blamed(host: Host, node: Node, shapes: Sequence[Shape]) -> Iterator[None]:
    """A layer of ours that lives in Python ends in an error that names it, whatever numpy says;
    a user's own layer names itself.  ``shapes`` are those of all blobs of the net."""
    try:
        yield
    except FOREIGN as error:
        if isinstance(error, SparkNetError) or isinstance(host, PythonHost):
            raise
        bottoms = ", ".join(shape_text(shapes[blob]) for blob in node.bottom_ids)
        inputs = f"inputs of {bottoms}" if bottoms else "its options"
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise LayerError(
            node.name, f"{node.type}: cannot be computed for {inputs}: {reason}"
        ) from error
