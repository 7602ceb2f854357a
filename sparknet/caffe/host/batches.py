"""The base of the layers that read files batch by batch."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.errors import FileError, LayerError, OutOfMemory, SparkNetError
from sparknet.graph import Node
from sparknet.layers.layer import TRAIN
from sparknet.loaders.prefetch import Arrays, Maker, Prefetch
from sparknet.native.transform import Transformation


class BatchHost(Host):
    """Batches come from a thread (`Prefetch`); their first item decides the shape of the tops."""

    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.prefetch = Prefetch(self.maker())
        self._dropped = weakref.finalize(self, self.prefetch.stop)
        self._batch: Arrays | None = None

    @abstractmethod
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        """Opens the source at a batch of some number; knows nothing of this object."""

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        with blaming(self.node):
            batch = self.prefetch.take()
        try:
            for top, values in zip(tops, batch, strict=True):
                if tuple(top.shape) != values.shape:
                    top.reshape(*values.shape)
                top.adopt(values)
        finally:
            # The tops look at the new batch: the one before is nobody's.
            spare, self._batch = self._batch, batch
            self.prefetch.give_back(spare)

    def close(self) -> None:
        self._dropped.detach()
        self.prefetch.close()


def transformation(values: Mapping[str, Any], phase: int, seed: int) -> Transformation:
    """What a layer's plan says about crop, mean, scale and mirror."""
    return Transformation(
        crop=values["crop_size"],
        random_crop=bool(values["crop_size"]) and phase == TRAIN,
        mirror=values["mirror"],
        scale=values["scale"],
        mean=values["mean"],
        mean_values=values["mean_values"],
        seed=seed,
    )


@contextmanager
def blaming(node: Node) -> Iterator[None]:
    """Name the layer whose data cannot be had."""
    try:
        yield
    except (LayerError, ImportError, OutOfMemory):
        raise
    except FileError as error:
        raise LayerError(node.name, f"{node.type}: {error}") from error
    except (SparkNetError, OSError) as error:
        raise LayerError(node.name, f"{node.type}: {error}") from error
