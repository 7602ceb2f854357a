"""Request: the keywords of `SparkModel.transform`, and the outputs that they ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from types import NoneType
from typing import Any, Literal, TypedDict

from sparknet.errors import SparkError
from sparknet.graph.records import Outline
from sparknet.layers import LAYERS, Layer, Shape
from sparknet.layers.layer import BoxRows
from sparknet.loaders.image_files import read_labels
from sparknet.net.entries import dependent
from sparknet.net.fed import FedNet
from sparknet.net.files import fetched
from sparknet.predict.detections import Detections, Mask, PixelRuns
from sparknet.predict.input_columns import column_map
from sparknet.predict.output_columns import Best, Classes, Output, Scalar, Values, Vector
from sparknet.predict.prediction import Invalid
from sparknet.proto.byte_source import StrPath
from sparknet.proto.suggest import did_you_mean

INVALID = ("raise", "null", "drop")
MASKS = ("bytes", "runs")


class _Options(TypedDict, total=False):
    columns: Mapping[str, str] | None
    batch: int | None
    reason: str | None
    top: int | None
    labels: Sequence[str] | StrPath | None
    mask: Literal["bytes", "runs"] | None
    vectors: bool


class FunctionOptions(_Options, total=False):
    """The keywords of `SparkModel.udf` and `register`."""

    invalid: Literal["raise", "null"]


class TransformOptions(_Options, total=False):
    """The keywords of `SparkModel.transform`."""

    prefix: str
    best: str | None
    invalid: Invalid
    key: str | None


@dataclass(frozen=True, kw_only=True)
class Request:
    """The keywords of `SparkModel.transform`; SparkError for values that fit no net."""

    outputs: Sequence[str] | None = None
    columns: Mapping[str, str] | None = None
    prefix: str = ""
    best: str | None = None
    batch: int | None = None
    invalid: Invalid = "raise"
    reason: str | None = None
    key: str | None = None
    top: int | None = None
    labels: Sequence[str] | StrPath | None = None
    mask: str | None = None
    vectors: bool = False

    @classmethod
    def of(cls, what: str, outputs: Sequence[str] | None, keywords: Mapping[str, Any]) -> Request:
        """Return what is asked for by the keywords of a function; SparkError for one it lacks."""
        names = [field.name for field in fields(cls)]
        for name in keywords.keys() - names:
            near = did_you_mean(name, names) or f"; it takes {', '.join(names)}"
            raise SparkError(f"{what} has no keyword '{name}'{near}")
        return cls(outputs=outputs, **keywords)

    def __post_init__(self) -> None:
        if self.outputs is not None:
            is_list = isinstance(self.outputs, (list, tuple))
            if not self.outputs or not is_list or not all(_are(str, *self.outputs)):
                raise SparkError(
                    f"outputs is {self.outputs!r}: a list of the net's blobs is needed"
                )
        column_map(self.columns)
        if not isinstance(self.prefix, str) or not isinstance(self.best, (str, NoneType)):
            both = f"{self.prefix!r} and {self.best!r}"
            raise SparkError(f"prefix and best are columns' names, not {both}")
        for name, value in (("reason", self.reason), ("key", self.key)):
            if not isinstance(value, (str, NoneType)):
                raise SparkError(f"{name} is {value!r}: a column's name is needed")
        for name, size in (("batch", self.batch), ("top", self.top)):
            if size is not None and (type(size) is not int or size < 1):
                raise SparkError(f"{name} is {size!r}: a whole number, at least 1, is needed")
        if self.invalid not in INVALID:
            raise SparkError(f"invalid is {self.invalid!r}: it is one of {', '.join(INVALID)}")
        if self.reason is not None and self.invalid != "null":
            raise SparkError(
                "reason names a column for what is wrong with rows: with invalid='null'"
            )
        if self.mask not in (None, *MASKS):
            raise SparkError(f"mask is {self.mask!r}: it is one of {', '.join(MASKS)}")

    def names(self) -> tuple[str, ...] | None:
        """Return the classes' names: the labels given, or those of a file wherever Spark can
        read.
        """
        if self.labels is None:
            return None
        if isinstance(self.labels, (str, os.PathLike)):
            with fetched(self.labels) as file:
                return tuple(read_labels(file))
        names: list[Any] = [None]
        if isinstance(self.labels, (list, tuple)):
            names = list(self.labels)
        if not all(_are(str, *names)):
            raise SparkError("labels is a file's path, or a list of the classes' names")
        return tuple(names)


def _are(kind: type, *values: object) -> list[bool]:
    return [isinstance(value, kind) for value in values]


def find_outputs(
    tested: FedNet,
    columns: dict[str, str],
    request: Request | None = None,
    known: tuple[str, ...] = (),
) -> list[Output]:
    """Return the outputs for these blobs and columns, by the net's description; ``known`` are
    names of classes for the output that has as many.
    """
    request = request or Request()
    shapes, axes = tested.layout()
    names = request.names()
    outputs: list[Output] = []
    for blob, column in columns.items():
        if _is_numbered(tested, blob):
            outputs.append(Detections(blob, column, names=names))
        else:
            axis = _axis(tested, blob, shapes, axes)
            record = shapes[blob][:axis] + shapes[blob][axis + 1 :]
            fitting = known if prod(record) == len(known) else None
            outputs.append(output_of(blob, column, axis, record, request, names or fitting))
    check_used(outputs, request)
    if request.best is not None and outputs:
        if outputs[0].is_list:
            raise SparkError(
                f"best needs an output with one row per record: '{outputs[0].blob}' has any number"
            )
        outputs.append(Best(outputs[0].blob, request.best, outputs[0].axis))
    return outputs


def output_of(
    blob: str,
    column: str,
    axis: int,
    record: Shape,
    request: Request,
    names: tuple[str, ...] | None,
) -> Output:
    if request.mask is not None and len(record) == 3:
        if request.mask == "bytes" and record[0] > _BYTE:
            raise SparkError(f"blob '{blob}' has {record[0]} classes: ask for mask='runs'")
        kind = Mask if request.mask == "bytes" else PixelRuns
        return kind(blob, column, axis, shape=tuple(record))
    classes = prod(record)
    if request.top is not None and max(record, default=1) == classes > 1:
        if names is not None and len(names) < classes:
            raise SparkError(f"there are {len(names)} labels for the {classes} classes of '{blob}'")
        return Classes(blob, column, axis, top=min(request.top, classes), names=names)
    if classes == 1 and not (request.vectors and record):
        return Scalar(blob, column, axis)
    return (Vector if request.vectors else Values)(blob, column, axis)


_BYTE = 256


def check_used(found: Sequence[Output], request: Request) -> None:
    """SparkError for a keyword that none of the outputs follows."""
    listing = ", ".join(f"'{output.blob}'" for output in found)
    if request.top is not None and not any(isinstance(one, Classes) for one in found):
        raise SparkError(f"top needs an output with one value per class, not {listing}")
    if request.mask is not None and not any(isinstance(one, (Mask, PixelRuns)) for one in found):
        raise SparkError(f"mask needs an output of classes x height x width, not {listing}")
    if request.labels is not None and not any(isinstance(o, (Classes, Detections)) for o in found):
        raise SparkError(
            "labels name the classes of detections, or with top=5 those of the five best classes"
        )


def _is_numbered(tested: FedNet, name: str) -> bool:
    made_by = [layer for layer in tested.described.layer if name in layer.top]
    return any(issubclass(LAYERS.get(layer.type, Layer), BoxRows) for layer in made_by)


def _axis(tested: FedNet, name: str, shapes: dict[str, Shape], axes: Mapping[str, int]) -> int:
    counts = {entry.batch for entry in tested.entries}
    shape, axis = shapes[name], axes.get(name)
    if axis is None or shape[axis] not in counts:
        listing = " or ".join(map(str, sorted(counts)))
        raise SparkError(f"blob '{name}' is {shape}: it has no row for each of {listing} records")
    return axis


ENOUGH = 64
"""Large nets gain little from more: CaffeNet predicts 33 records/s singly, 152 in 32s or 64s."""
MOST = 1024
"""Small nets gain from more, because each batch costs 0.1 ms of Python: LeNet predicts 27,000
records/s in 64s and 29,000 in 128s, an MLP of 100 inputs 210,000 in 64s and 330,000 in 1024s."""
_SMALL = 8 << 20
"""The largest blob of such a batch in bytes."""
_LARGEST = 64 << 20
"""The limit of the largest blob in bytes: larger batches only take memory."""
_FLOAT = 4


def batch_for(tested: FedNet, outputs: Sequence[str]) -> int:
    """Return the batch size of the net's description, or more where records do not affect each
    other.
    """
    described = tested.batch
    inputs = {entry.name: entry.shape for entry in tested.entries}
    outline = Outline(tested.described.layer, tested.phase)
    shapes, axes = outline.axes(inputs, {entry.name: entry.axis for entry in tested.entries})
    fed = dependent(tested.described, list(inputs))
    for layer in _above(outline.layers, outputs):
        bottoms = [name for name in layer.parameter.bottom if name in fed]
        if any(name not in axes for name in (*bottoms, *(layer.parameter.top if bottoms else ()))):
            return described
        if any(layer.mixes(shapes[name], axes[name]) for name in bottoms):
            return described
    record = _FLOAT * max(prod(shape) for shape in shapes.values()) // max(described, 1)
    batch = ENOUGH
    while batch > 1 and batch * record > _LARGEST:
        batch //= 2
    while batch < MOST and 2 * batch * record <= _SMALL:
        batch *= 2
    return max(batch, described)


def _above(layers: Sequence[Layer], outputs: Sequence[str]) -> Iterator[Layer]:
    """Yield the layers that the outputs depend on."""
    needed = set(outputs)
    for layer in reversed(layers):
        if not needed.isdisjoint(layer.parameter.top):
            needed.update(layer.parameter.bottom)
            yield layer


def largest_results(tested: FedNet, outputs: Sequence[str], batch: int) -> int:
    """Return the most rows of an Arrow batch of results, a multiple of ``batch``: 64 MiB of
    values.
    """
    shapes, axes = tested.layout()
    record = sum(
        prod(size for at, size in enumerate(shapes[name]) if at != axes.get(name))
        for name in outputs
    )
    return max(_LARGEST // (_FLOAT * max(record, 1)) // batch, 1) * batch
