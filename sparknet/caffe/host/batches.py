"""The base of the layers that read files batch by batch."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sparknet.caffe.blob import Blob, EngineBlob, ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.errors import FileError, LayerError, OutOfMemory, SparkNetError
from sparknet.graph import Node
from sparknet.layers.layer import TRAIN
from sparknet.loaders.prefetch import Array, Arrays, Maker, Prefetch
from sparknet.native.batch_items import Transformation


class BatchHost(Host):
    """Batches come from a thread (`Prefetch`); their first item decides the shape of the tops."""

    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.prefetch = Prefetch(self.maker())
        self._dropped = weakref.finalize(self, self.prefetch.stop)
        self._looked_at: dict[int, Array] = {}
        """Arrays that tops use as storage, by the tops' places."""

    @abstractmethod
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        """A function that opens the source at a batch number, without a reference to this host."""

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        with blaming(self.node):
            batch = self.prefetch.take()
        spare: list[Array | None] = []
        try:
            for place, (top, values) in enumerate(zip(tops, batch, strict=True)):
                spare.append(self._hand_over(place, top, values))
        finally:
            self.prefetch.give_back([array for array in spare if array is not None])

    def _hand_over(self, place: int, top: Blob, values: Array) -> Array | None:
        """Give a top its values; returns the array that is no longer in use."""
        if tuple(top.shape) != values.shape:
            top.reshape(*values.shape)
        assert isinstance(top, EngineBlob)
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
        """A later pass opens the files again, at the next batch."""
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
def blaming(node: Node) -> Iterator[None]:
    """Name the layer whose data cannot be read."""
    try:
        yield
    except (LayerError, ImportError, OutOfMemory):
        raise
    except FileError as error:
        raise LayerError(node.name, f"{node.type}: {error}") from error
    except (SparkNetError, OSError) as error:
        raise LayerError(node.name, f"{node.type}: {error}") from error
