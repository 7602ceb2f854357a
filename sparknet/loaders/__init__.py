"""Where data comes from: databases, files and images as records; orders, batches, transforms.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "batches": ("Batches", "one_pass"),
    "blocks": ("Blocks", "write_blocks"),
    "datums": ("Datums", "mean_of"),
    "hdf5": ("HDF5File",),
    "image_files": ("ImageFiles",),
    "mnist_cifar10": ("CIFAR10", "MNIST", "download"),
    "numpy_files": ("NumpyFiles",),
    "opening": ("open_records",),
    "order": ("Order",),
    "parquet": ("Parquet",),
    "preprocessing": ("Preprocessing",),
    "records": ("ArrayRecords", "Chain", "Column", "Records", "Subset"),
    "tars": ("Tars",),
    "transform": ("Transform",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CIFAR10",
    "MNIST",
    "ArrayRecords",
    "Batches",
    "Blocks",
    "Chain",
    "Column",
    "Datums",
    "HDF5File",
    "ImageFiles",
    "NumpyFiles",
    "Order",
    "Parquet",
    "Preprocessing",
    "Records",
    "Subset",
    "Tars",
    "Transform",
    "download",
    "mean_of",
    "one_pass",
    "open_records",
    "write_blocks",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOME_OF:
            value = getattr(import_module(f"sparknet.loaders.{_HOME_OF[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'sparknet.loaders' has no attribute {name!r}")

else:
    from sparknet.loaders.batches import Batches, one_pass
    from sparknet.loaders.blocks import Blocks, write_blocks
    from sparknet.loaders.datums import Datums, mean_of
    from sparknet.loaders.hdf5 import HDF5File
    from sparknet.loaders.image_files import ImageFiles
    from sparknet.loaders.mnist_cifar10 import CIFAR10, MNIST, download
    from sparknet.loaders.numpy_files import NumpyFiles
    from sparknet.loaders.opening import open_records
    from sparknet.loaders.order import Order
    from sparknet.loaders.parquet import Parquet
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.loaders.records import ArrayRecords, Chain, Column, Records, Subset
    from sparknet.loaders.tars import Tars
    from sparknet.loaders.transform import Transform
