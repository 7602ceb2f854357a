"""Python values into message fields, as pycaffe's `assign_proto` does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparknet.errors import SpecError
from sparknet.proto.message_fields import is_repeated
from sparknet.proto.suggest import did_you_mean


class UnknownFieldError(SpecError, AttributeError):
    """A field, option or enum value that does not exist."""


class FieldValueError(SpecError, TypeError):
    """A value that its field cannot hold."""


def assign_proto(proto: Any, name: str, val: Any) -> None:
    """Assign `val` to the field `name`: a dict to a message, a list to a repeated field.

    One value for a repeated field is a list of one.
    """
    assign(proto, name, val, proto.DESCRIPTOR.name)


def assign(proto: Any, name: str, value: Any, who: str) -> None:
    """`assign_proto` whose error messages begin with `who`."""
    fields = proto.DESCRIPTOR.fields_by_name
    if name not in fields:
        hint = did_you_mean(name, list(fields))
        raise UnknownFieldError(f"{who}: {proto.DESCRIPTOR.name} has no field '{name}'{hint}")
    if isinstance(value, (tuple, np.ndarray)):
        value = list(value)
    field = fields[name]
    if is_repeated(field):
        _extend(proto, field, value if isinstance(value, list) else [value], who)
    elif isinstance(value, list):
        raise FieldValueError(f"{who}: '{name}' takes one value, not a list of {len(value)}")
    elif field.message_type is not None:
        _fill(getattr(proto, name), value, f"{who}: '{name}'")
    else:
        _checked(lambda: setattr(proto, name, value), name, value, who)


def _extend(proto: Any, field: Any, values: list[Any], who: str) -> None:
    target = getattr(proto, field.name)
    if field.message_type is None:
        _checked(lambda: target.extend(values), field.name, values, who)
        return
    for value in values:
        _fill(target.add(), value, f"{who}: '{field.name}'")


def _fill(message: Any, value: Any, who: str) -> None:
    if isinstance(value, type(message)):
        message.CopyFrom(value)
        return
    if not isinstance(value, Mapping):
        kind = message.DESCRIPTOR.name
        raise FieldValueError(f"{who} takes a dict of {kind}'s fields, not {value!r}")
    for key, item in value.items():
        assign(message, key, item, who)


def _checked(store: Any, name: str, value: Any, who: str) -> None:
    try:
        store()
    except (TypeError, ValueError) as error:
        raise FieldValueError(f"{who}: '{name}' cannot be {value!r} ({error})") from None
