"""ContinuationIndicator (crnn.caffe: continuation_indicator_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host


class ContinuationIndicatorHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        tops[0].data[...] = 1
        tops[0].data[0] = 0
