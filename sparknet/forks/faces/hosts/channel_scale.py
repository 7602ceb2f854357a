"""ChannelScale: channels times one number (happynear/caffe-windows: channel_scale_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host


class ChannelScaleHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        x = bottoms[0].data
        scales = self.node.plan.values["forward"]
        tops[0].data[...] = x * _spread(bottoms) if scales else x

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        values, given = self.node.plan.values, tops[0].diff
        if propagate_down[0]:
            bottoms[0].diff[...] = given * _spread(bottoms) if values["feature"] else given
        if propagate_down[1]:
            slope = (bottoms[0].data * given).sum(1) if values["scale"] else np.zeros(())
            bottoms[1].diff[...] = np.broadcast_to(slope, _places(bottoms)).reshape(
                bottoms[1].shape
            )


def _places(bottoms: Sequence[Blob]) -> tuple[int, ...]:
    shape = tuple(bottoms[0].shape)
    return (shape[0], *shape[2:])


def _spread(bottoms: Sequence[Blob]) -> Any:
    """The scales with an axis for the channels."""
    return np.expand_dims(bottoms[1].data.reshape(_places(bottoms)), 1)
