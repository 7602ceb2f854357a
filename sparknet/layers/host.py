"""What a layer does that Python computes, and the bases of those that draw or read files."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from sparknet.errors import FileError, LayerError, OutOfMemory, SparkNetError
from sparknet.layers.layer import TRAIN, Plan, Shape
from sparknet.loaders.batches import Array, Arrays, Maker, Prefetch
from sparknet.native.transform import Transformation


class HostNode(Protocol):
    """A layer in its place in the net, as its host sees it (`sparknet.graph.Node`)."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def layer(self) -> Any: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def tops(self) -> tuple[str, ...]: ...
    @property
    def needs_backward(self) -> bool: ...


class HostBlob(Protocol):
    """A blob, as hosts see it (`sparknet.caffe.blob.Blob`)."""

    @property
    def shape(self) -> Shape: ...
    @property
    def count(self) -> int: ...
    @property
    def data(self) -> Any: ...
    @property
    def diff(self) -> Any: ...
    def reshape(self, *shape: int) -> None: ...


Blobs = Sequence[HostBlob]


class Host(ABC):
    """A layer of a runtime; blobs are views of the engine's memory.

    A host may give its tops other shapes in `reshape` and in `forward`; the layers
    that follow adopt them when they run."""

    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        self.node = node
        self.params = params
        self.seed = seed

    def reshape(self, bottoms: Blobs, tops: Blobs) -> None:  # noqa: B027
        """Before the first pass, and before each `forward`."""

    @abstractmethod
    def forward(self, bottoms: Blobs, tops: Blobs) -> None: ...

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:  # noqa: B027
        """Sources have no gradients to compute."""

    def reseed(self, seed: int) -> None:
        """Random numbers start again."""
        self.seed = seed

    def close(self) -> None:  # noqa: B027
        """Close files and end threads."""


class DrawingHost(Host):
    """A layer that draws random numbers."""

    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.rng = np.random.default_rng(seed)

    def reseed(self, seed: int) -> None:
        super().reseed(seed)
        self.rng = np.random.default_rng(seed)


class BatchHost(Host):
    """Batches come from a thread (`Prefetch`); their first item decides the shape of the tops."""

    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.prefetch = Prefetch(self.maker())
        self._dropped = weakref.finalize(self, self.prefetch.stop)
        self._looked_at: dict[int, Array] = {}
        """Arrays that tops use as storage, by the tops' places."""

    @abstractmethod
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        """Return a function that opens the source at a batch number, without this host."""

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        with blaming(self.node):
            batch = self.prefetch.take()
        spare: list[Array | None] = []
        try:
            for place, (top, values) in enumerate(zip(tops, batch, strict=True)):
                spare.append(self._hand_over(place, top, values))
        finally:
            self.prefetch.give_back([array for array in spare if array is not None])

    def _hand_over(self, place: int, top: Any, values: Array) -> Array | None:
        """Give a top its values; returns the array that is no longer in use."""
        if tuple(top.shape) != values.shape:
            top.reshape(*values.shape)
        if not top.adopt(values):
            return values
        before = self._looked_at.get(place)
        self._looked_at[place] = values
        return before

    def reseed(self, seed: int) -> None:
        """Later batches draw by the new seed and their own numbers."""
        if seed != self.seed:
            super().reseed(seed)
            self.prefetch.restart(self.maker())

    def close(self) -> None:
        """Close the files; a later pass opens them again, at the next batch."""
        self.prefetch.close()


def transformation(values: Mapping[str, Any], phase: int, seed: int) -> Transformation:
    """Crop, mean, scale and mirror, from the values of a layer's plan."""
    crops = values["crop_size"] and not values["random_size"]
    return Transformation(
        crop=(values["crop_size"],) * 2 if crops else None,
        random_crop=bool(crops) and phase == TRAIN,
        mirror=values["mirror"],
        scale=values["scale"],
        mean=values["mean"],
        mean_values=values["mean_values"],
        seed=seed,
    )


@contextmanager
def blaming(node: HostNode) -> Iterator[None]:
    """Name the layer whose data cannot be read."""
    try:
        yield
    except (LayerError, ImportError, OutOfMemory):
        raise
    except FileError as error:
        raise LayerError(node.name, f"{node.type}: {error}") from error
    except (SparkNetError, OSError) as error:
        raise LayerError(node.name, f"{node.type}: {error}") from error


def class_numbers(node: HostNode, labels: Any, classes: int, ignored: int | None = None) -> Any:
    """Whole numbers below `classes`, or the one that is ignored; LayerError otherwise."""
    numbers = labels.ravel().astype(np.int64)
    bad = numbers[((numbers < 0) | (numbers >= classes)) & (numbers != ignored)]
    if len(bad):
        raise LayerError(node.name, f"{node.type}: label {bad[0]} is not below {classes} classes")
    return numbers


def rows_of(values: Any) -> Any:
    """Return a view as rows, one for each place of the first axis."""
    return values.reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))


def put_rows(top: HostBlob, rows: Any) -> None:
    """Give a top as many rows as there are, each of its own shape."""
    shape = (len(rows), *tuple(top.shape)[1:])
    if tuple(top.shape) != shape:
        top.reshape(*shape)
    top.data[...] = rows.reshape(shape)


def put_slopes(bottoms: Blobs, slopes: Sequence[Any], propagate_down: Sequence[bool]) -> None:
    """Give each bottom that wants one its gradient."""
    for bottom, slope, propagate in zip(bottoms, slopes, propagate_down, strict=True):
        if propagate:
            bottom.diff[...] = slope.reshape(bottom.shape)
