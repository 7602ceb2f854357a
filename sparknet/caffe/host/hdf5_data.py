"""HDF5Data: batches from a list of HDF5 files (Caffe: hdf5_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sparknet.caffe.host.batches import BatchHost
from sparknet.layers import Shape
from sparknet.loaders.hdf5_rows import HDF5Rows
from sparknet.loaders.prefetch import Array, Arrays, Maker, room


class HDF5DataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        values, shapes = self.node.plan.values, list(self.node.plan.tops)
        names = list(self.node.layer.parameter.top)
        rows = partial(
            HDF5Rows,
            values["files"],
            names,
            [shape[1:] for shape in shapes],
            values["shuffle"],
            self.seed,
        )
        return partial(HDF5Maker, rows, shapes)


class HDF5Maker:
    def __init__(self, rows: Callable[[], HDF5Rows], shapes: list[Shape], first: int) -> None:
        self.rows, self.shapes = rows(), shapes
        self.rows.skip(first * shapes[0][0])

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        out = room(self.shapes, spare)
        self.rows.fill(out)
        return out

    def close(self) -> None:
        self.rows.close()
