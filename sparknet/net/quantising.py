"""Net.quantize: what a net's blobs are rounded to in eight bits, found on some records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2

if TYPE_CHECKING:
    from sparknet.net.net import Net

RECORDS = 512
"""The records that a calibration looks at, unless told otherwise."""


def calibrate(
    net: Net, records: Any, method: str, float32: Iterable[str], most: int
) -> caffe_pb2.Int8Parameter:
    """Run a net of float32 that keeps its blobs over some records."""
    from sparknet.caffe.int8 import Calibration

    if most < 1:
        raise SpecError(f"a calibration looks at 1 record or more, not {most}")
    if records is not None:
        net.set_validation_data(records)
    fed, looked = net.tested, 0
    calibration: Calibration | None = None
    while looked < most and (rows := fed.fill(endless=False)):
        fed.net.forward()
        calibration = calibration or Calibration(fed.net.graph)
        calibration.note({name: fed.net.blobs[name].data for name in calibration.blobs})
        looked += rows
    if calibration is None:
        raise SpecError("there are no records to calibrate on")
    return calibration.done(method, float32)
