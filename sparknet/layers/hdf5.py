"""HDF5Data and HDF5Output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sparknet.errors import LayerError, clean
from sparknet.layers.host import BatchHost, Blobs, Host
from sparknet.layers.layer import Layer, Plan, Shape, exactly, layer, legacy_shape, shape_text
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.batches import Array, Arrays, Maker, room
from sparknet.loaders.hdf5 import HDF5Rows, append_rows, dataset_shapes, read_list
from sparknet.proto.untrusted import check_trusted


class HDF5DataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        values, shapes = self.node.plan.values, list(self.node.plan.tops)
        names = list(self.node.layer.parameter.top)
        rows = partial(
            HDF5Rows,
            values["files"],
            names,
            [shape[1:] for shape in shapes],
            values["shuffle"],
            self.seed,
        )
        return partial(HDF5Maker, rows, shapes)


class HDF5Maker:
    def __init__(self, rows: Callable[[], HDF5Rows], shapes: list[Shape], first: int) -> None:
        self.rows, self.shapes = rows(), shapes
        self.rows.skip(first * shapes[0][0])

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        out = room(self.shapes, spare)
        self.rows.fill(out)
        return out

    def close(self) -> None:
        self.rows.close()


NAMES = ("data", "label")


class HDF5OutputHost(Host):
    """The first pass makes the file, later ones add rows; it is complete after each."""

    has_written = False

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        batch: dict[str, Any] = {
            name: bottom.data.reshape(_four(bottom))
            for name, bottom in zip(NAMES, bottoms, strict=True)
        }
        try:
            append_rows(values["file_name"], batch, new_file=not self.has_written)
        except OSError as error:
            raise LayerError(self.node.name, f"HDF5Output: {error}") from error
        self.has_written = True


def _four(blob: Any) -> tuple[int, int, int, int]:
    return blob.num, blob.channels, blob.height, blob.width


@layer("HDF5Data", stock=True)
class HDF5Data(SourceLayer):
    """The first file gives the shapes (Caffe: hdf5_data_layer.cpp)."""

    host = HDF5DataHost
    field = "hdf5_data_param"
    reads_files = has_batch_size = True
    plain_options = ("source", "shuffle")

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


@layer("HDF5Output", stock=True)
class HDF5Output(Layer):
    """Writes data and label, always with four axes (Caffe: hdf5_output_layer.cpp)."""

    host = HDF5OutputHost
    field = "hdf5_output_param"
    bottoms = exactly(2)
    tops = exactly(0)
    has_gradient = False

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        if not self.options.file_name:
            self.fail("needs hdf5_output_param.file_name")
        name = self.options.file_name
        check_trusted(self.parameter, f"to write the file '{clean(name)}'")
        data = legacy_shape(self, bottoms[0], "data")
        label = legacy_shape(self, bottoms[1], "label")
        if data[0] != label[0]:
            self.fail(f"data has {data[0]} items and label {label[0]}; the numbers must be equal")
        return Plan(tops=(), values={"file_name": name, "data": data, "label": label})
