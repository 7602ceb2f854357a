"""HDF5Output: writes its bottoms to a file."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.errors import shown
from sparknet.layers.layer import Layer, Plan, Shape, exactly
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.proto.untrusted import check_trusted


class HDF5Output(Layer):
    """Writes data and label, always with four axes (Caffe: hdf5_output_layer.cpp).

    Values: file_name, data and label (the four axes of each data set).
    """

    type = "HDF5Output"
    stock = True
    field = "hdf5_output_param"
    bottoms = exactly(2)
    tops = exactly(0)
    gradient = False

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        if not self.options.file_name:
            self.fail("needs hdf5_output_param.file_name")
        name = self.options.file_name
        check_trusted(self.parameter, f"to write the file '{shown(name)}'")
        data = legacy_shape(self, bottoms[0], "data")
        label = legacy_shape(self, bottoms[1], "label")
        if data[0] != label[0]:
            self.fail(f"data has {data[0]} items and label {label[0]}; the numbers must be equal")
        values = {"file_name": name, "data": data, "label": label}
        return Plan(tops=(), values=values)
