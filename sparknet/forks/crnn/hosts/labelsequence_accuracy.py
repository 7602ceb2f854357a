"""LabelsequenceAccuracy: whole sequences right (crnn.caffe: labelsequence_accuracy_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.caffe.host.rows import rows_of


class LabelsequenceAccuracyHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        blank = self.node.plan.values["blank"]
        found = bottoms[0].data.argmax(2).tolist()
        labels = rows_of(bottoms[1].data).astype(int).tolist()
        right = [
            [label for label, _ in groupby(said) if label != blank]
            == [label for label in wanted if label != blank]
            for said, wanted in zip(found, labels, strict=True)
        ]
        tops[0].data[...] = sum(right) / max(len(right), 1)
