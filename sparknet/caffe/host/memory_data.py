"""MemoryData: batches from arrays that the caller hands over (Caffe: memory_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.errors import LayerError
from sparknet.graph import Node
from sparknet.layers.layer import shape_text


class MemoryDataHost(Host):
    """The arrays are used without a copy where they are float32 in C order."""

    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.batch: int = node.plan.values["batch_size"]
        self.arrays: tuple[Any, ...] = ()
        self.position = 0

    def set_arrays(self, data: Any, labels: Any, sizes: Any = None) -> None:
        """Start again with these arrays (Caffe: _caffe.cpp, Net_SetInputArrays; pycaffe.py)."""
        values = self.node.plan.values
        shape = (values["channels"], values["height"], values["width"])
        self._check_floats(data, "data")
        self._check_floats(labels, "labels")
        data, labels = np.ascontiguousarray(data), np.ascontiguousarray(labels)
        if data.ndim != 4 or data.shape[1:] != shape:
            self._refuse(f"data must be N x {shape_text(shape)}; it is {shape_text(data.shape)}")
        if labels.ndim == 0 or labels.size != len(labels) or len(labels) != len(data):
            self._refuse(
                f"{len(data)} items need as many labels; they are {shape_text(labels.shape)}"
            )
        if len(data) == 0 or len(data) % self.batch:
            self._refuse(f"{len(data)} items are not a multiple of the batch size {self.batch}")
        # Four axes, whatever the label's shape was before the first pass (Forward_cpu).
        arrays = (data, labels.reshape(-1, 1, 1, 1), self._sizes(sizes, data))
        self.arrays, self.position = arrays[: len(self.node.tops)], 0

    def _sizes(self, sizes: Any, data: Any) -> Any:
        """The height and width of each picture, for a third top."""
        if sizes is None:
            return np.full((len(data), 1, 1, 2), data.shape[2:], np.float32)
        self._check_floats(sizes, "sizes")
        if len(self.node.tops) < 3:
            self._refuse("sizes need a third top")
        if sizes.size != 2 * len(data):
            self._refuse(
                f"{len(data)} items need as many sizes, each of height and width; "
                f"they are {shape_text(sizes.shape)}"
            )
        return np.ascontiguousarray(sizes).reshape(-1, 1, 1, 2)

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        if not self.arrays:
            self._refuse("has no data yet: call set_input_arrays first")
        part = slice(self.position, self.position + self.batch)
        for top, values in zip(tops, self.arrays, strict=True):
            batch = values[part]
            if tuple(top.shape) != batch.shape:
                top.reshape(*batch.shape)
            top.data[...] = batch
        self.position = part.stop % len(self.arrays[0])

    def _check_floats(self, array: Any, what: str) -> None:
        if not isinstance(array, np.ndarray):
            self._refuse(f"{what} must be a float32 array; it is a {type(array).__name__}")
        if array.dtype != np.float32:
            self._refuse(f"{what} must be float32; it is {array.dtype}: use .astype(numpy.float32)")

    def _refuse(self, reason: str) -> NoReturn:
        raise LayerError(self.node.name, f"MemoryData: {reason}")
