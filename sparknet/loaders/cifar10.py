"""CIFAR-10's binary files: a label and 3 x 32 x 32 bytes, again and again."""

from __future__ import annotations

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.mapped import FileRecords, map_file
from sparknet.native.guard import Guard
from sparknet.proto.byte_source import StrPath

ROW = np.dtype([("label", np.uint8), ("data", np.uint8, (3, 32, 32))])


class CIFAR10(FileRecords):
    """data: 3 x 32 x 32 bytes, red, green and blue as stored; label.  One file, mapped."""

    def __init__(self, path: StrPath) -> None:
        guards: list[Guard] = []
        memory = map_file(path, guards)
        if len(memory) % ROW.itemsize:
            raise FileError(
                path, f"is no CIFAR-10 file: its length is no multiple of {ROW.itemsize}"
            )
        rows = memory.view(ROW)
        super().__init__(guards, data=rows["data"], label=rows["label"].astype(np.int32))
