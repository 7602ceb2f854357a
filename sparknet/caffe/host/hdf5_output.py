"""HDF5Output: its bottoms go to a file (Caffe: hdf5_output_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.errors import LayerError
from sparknet.loaders.hdf5 import append_rows

NAMES = ("data", "label")


class HDF5OutputHost(Host):
    """The first pass makes the file, later ones add rows; it is complete after each."""

    begun = False

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        batch: dict[str, Any] = {
            name: bottom.data.reshape(_four(bottom))
            for name, bottom in zip(NAMES, bottoms, strict=True)
        }
        try:
            append_rows(values["file_name"], batch, new_file=not self.begun)
        except OSError as error:
            raise LayerError(self.node.name, f"HDF5Output: {error}") from error
        self.begun = True


def _four(blob: Blob) -> tuple[int, int, int, int]:
    return blob.num, blob.channels, blob.height, blob.width
