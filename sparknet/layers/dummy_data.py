"""DummyData: blobs that fillers make."""

from __future__ import annotations

from sparknet.layers.fillers import check_filler, constant
from sparknet.layers.layer import Plan, Shape
from sparknet.layers.source_layer import SourceLayer
from sparknet.proto import caffe_pb2


class DummyData(SourceLayer):
    """Caffe: dummy_data_layer.cpp.  A filler that is not constant fills again in each pass.

    Values: fillers (one for each top), refill (whether each fills again).
    """

    type = "DummyData"
    stock = True
    field = "dummy_data_param"
    fills = True

    @property
    def draws(self) -> bool:
        return any(filler.type != "constant" for filler in self.options.data_filler)

    def survey(self) -> Plan:
        shapes = self._shapes(len(self.parameter.top))
        fillers = self._fillers(len(self.parameter.top))
        for filler, shape in zip(fillers, shapes, strict=True):
            check_filler(self.name, filler, shape)
        values = {
            "fillers": tuple(fillers),
            "refill": tuple(filler.type != "constant" for filler in fillers),
        }
        return Plan(tops=tuple(shapes), values=values)

    def _fillers(self, tops: int) -> list[caffe_pb2.FillerParameter]:
        fillers = list(self.options.data_filler)
        if len(fillers) not in (0, 1, tops):
            self.fail(f"{tops} tops need one data_filler, {tops} or none; there are {len(fillers)}")
        return fillers if len(fillers) == tops else (fillers or [constant()]) * tops

    def _shapes(self, tops: int) -> list[Shape]:
        options = self.options
        old = [options.num, options.channels, options.height, options.width]
        if not any(old):
            shapes = [self.declared(shape) for shape in options.shape]
            if len(shapes) not in (1, tops):
                self.fail(f"{tops} tops need one shape or {tops}; there are {len(shapes)}")
            return shapes if len(shapes) == tops else shapes * tops
        if options.shape:
            self.fail("takes either shape or num, channels, height and width; not both")
        for name, sizes in zip(("num", "channels", "height", "width"), old, strict=True):
            if len(sizes) not in (1, tops):
                self.fail(f"{tops} tops need {name} once or {tops} times; it is there {len(sizes)}")
        columns = [list(sizes) * (tops if len(sizes) == 1 else 1) for sizes in old]
        return [tuple(shape) for shape in zip(*columns, strict=True)]
