"""What is known about each field, looked up once for each message type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_KINDS: Mapping[int, str] = {
    FieldDescriptor.CPPTYPE_INT32: "int32",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT32: "uint32",
    FieldDescriptor.CPPTYPE_UINT64: "uint64",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_ENUM: "enum",
    FieldDescriptor.CPPTYPE_STRING: "string",
    FieldDescriptor.CPPTYPE_MESSAGE: "message",
}


class HasMessage(Protocol):
    """What makes a message of itself, as `NetParams`, `SolverParams` and NetSpec do."""

    def to_proto(self) -> Any: ...


class Field(NamedTuple):
    """One field of a message type."""

    name: str
    number: int
    kind: str
    repeated: bool
    numbers: Mapping[str, int]  # of an enumeration: by name
    names: Mapping[int, str]
    message: Descriptor | None


Table = dict[str, Field]

_tables: dict[Descriptor, Table] = {}


def table(descriptor: Any) -> Table:
    """Return the fields of a message type, by name, in the order of their numbers."""
    fields = _tables.get(descriptor)
    if fields is None:
        ordered = sorted(descriptor.fields, key=lambda field: field.number)
        fields = _tables[descriptor] = {field.name: _field(field) for field in ordered}
    return fields


def _field(descriptor: FieldDescriptor) -> Field:
    kind = _KINDS[descriptor.cpp_type]
    if descriptor.type == FieldDescriptor.TYPE_BYTES:
        kind = "bytes"
    values = descriptor.enum_type.values if descriptor.enum_type else ()
    return Field(
        descriptor.name,
        descriptor.number,
        kind,
        is_repeated(descriptor),
        {value.name: value.number for value in values},
        {value.number: value.name for value in reversed(values)},
        descriptor.message_type,
    )


def is_repeated(descriptor: FieldDescriptor) -> bool:
    """Return whether a field holds a list."""
    # protobuf 7 has no `label` any more, protobuf 4 not yet `is_repeated`.
    if hasattr(descriptor, "is_repeated"):
        return bool(descriptor.is_repeated)
    return bool(getattr(descriptor, "label") == FieldDescriptor.LABEL_REPEATED)  # noqa: B009
