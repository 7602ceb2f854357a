"""What a conversion says of other sizes than those that it was made for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

import numpy as np

from sparknet.errors import FileError, clean
from sparknet.layers import Shape
from sparknet.layers.layer import MAX_COUNT
from sparknet.onnx.conversion import Reading
from sparknet.onnx.length_constants import begins, like
from sparknet.onnx.limits import MALFORMED
from sparknet.onnx.netlist import NetLayer
from sparknet.onnx.records import COMPUTES, COMPUTES_WITH_LENGTH, GIVE, STRIDE, is_open
from sparknet.onnx.replay import Replay
from sparknet.onnx.sizes import RECORDS, evaluate_all

_RESULT = re.compile(r"(?<=its result has )[0-9]+")
_MISFIT = re.compile(r"do not fit each other$|does not become \[[^]]*\]$")
_LARGE = re.compile(r" is the most$|the constants that the model computes are too large$")
_OUTSIDE = re.compile(r"is out of (bounds|range) for axis")


def grow(reading: Reading, longest: int) -> None:
    """Let each constant that is as long as the input be as long as the longest one."""
    path, net = reading.source.path, reading.net
    sizes = reading.folds.sizes(lambda _: longest)
    replay = Replay(reading.folds, sizes)
    for growth in reading.growths:
        layer, short = growth.layer, growth.layer.arrays[0]
        problem = f"'{clean(growth.name)}' is a constant that changes with the length of the input"
        try:
            constant = replay.array(growth.name)
        except MALFORMED as error:
            raise FileError(path, f"{problem}: {error}; {longest} is the longest: {GIVE}") from None
        if growth.slope:
            constant = constant - constant.dtype.type(growth.slope * longest)
        whole = growth.part(constant)
        if whole.ndim != short.ndim:
            raise FileError(path, f"{problem}: {GIVE}")
        long = np.ascontiguousarray(like(whole, short), np.float32)
        if not begins(long, short):
            raise FileError(path, f"{problem} otherwise than by its end: {GIVE}")
        layer.arrays = [long]
        layer.parameter.parameter_param.shape.dim[:] = long.shape
        net.blobs[layer.parameter.top[0]].stored = long.shape
        net.replan(layer)
    if reading.growths:
        where = f" for {longest} places, the longest input; the exporter may have fixed a size"
        _shapes(reading, sizes, f"{where}: {GIVE}")


def check_shapes(reading: Reading) -> None:
    """Refuse a net in which a size is a number that depends on an open size."""
    folds, net = reading.folds, reading.net
    for symbol, example in folds.open_sizes.items() if is_open(reading.source) else ():
        sizes = {**folds.open_sizes, symbol: example - (STRIDE if symbol in net.images else 1)}
        problem = COMPUTES_WITH_LENGTH if reading.lengths else COMPUTES
        for top, shape in _shapes(reading, sizes, f"; {problem}").items():
            same = evaluate_all(map(net.size_of, net.blobs[top].stored), sizes)
            if shape != same and net.makers[top].type != "Parameter":
                raise FileError(reading.source.path, f"{_layer(net.makers[top])}: {problem}")


def _shapes(reading: Reading, sizes: Mapping[str, int], where: str) -> dict[str, Shape]:
    """Return the shapes of all blobs for other open sizes."""
    shapes = dict[str, Shape]()
    for layer in reading.net.layers:
        tops, bottoms = layer.parameter.top, layer.parameter.bottom
        if layer.layer.is_input:
            shapes |= {top: evaluate_all(reading.net.blobs[top].stored, sizes) for top in tops}
            continue
        try:
            plan = layer.layer.plan([shapes[name] for name in bottoms])
        except MALFORMED as error:
            text = f"{_layer(layer)}: {error}{where}"
            raise FileError(reading.source.path, text) from None
        for param, array in zip(plan.params, layer.arrays, strict=True):
            if prod(param.shape) != array.size:
                text = f"{_layer(layer)}: it needs numbers for each place of the input"
                raise FileError(reading.source.path, f"{text}{where}")
        shapes.update(zip(tops, plan.tops, strict=True))
    return shapes


def _layer(layer: NetLayer) -> str:
    return f"layer '{clean(layer.parameter.name)}' ({layer.type})"


def is_too_large(error: FileError) -> bool:
    """Return whether a model may come in with smaller examples."""
    text = str(error)
    many = f"more than {MAX_COUNT} values"
    return many in text or any(one.search(text) for one in (_LARGE, _OUTSIDE))


def with_cure(reading: Reading, error: FileError) -> FileError:
    """Return a refusal with the cure for a model whose sizes are open."""
    path, records = reading.source.path, reading.records
    text = str(error).removeprefix(f"{path}: ")
    if is_open(reading.source) and _MISFIT.search(text):
        text += f"; the exporter may have fixed a size: {GIVE}"
    elif is_open(reading.source) and _LARGE.search(text):
        text = _RESULT.sub(lambda one: f"{int(one[0]) / records:g}{RECORDS}", text)
        text += f", and the model is read for several numbers of records: {GIVE}"
    return FileError(path, text)
