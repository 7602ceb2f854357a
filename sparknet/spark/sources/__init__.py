"""Formats of Spark for Caffe's data sets: ``spark.read.format("caffe.lmdb")``, and as streams.

This package is imported by nobody else here: its classes cannot be defined without PySpark 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparknet.spark.sources.formats import (
    CaffeSource,
    HDF5Source,
    ImageSource,
    LMDBSource,
    TarSource,
    VideoSource,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "CaffeSource",
    "HDF5Source",
    "ImageSource",
    "LMDBSource",
    "TarSource",
    "VideoSource",
    "register_sources",
]


def register_sources(session: SparkSession) -> None:
    """Let a session read the formats ``caffe.lmdb``, hdf5, images, tars and videos."""
    for source in (LMDBSource, HDF5Source, ImageSource, TarSource, VideoSource):
        session.dataSource.register(source)
