"""HDF5Data: batches from a list of HDF5 files; the tops are names of data sets."""

from __future__ import annotations

from typing import Any

from sparknet.layers.layer import Plan, shape_text
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.hdf5 import dataset_shapes, read_list


class HDF5Data(SourceLayer):
    """The first file gives the shapes (Caffe: hdf5_data_layer.cpp).

    Values: source, files (as listed), batch_size, shuffle.
    """

    type = "HDF5Data"
    stock = True
    field = "hdf5_data_param"
    reads = batches = True
    copied = ("source", "shuffle")

    def data_set(self) -> Any:
        from sparknet.loaders.opening import open_records

        return open_records(self.options.source)

    def survey(self) -> Plan:
        if self.parameter.HasField("transform_param"):
            self.fail("does not transform data; remove transform_param")
        options = self.options
        batch = self.batch(options.batch_size)
        with self.reading(f"the list '{options.source}'"):
            files = read_list(options.source)
        if not files:
            self.fail(f"the list '{options.source}' names no file")
        with self.reading("the first file"):
            shapes = dataset_shapes(files[0], list(self.parameter.top), batch)
        for shape in shapes:
            if shape[0] != shapes[0][0]:
                self.fail(
                    f"the data sets of {files[0]} must have the same number of rows; "
                    f"their shapes are {', '.join(map(shape_text, shapes))}"
                )
        values = {"files": tuple(files), "batch_size": batch}
        return Plan(tops=tuple((batch, *shape[1:]) for shape in shapes), values=values)
