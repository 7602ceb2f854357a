"""What a conversion says of other sizes than those that it was made for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean
from sparknet.layers import Shape
from sparknet.onnx.conversion import Reading
from sparknet.onnx.length_constants import begins, like
from sparknet.onnx.limits import MALFORMED
from sparknet.onnx.records import COMPUTES, GIVE, is_open
from sparknet.onnx.replay import Replay
from sparknet.onnx.sizes import evaluate_all

_COMPARING = ("Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min")
_NUMBERS = (1, 2, 3, 64, 10**4)
_MOST = 10**6
_NUMBER = re.compile(r"\b[0-9]+\b")
_MISFIT = re.compile(r"do not fit each other$|does not become \[[^]]*\]$")
_LARGE = re.compile(r" is the most$|the constants that the model computes are too large$")


def grow(reading: Reading, longest: int) -> None:
    """Let each constant that is as long as the input be as long as the longest one."""
    path, net = reading.source.path, reading.net
    sizes = reading.folds.sizes(length=lambda _: longest)
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
    _check_shapes(reading, sizes, longest)


def _check_shapes(reading: Reading, sizes: Mapping[str, int], longest: int) -> None:
    """Refuse a net whose layers do not fit each other for the longest input."""
    shapes = dict[str, Shape]()
    for layer in reading.net.layers:
        tops, bottoms = layer.parameter.top, layer.parameter.bottom
        if layer.layer.is_input:
            shapes |= {top: evaluate_all(reading.net.blobs[top].stored, sizes) for top in tops}
            continue
        try:
            plan = layer.layer.plan([shapes[name] for name in bottoms])
        except MALFORMED as error:
            what = f"layer '{clean(layer.parameter.name)}' ({layer.type}): {error}"
            raise FileError(
                reading.source.path,
                f"{what} for {longest} places, the longest input; the exporter may have fixed a "
                f"size: {GIVE}",
            ) from None
        shapes.update(zip(tops, plan.tops, strict=True))


def check_compared(first: Reading, second: Reading) -> None:
    """Refuse a number of records in what does not grow evenly, as comparisons and roots."""
    folds, lines, numbers = first.folds, dict[str, tuple[Any, Any]](), set(_NUMBERS)
    for name in folds.nodes:
        start, end = first.values[name], second.values.get(name)
        if (
            isinstance(start, np.ndarray)
            and isinstance(end, np.ndarray)
            and start.shape == end.shape
        ):
            with np.errstate(invalid="ignore"):
                slope = (end.astype(float) - start) / (second.records - first.records)
            lines[name] = start.astype(float), np.where(start == end, 0, slope)
    for node, _ in folds.nodes.values():
        if node.op in _COMPARING and not lines.keys().isdisjoint(node.inputs):
            values = [lines.get(name, (first.values.get(name), 0)) for name in node.inputs if name]
            for (start, slope), (other, its) in pairwise(values):
                with np.errstate(divide="ignore", invalid="ignore"):
                    meets = np.unique(first.records + (other - start) / (slope - its))
                numbers.update(int(one) for one in meets[np.isfinite(meets)] if 1 <= one < _MOST)
    for number in numbers:
        replay = Replay(folds, folds.sizes(number - first.records))
        for name, (start, slope) in lines.items():
            line = start + slope * (number - first.records)
            with suppress(*MALFORMED), np.errstate(invalid="ignore"):
                array = replay.array(name)
                slack = 0 if array.dtype.kind in "biu" else 0.01
                apart = np.abs(array.astype(float) - line) > 0.01 * np.abs(line) + slack
                if array.shape != line.shape or apart.any():
                    raise first.source.refuse(folds.nodes[name][0], COMPUTES)


def counted(reading: Reading, error: FileError) -> FileError:
    """Return a refusal with sizes instead of the numbers that stand for them."""
    path, net = reading.source.path, reading.net

    opens = [net.size_of(one) for one in (net.batch, *net.lengths)]

    def in_terms(number: re.Match[str]) -> str:
        size = int(number[0])
        if size < min(opens):
            return number[0]
        times = (f"{size // int(one)}{one}" for one in opens if size % int(one) == 0)
        return str(net.sizes.get(size) or (next(times, size) if is_large else size))

    text = str(error).removeprefix(f"{path}: ")
    is_large = _LARGE.search(text)
    if is_open(reading.source):
        text = _NUMBER.sub(in_terms, text)
        if _MISFIT.search(text):
            text += f"; the exporter may have fixed a size: {GIVE}"
        elif is_large:
            text += f", and the model is read for several numbers of records: {GIVE}"
    return FileError(path, text)
