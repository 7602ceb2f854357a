"""Turns messages into DSL source: code that builds equal messages again."""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Iterable, Sequence
from typing import Any

from sparknet.dsl.fields import SHORTHANDS, default_tops, option_fields, shortest
from sparknet.layers import LAYERS
from sparknet.proto.message_fields import is_repeated

WIDTH = 96


def layer_source(parameter: Any) -> str:
    """Return one builder call, on one line."""
    name, arguments = _call(parameter)
    return f"{name}({', '.join(arguments)})"


def net_source(net: Any, checked: bool) -> str:
    """Return a module that imports what it needs and binds ``net``."""
    calls = [_call(parameter) for parameter in net.layer]
    body = [_wrapped(name, arguments, 4) + "," for name, arguments in calls]
    own = [pair for pair in net.ListFields() if pair[0].name not in ("name", "layer")]
    extras = _keywords(own)
    if not checked:
        extras.append("check=False")
    lines = [_imports({"NetParams", *(name for name, _ in calls)}), "", "net = NetParams("]
    lines.append(f"    {quoted(net.name)},")
    lines += [f"    {line}" for line in body]
    lines += [f"    {extra}," for extra in extras]
    return "\n".join([*lines, ")", ""])


def call_source(name: str, message: Any, variable: str, checked: bool) -> str:
    """``variable = name(field=value, …)`` with its import (SolverParams)."""
    arguments = _keywords(message.ListFields()) + ([] if checked else ["check=False"])
    lines = [_imports({name}), "", f"{variable} = {name}(", *(f"    {a}," for a in arguments), ")"]
    return "\n".join([*lines, ""])


def _imports(names: Iterable[str]) -> str:
    line = f"from sparknet.dsl import {', '.join(sorted(names))}"
    if len(line) <= WIDTH:
        return line
    return "\n".join(["from sparknet.dsl import (", *(f"    {n}," for n in sorted(names)), ")"])


def _wrapped(name: str, arguments: Sequence[str], indent: int) -> str:
    line = f"{name}({', '.join(arguments)})"
    if len(line) + indent < WIDTH:
        return line
    inner = " " * (indent + 4)
    return "\n".join([f"{name}(", *(f"{inner}{a}," for a in arguments), " " * indent + ")"])


def _call(parameter: Any) -> tuple[str, list[str]]:
    """Return the builder's name and the arguments of one layer."""
    is_identifier = parameter.type in LAYERS and parameter.type.isidentifier()
    arguments = [quoted(parameter.name)]
    if parameter.bottom:
        arguments.append(_names(parameter.bottom))
    name = parameter.type if is_identifier else "CaffeLayer"
    shape = _rdd_shape(parameter)
    if shape is not None:
        name = "RDDLayer"
        arguments.append(f"shape={shape!r}")
    elif not is_identifier:
        arguments.append(f"type={quoted(parameter.type)}")
    arguments += _tops(parameter)
    skipped = {"name", "type", "bottom", "top", "blobs"} | ({"input_param"} if shape else set())
    return name, arguments + _options(parameter, skipped)


def _tops(parameter: Any) -> list[str]:
    tops = list(parameter.top)
    if tops == default_tops(parameter.type, parameter.name):
        return []
    in_place = len(tops) == 1 and tops == list(parameter.bottom[:1])
    return ["in_place=True"] if in_place else [f"tops={_names(tops)}"]


def _names(names: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, names))}]"


def quoted(text: str) -> str:
    """Return a string literal, in double quotes as formatters have it."""
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)


def _rdd_shape(parameter: Any) -> list[int] | None:
    """Return the shape of an Input layer that RDDLayer writes: one shape, one top."""
    if parameter.type != "Input" or parameter.bottom or len(parameter.top) != 1:
        return None
    if len(parameter.input_param.shape) != 1:
        return None
    return [int(size) for size in parameter.input_param.shape[0].dim] or None


def _options(parameter: Any, skipped: set[str]) -> list[str]:
    flat = option_fields(parameter.type)
    options: list[str] = []
    for field, value in parameter.ListFields():
        if field.name in skipped:
            continue
        inner = value.ListFields() if field.message_type and not is_repeated(field) else []
        if inner and all(flat.get(f.name, ("",))[0] == field.name for f, _ in inner):
            options += [f"{f.name}={value_source(f, v)}" for f, v in inner]
        else:
            options.append(f"{field.name}={value_source(field, value)}")
    return options


def value_source(field: Any, value: Any) -> str:
    """Return a field's value as Python source."""
    if not is_repeated(field):
        return _one(field, value)
    items = [_one(field, item) for item in value]
    single = len(items) == 1 and field.message_type is None
    return items[0] if single else f"[{', '.join(items)}]"


def _one(field: Any, value: Any) -> str:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is not None:
        names = field.enum_type.values_by_number.get(value)
        return quoted(names.name) if names else repr(value)
    if field.cpp_type == field.CPPTYPE_FLOAT:
        return _float(shortest(value))
    if isinstance(value, str):
        return quoted(value)
    return _float(value) if isinstance(value, float) else repr(value)


def _float(value: float) -> str:
    if not math.isfinite(value):
        return f'float("{value}")'
    plain = value == int(value) and abs(value) < 1e6 and str(value) != "-0.0"
    return repr(int(value)) if plain else repr(value)


def _message(message: Any) -> str:
    """Return a dict, or the one value that stands for it (``"xavier"``)."""
    fields = message.ListFields()
    short = SHORTHANDS.get(message.DESCRIPTOR.name)
    if [f.name for f, _ in fields] == [short] and not is_repeated(fields[0][0]):
        return value_source(*fields[0])
    pairs = [(field.name, value_source(field, value)) for field, value in fields]
    if any(keyword.iskeyword(name) for name, _ in pairs):
        return "{" + ", ".join(f"{quoted(name)}: {text}" for name, text in pairs) + "}"
    return f"dict({', '.join(f'{name}={text}' for name, text in pairs)})"


def _keywords(fields: Iterable[tuple[Any, Any]]) -> list[str]:
    return [f"{field.name}={value_source(field, value)}" for field, value in fields]
