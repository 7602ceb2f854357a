"""Data: batches from a LevelDB or LMDB of Datum records."""

from __future__ import annotations

from typing import Any

from sparknet.layers.layer import Plan, Shape, between
from sparknet.layers.source_layer import SourceLayer
from sparknet.layers.transform_param import TransformParam
from sparknet.loaders.datum import parse_datum, stored_shape
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.proto import caffe_pb2


class Data(SourceLayer):
    """The first record gives the shape; a second top gives the labels (Caffe: data_layer.cpp).

    Values: source, backend ("leveldb" or "lmdb"), batch_size, labels (a second top is
    there), shuffle, and those of `TransformParam`.

    ``shuffle``, of several forks, gives each round an order of its own.
    """

    type = "Data"
    stock = True
    field = "data_param"
    fields = ("transform_param",)
    tops = between(1, 2)
    reads = batches = pictures = True
    copied = ("source", "backend", "shuffle")

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        transform = TransformParam(self, self.parameter.transform_param, sized=True)
        channels, height, width = transform.output(self._record_shape(transform))
        labels = len(self.parameter.top) > 1
        values = {"batch_size": batch, "labels": labels, **transform.values()}
        tops: tuple[Shape, ...] = ((batch, channels, height, width),)
        return Plan(tops=(*tops, (batch,)) if labels else tops, values=values)

    def data_set(self) -> Any:
        from sparknet.loaders.opening import open_records

        return open_records(self.options.source, kind="datums")

    def _record_shape(self, transform: TransformParam) -> tuple[int, int, int]:
        options = self.options
        database = LMDB if options.backend == caffe_pb2.DataParameter.LMDB else LevelDB
        with self.reading(f"the database '{options.source}'"):
            with database(options.source) as records:
                key, value = records.first()
            datum = parse_datum(value, options.source, key)
            if datum.encoded:
                transform.check_color()
            return stored_shape(datum, options.source, key, color=transform.color)
