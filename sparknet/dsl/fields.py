"""Set a message's fields from keywords, more strictly than protobuf: numbers must fit."""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from keyword import iskeyword
from typing import Any, NoReturn, cast

from sparknet.layers import LAYERS
from sparknet.proto import caffe_pb2
from sparknet.proto.message_fields import is_repeated
from sparknet.proto.suggest import did_you_mean

Fail = Callable[[str], NoReturn]
"""Raises the caller's error with the sentence it is given."""

SHORTHANDS = {
    "BlobShape": "dim",
    "FillerParameter": "type",
    "NetStateRule": "phase",
    "ParamSpec": "name",
}
"""Messages that may be written as the value of one field: ``weight_filler="xavier"``."""

_INTEGERS = {
    "CPPTYPE_INT32": (-(2**31), 2**31 - 1, "int32"),
    "CPPTYPE_UINT32": (0, 2**32 - 1, "uint32"),
    "CPPTYPE_INT64": (-(2**63), 2**63 - 1, "int64"),
    "CPPTYPE_UINT64": (0, 2**64 - 1, "uint64"),
}
_REALS = {
    "CPPTYPE_FLOAT": (3.4028235677973366e38, "float"),
    "CPPTYPE_DOUBLE": (math.inf, "double"),
}
_KINDS = ("INT32", "UINT32", "INT64", "UINT64", "FLOAT", "DOUBLE", "BOOL", "ENUM", "STRING")


def short_repr(value: object) -> str:
    """Return a value as an error message shows it: its repr, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def kind(field: Any) -> str:
    """Return a field's cpp_type by name, e.g. ``CPPTYPE_FLOAT``; ``TYPE_BYTES`` for bytes."""
    if field.type == field.TYPE_BYTES:
        return "TYPE_BYTES"
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return "CPPTYPE_MESSAGE"
    return next(
        f"CPPTYPE_{name}" for name in _KINDS if getattr(field, f"CPPTYPE_{name}") == field.cpp_type
    )


def set_fields(message: Any, values: Mapping[str, object], fail: Fail, path: str = "") -> None:
    """Set fields by name; None leaves a field alone.  `path` prefixes the names in errors."""
    fields = message.DESCRIPTOR.fields_by_name
    for name, value in values.items():
        if name not in fields:
            where = path.rstrip(".") or message.DESCRIPTOR.name
            fail(f"{where} has no field {short_repr(name)}{did_you_mean(name, fields)}")
        if value is not None:
            set_field(message, fields[name], value, fail, path)


def set_field(message: Any, field: Any, value: object, fail: Fail, path: str = "") -> None:
    """Set one field from a Python value, or add to it where it is repeated."""
    label = path + str(field.name)
    if is_repeated(field):
        items = _items(field, value)
        for index, item in enumerate(items):
            _add(message, field, item, fail, label if len(items) == 1 else f"{label}[{index}]")
    elif field.message_type is not None:
        target = getattr(message, field.name)
        target.SetInParent()
        _fill(target, value, fail, label)
    else:
        setattr(message, field.name, scalar(field, value, fail, label))


def _add(message: Any, field: Any, item: object, fail: Fail, label: str) -> None:
    target = getattr(message, field.name)
    if field.message_type is not None:
        _fill(target.add(), item, fail, label)
    else:
        target.append(scalar(field, item, fail, label))


def _is_list(value: object) -> bool:
    if isinstance(value, str | bytes | Mapping) or getattr(value, "shape", None) == ():
        return False
    return isinstance(value, Sequence) or (hasattr(value, "__iter__") and hasattr(value, "__len__"))


def _items(field: Any, value: object) -> list[object]:
    """Return the entries of a repeated field: one value stands for a list of one."""
    if not _is_list(value):
        return [value]
    items: list[object] = list(cast(Iterable[object], value))
    shapes = field.message_type is not None and field.message_type.name == "BlobShape"
    if shapes and items and not any(_is_list(i) or isinstance(i, Mapping) for i in items):
        whole = all(not hasattr(i, "DESCRIPTOR") for i in items)
        return [items] if whole else items
    return items


def _fill(target: Any, value: object, fail: Fail, label: str) -> None:
    """Fill a nested message from a dict, a message of the same type, or its shorthand."""
    descriptor = target.DESCRIPTOR
    short = SHORTHANDS.get(descriptor.name)
    if isinstance(value, Mapping):
        set_fields(target, value, fail, label + ".")
    elif hasattr(value, "DESCRIPTOR"):
        if getattr(value, "DESCRIPTOR").full_name != descriptor.full_name:  # noqa: B009
            fail(f"{label} takes {descriptor.name}, not {type(value).__name__}")
        target.CopyFrom(value)
    elif short and _is_short(short, value):
        set_field(target, descriptor.fields_by_name[short], value, fail, label + ".")
    else:
        plain = {"dim": "a list of sizes", "name": "a name", "type": "a type"}.get(short or "")
        other = f"{plain} or " if plain else ""
        fail(f"{label} takes {other}a dict of {descriptor.name} fields, not {short_repr(value)}")


def _is_short(short: str, value: object) -> bool:
    if short == "dim":
        return _is_list(value)
    return isinstance(value, str) or (short == "phase" and isinstance(value, numbers.Integral))


def scalar(field: Any, value: object, fail: Fail, label: str) -> object:
    """Return the value that protobuf gets for a scalar field; anything else is refused."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # a numpy scalar or 0-d array
    which = kind(field)
    if which == "CPPTYPE_BOOL":
        return (
            value
            if isinstance(value, bool)
            else fail(f"{label}: {short_repr(value)} is not a bool")
        )
    if which == "CPPTYPE_ENUM":
        return _enum(field, value, fail, label)
    if which in _INTEGERS:
        return _integer(which, value, fail, label)
    if which in _REALS:
        return _real(which, value, fail, label)
    return _string(which, value, fail, label)


def _integer(which: str, value: object, fail: Fail, label: str) -> int:
    low, high, name = _INTEGERS[which]
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        fail(f"{label}: {short_repr(value)} is not an integer")
    if not low <= int(value) <= high:
        fail(f"{label}: {short_repr(value)} does not fit {name} ({low} to {high})")
    return int(value)


def _real(which: str, value: object, fail: Fail, label: str) -> float:
    high, name = _REALS[which]
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        fail(f"{label}: {short_repr(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number, high = 1.0, 0.0
    if math.isfinite(number) and abs(number) >= high:
        fail(f"{label}: {short_repr(value)} does not fit {name}")
    return number


def _string(which: str, value: object, fail: Fail, label: str) -> object:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if which == "TYPE_BYTES" and isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        fail(f"{label}: {short_repr(value)} is not a string")
    try:
        coded = value.encode()
    except UnicodeEncodeError:
        fail(f"{label}: {short_repr(value)} is not valid Unicode")
    return coded if which == "TYPE_BYTES" else value


def _enum(field: Any, value: object, fail: Fail, label: str) -> int:
    by_name = {str(v.name): int(v.number) for v in field.enum_type.values}
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        if int(value) in by_name.values():
            return int(value)
    elif isinstance(value, str):
        for name, number in by_name.items():
            if name.lower() == value.lower():
                return number
    choices = ", ".join(by_name)
    return fail(f"{label}: {short_repr(value)} is none of {choices}{did_you_mean(value, by_name)}")


def default_text(field: Any) -> str:
    """Return what a field takes and its default, as a docstring shows it."""
    if field.message_type is not None:
        text = str(field.message_type.name)
    elif field.enum_type is not None:
        text = "|".join(v.name for v in field.enum_type.values)
    else:
        text = re.sub(r"CPPTYPE_|TYPE_", "", kind(field)).lower()
    if is_repeated(field):
        return f"{text}, or a list of them"
    if field.message_type is None and field.has_default_value:
        default = field.default_value
        if field.enum_type is not None:
            default = field.enum_type.values_by_number[default].name
        elif isinstance(default, float):
            default = shortest(default)
        text += f" = {default!r}" if isinstance(default, str) else f" = {default}"
    return text


def shortest(value: float) -> float:
    """Return the float with the fewest digits that rounds to the same float32."""
    import numpy as np

    return float(str(np.float32(value)))


OWN = ("name", "type", "bottom", "top", "blobs")
"""LayerParameter fields that are no keyword of their own."""
EXTRA = ("tops", "in_place", "lr_mult", "decay_mult")
"""Keywords that are no field."""

FOREIGN = ("engine",)
"""Fields that a fork gives a layer, by the name of an option of Caffe's; the option is meant."""
KNOWN: Mapping[str, Any] = {
    name: field
    for name, field in caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name.items()
    if name not in FOREIGN
}


def groups_of(type_name: str) -> tuple[str, ...]:
    """Return the messages of options that a type reads, its own first."""
    layer = LAYERS[type_name]
    return (*((layer.field,) if layer.field else ()), *layer.fields)


@cache
def option_fields(type_name: str) -> dict[str, tuple[str, Any]]:
    """Return a type's keywords: name → (field of LayerParameter, descriptor)."""
    fields: dict[str, tuple[str, Any]] = {}
    if type_name not in LAYERS:
        return fields
    for group in groups_of(type_name):
        for field in KNOWN[group].message_type.fields:
            if not (field.name in KNOWN or field.name in EXTRA or iskeyword(field.name)):
                fields.setdefault(field.name, (group, field))
    return fields


def default_tops(type_name: str, name: str) -> list[str]:
    """Return one top named like the layer, none for types that have none (Silence)."""
    none = type_name in LAYERS and LAYERS[type_name].tops.most == 0
    return [] if none or not name else [name]
