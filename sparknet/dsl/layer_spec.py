"""One layer as the DSL holds it: a frozen LayerParameter that compares by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from sparknet.dsl.source_code import layer_source
from sparknet.errors import LayerError, SpecError
from sparknet.proto import caffe_pb2, format_text


class Content:
    """A frozen message, compared and hashed by its bytes.

    The hash is the same in every process, so that nets work as keys across
    executors.  Unknown fields are dropped: they could not be written as text."""

    __slots__ = ("_bytes",)
    _bytes: bytes
    _message_class: Any

    def _freeze(self, message: Any) -> None:
        copy = type(message)()
        copy.CopyFrom(message)
        copy.DiscardUnknownFields()
        missing = copy.FindInitializationErrors()
        if missing:
            raise SpecError(f"{missing[0]} is required")
        object.__setattr__(self, "_bytes", copy.SerializeToString(deterministic=True))

    def to_proto(self) -> Any:
        """Return a copy of the message; changing it changes nothing here."""
        return self._message_class.FromString(self._bytes)

    def to_prototxt(self) -> str:
        """Caffe's text format."""
        text: str = format_text(self.to_proto())
        return text

    @property
    def fingerprint(self) -> str:
        """32 hex digits that name the content."""
        return hashlib.blake2b(self._bytes, digest_size=16).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content) or type(other) is not type(self):
            return NotImplemented
        return self._bytes == other._bytes

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed; build another")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed; build another")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self


class LayerSpec(Content):
    """A layer's description: what every builder returns and `NetParams` takes."""

    __slots__ = ("bottoms", "name", "tops", "type")
    _message_class = caffe_pb2.LayerParameter
    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]

    def __init__(self, parameter: Any) -> None:
        self._freeze(parameter)
        for key, value in {
            "name": parameter.name,
            "type": parameter.type,
            "bottoms": tuple(parameter.bottom),
            "tops": tuple(parameter.top),
        }.items():
            object.__setattr__(self, key, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _thaw, (self._bytes,)

    def __repr__(self) -> str:
        return layer_source(self.to_proto())


def _thaw(data: bytes) -> LayerSpec:
    return LayerSpec(caffe_pb2.LayerParameter.FromString(data))


def clear_empty(message: Any, *names: str) -> None:
    """Drop an empty name, which Caffe reads as none."""
    for name in names:
        if not getattr(message, name):
            message.ClearField(name)


def blob_names(layer: str, what: str, values: object) -> list[str]:
    """Bottoms or tops as names: a str, a layer with one top, or several of these."""
    if isinstance(values, str | bytes | LayerSpec | Mapping) or not isinstance(values, Iterable):
        values = [values]
    return [_blob_name(layer, what, item) for item in values]


def _blob_name(layer: str, what: str, item: object) -> str:
    if isinstance(item, LayerSpec):
        if len(item.tops) != 1:
            tops = ", ".join(map(repr, item.tops)) or "none"
            raise LayerError(
                layer, f"{what} '{item.name}' is a layer whose tops are {tops}; name one of them"
            )
        return item.tops[0]
    if not isinstance(item, str):
        raise LayerError(layer, f"{what} {item!r} is neither a blob name nor a layer")
    return item
