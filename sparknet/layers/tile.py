"""Tile: copies of a blob side by side along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape


class Tile(Layer):
    """Caffe: tile_layer.cpp."""

    type = "Tile"
    stock = True
    field = "tile_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        axis = self.axis(self.options.axis, bottom)
        if not self.options.HasField("tiles"):
            self.fail("the number of tiles must be given")
        tiles = self.options.tiles
        if tiles < 1:
            self.fail(f"tiles must be positive; it is {tiles}")
        top = (*bottom[:axis], bottom[axis] * tiles, *bottom[axis + 1 :])
        return Plan((top,), values={"axis": axis, "tiles": tiles})
