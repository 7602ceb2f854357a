"""BoxData: images with boxes in Datums, for YOLOv2."""

from __future__ import annotations

from sparknet.layers.layer import Plan, Shape, at_least
from sparknet.layers.source_layer import SourceLayer
from sparknet.layers.transform_param import TransformParam
from sparknet.loaders.datum import parse_datum, stored_shape
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.proto import caffe_pb2

BOXES = 30
"""Boxes that a label has room for."""


class BoxData(SourceLayer):
    """box_data_layer.cpp of caffe-yolov2; records are encoded Datums, whose float_data has six
    numbers for each box: class, difficult, centre, width and height in shares of the image.

    Top 1 is N x 150: of each box class, centre, width and height, then zeros.  In TRAIN a part of
    at least 70 % of each side is taken, in which a box's centre lies, and resized to the image.
    Values: source, backend, batch_size, labels, and those of `TransformParam`.
    """

    type = "BoxData"
    field = "data_param"
    fields = ("transform_param",)
    tops = at_least(1)
    reads = batches = True
    copied = ("source",)

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        transform = TransformParam(self, self.parameter.transform_param)
        database = LMDB if options.backend == caffe_pb2.DataParameter.LMDB else LevelDB
        with self.reading(f"the database '{options.source}'"):
            with database(options.source) as records:
                key, value = records.first()
            datum = parse_datum(value, options.source, key)
            transform.check_color()
            shape = stored_shape(datum, options.source, key, color=transform.color)
        labels = len(self.parameter.top) - 1
        values = {
            "backend": "lmdb" if database is LMDB else "leveldb",
            "batch_size": batch,
            "labels": labels,
            **transform.values(),
        }
        tops: tuple[Shape, ...] = ((batch, *transform.output(shape)),)
        return Plan((*tops, *((batch, 5 * BOXES),) * labels), values=values)

    def data_set(self) -> None:
        return None
