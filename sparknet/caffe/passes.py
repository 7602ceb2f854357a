"""What surrounds a net's passes: callbacks, inputs by name, batches of the net's size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.errors import SpecError
from sparknet.layers.layer import shape_text

if TYPE_CHECKING:
    from sparknet.caffe.net import Net

Callback = Callable[[int], Any]


class Callbacks:
    """The callbacks of one net.  Caffe: net.hpp, before_forward_ and its three companions."""

    def __init__(self) -> None:
        self.before_forward: list[Callback] = []
        self.after_forward: list[Callback] = []
        self.before_backward: list[Callback] = []
        self.after_backward: list[Callback] = []

    def __bool__(self) -> bool:
        return any(vars(self).values())

    def forward(self, work: Callable[[int, int], float], layers: range) -> float:
        """Return the loss of layers that run from the first to the last, by number."""
        return _run(work, layers, self.before_forward, self.after_forward)

    def backward(self, work: Callable[[int, int], None], layers: range) -> None:
        _run(work, layers, self.before_backward, self.after_backward)


def _run(
    work: Callable[[int, int], Any], layers: range, before: list[Callback], after: list[Callback]
) -> float:
    """Return all layers at once if there are no callbacks, else one by one."""
    if not (before or after):
        return (work(layers[0], layers[-1]) or 0.0) if layers else 0.0
    total = 0.0
    for layer in layers:
        for callback in before:
            callback(layer)
        total += work(layer, layer) or 0.0
        for callback in after:
            callback(layer)
    return total


def fill(
    blobs: Mapping[str, Blob],
    given: Mapping[str, Any],
    expected: Sequence[str],
    what: str,
    gradient: bool = False,
) -> None:
    """Write arrays for exactly the ``expected`` blobs, each of its blob's batch size."""
    if set(given) != set(expected):
        raise SpecError(
            f"the {what}s given ({', '.join(sorted(given))}) are not those of the net "
            f"({', '.join(sorted(expected))})"
        )
    for name, values in given.items():
        blob, shape = blobs[name], np.shape(values)
        if shape[:1] != tuple(blob.shape)[:1]:
            raise SpecError(
                f"{what} '{name}' is {shape_text(shape)}, not batch sized: "
                f"the blob is {shape_text(blob.shape)}"
            )
        try:
            (blob.diff if gradient else blob.data)[...] = values
        except ValueError as error:
            raise SpecError(
                f"{what} '{name}' is {shape_text(shape)}; the blob is {shape_text(blob.shape)}"
            ) from error


Arrays = dict[str, Any]


def forward_all(net: Net, blobs: Sequence[str] | None, given: Mapping[str, Any]) -> Arrays:
    """Outputs for each input, the padding cut off."""
    outs: dict[str, list[Any]] = {}
    for batch in batches(net, given):
        _collect(outs, net.forward(blobs=blobs, **batch))
    return _join(outs, _length(given))


def forward_backward_all(
    net: Net, blobs: Sequence[str] | None, diffs: Sequence[str] | None, given: Mapping[str, Any]
) -> tuple[Arrays, Arrays]:
    """Outputs, and input gradients, for each input and output gradient."""
    forward = {name: given[name] for name in net.inputs if name in given}
    backward = {name: given[name] for name in net.outputs if name in given}
    outs: dict[str, list[Any]] = {}
    grads: dict[str, list[Any]] = {}
    steps = zip(batches(net, forward), _or_empty(batches(net, backward)), strict=False)
    for batch, tops in steps:
        _collect(outs, net.forward(blobs=blobs, **batch))
        _collect(grads, net.backward(diffs=diffs, **tops))
    return _join(outs, _length(given)), _join(grads, _length(given))


def batches(net: Net, arrays: Mapping[str, Any]) -> Iterator[Arrays]:
    """Batches of the net's size; the last one padded with zeros."""
    if not arrays:
        return
    size = int(next(iter(net.blobs.values())).shape[0])
    if size < 1:
        raise SpecError("the net's batch size is 0")
    for begin in range(0, _length(arrays), size):
        batch = {}
        for name, values in arrays.items():
            part = np.asarray(values[begin : begin + size])
            batch[name] = np.zeros((size, *part.shape[1:]), np.float32)
            batch[name][: len(part)] = part
        yield batch


def _length(arrays: Mapping[str, Any]) -> int:
    return len(next(iter(arrays.values()))) if arrays else 0


def _collect(parts: dict[str, list[Any]], made: Arrays) -> None:
    """Copies of a batch's items; a scalar (a loss) counts as one item a batch."""
    for name, values in made.items():
        parts.setdefault(name, []).extend(np.array(values, ndmin=1))


def _or_empty(batches: Iterator[Arrays]) -> Iterator[Arrays]:
    yield from batches
    while True:
        yield {}


def _join(parts: Mapping[str, Sequence[Any]], length: int) -> Arrays:
    return {name: np.asarray(values)[:length] for name, values in parts.items()}
