"""The grammar of Caffe's text format, as strict as protobuf's C++ parser (text_format.cc)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from google.protobuf.message import Message

from sparknet.proto.forks import origin
from sparknet.proto.message_fields import Field, Table, table
from sparknet.proto.suggest import did_you_mean
from sparknet.proto.text_tokens import (
    END,
    NAME,
    NUMBER,
    STRING,
    SYMBOL,
    EscapeError,
    Tokens,
    is_octal,
    unescape,
)

_DEEPEST = 100
_LARGEST_FLOAT, _ROUNDS_TO_INFINITY = 3.4028234663852886e38, 3.4028235677973366e38
_CLOSERS = {"{": "}", "<": ">"}


def parse_into(tokens: Tokens, message: Message) -> None:
    """Fill an empty message with everything that the text holds."""
    _parse_fields(tokens, message, "", 0)


def _parse_fields(tokens: Tokens, message: Message, closer: str, depth: int) -> None:
    fields = table(message.DESCRIPTOR)
    names: set[str] = set()
    while True:
        if tokens.kind == NAME:
            _parse_field(tokens, message, fields, names, depth)
        elif tokens.text == closer and tokens.kind in (SYMBOL, END):
            break
        else:
            _expected_field(tokens, message, closer)
    if closer:
        tokens.advance()


def _expected_field(tokens: Tokens, message: Message, closer: str) -> None:
    kind = message.DESCRIPTOR.name
    expected = f"a field of {kind} or '{closer}'" if closer else f"a field of {kind}"
    tokens.fail(f"expected {expected}, found {tokens.excerpt()}")


def _parse_field(
    tokens: Tokens, message: Message, fields: Table, names: set[str], depth: int
) -> None:
    field = fields.get(tokens.text)
    if field is None:
        _unknown_field(tokens, message, fields, depth)
        return
    name = field.name
    if name in names and f"further_{name}" in fields:  # a fork repeats it
        field = fields[f"further_{name}"]
    elif name in names and not field.repeated:
        tokens.fail(f"field '{name}' of {message.DESCRIPTOR.name} is given twice")
    names.add(name)
    tokens.advance()
    if field.message is not None:
        tokens.skip(":")
    else:
        tokens.expect(":", f"after '{name}'")
    more = fields.get(f"further_{name}")
    if field.repeated and tokens.skip("["):
        _parse_list(tokens, message, field, depth)
    elif more is not None and tokens.skip("["):
        _parse_value(tokens, message, field, depth)
        if not tokens.skip("]"):
            tokens.expect(",", f"or ']' in the list of '{name}'")
            _parse_list(tokens, message, more, depth)
    else:
        _parse_value(tokens, message, field, depth)
    if tokens.kind == SYMBOL and (tokens.text == ";" or tokens.text == ","):
        tokens.advance()


def _parse_list(tokens: Tokens, message: Message, field: Field, depth: int) -> None:
    if tokens.skip("]"):
        return
    while True:
        _parse_value(tokens, message, field, depth)
        if tokens.skip("]"):
            return
        tokens.expect(",", f"or ']' in the list of '{field.name}'")


def _parse_value(tokens: Tokens, message: Message, field: Field, depth: int) -> None:
    name = field.name
    if field.message is not None:
        _parse_message(tokens, message, field, depth)
    elif field.kind == "enum" and _skips_value(tokens, message, field):
        return
    elif field.repeated:
        getattr(message, name).append(_READERS[field.kind](tokens, field))
    else:
        setattr(message, name, _READERS[field.kind](tokens, field))


def _parse_message(tokens: Tokens, message: Message, field: Field, depth: int) -> None:
    closer = _CLOSERS.get(tokens.text) if tokens.kind == SYMBOL else None
    if closer is None:
        tokens.fail(f"expected '{{' after '{field.name}', found {tokens.excerpt()}")
    if depth == _DEEPEST:
        tokens.fail(f"messages lie more than {_DEEPEST} deep in one another")
    tokens.advance()
    if field.repeated:
        child = getattr(message, field.name).add()
    else:
        child = getattr(message, field.name)
        child.SetInParent()
    _parse_fields(tokens, child, closer, depth + 1)


def _unknown_field(tokens: Tokens, message: Message, fields: Table, depth: int) -> None:
    kind, name = message.DESCRIPTOR.name, tokens.text
    if not tokens.note_unknown(kind):
        hint = did_you_mean(name, fields)
        tokens.fail(f"{kind} has no field '{name[:64]}'{origin(kind, name)}{hint}")
    tokens.advance()
    tokens.skip(":")
    _skip_value(tokens, depth)
    if tokens.kind == SYMBOL and tokens.text in ";,":
        tokens.advance()


def _skips_value(tokens: Tokens, message: Message, field: Field) -> bool:
    """Return whether this value of an enumeration is unknown and is passed over."""
    if tokens.kind != NAME or tokens.text in field.numbers:
        return False
    if not tokens.note_unknown(f"{message.DESCRIPTOR.name}.{field.name}"):
        return False
    tokens.advance()
    return True


def _skip_value(tokens: Tokens, depth: int) -> None:
    """Pass the value of an unknown field: a message, a list, or a word."""
    closer = {**_CLOSERS, "[": "]"}.get(tokens.text) if tokens.kind == SYMBOL else None
    if closer is None:
        _skip_word(tokens)
        return
    if depth >= _DEEPEST:
        tokens.fail(f"messages lie more than {_DEEPEST} deep in one another")
    tokens.advance()
    while not tokens.skip(closer):
        if closer == "]":
            _skip_value(tokens, depth + 1)
        elif tokens.kind == NAME:
            tokens.advance()
            tokens.skip(":")
            _skip_value(tokens, depth + 1)
        else:
            tokens.fail(f"expected a field or '{closer}', found {tokens.excerpt()}")
        if tokens.kind == SYMBOL and tokens.text in ";,":
            tokens.advance()


def _skip_word(tokens: Tokens) -> None:
    """Skip a number, a name, or adjacent strings."""
    tokens.skip("-")
    if tokens.kind not in (NAME, NUMBER, STRING):
        tokens.fail(f"expected a value, found {tokens.excerpt()}")
    strings = tokens.kind == STRING
    tokens.advance()
    while strings and tokens.kind == STRING:
        tokens.advance()


def _expected(tokens: Tokens, what: str, field: Field) -> NoReturn:
    tokens.fail(f"expected {what} for '{field.name}', found {tokens.excerpt()}")


def _unsigned(tokens: Tokens, field: Field, highest: int, what: str) -> int:
    text = tokens.text
    is_hex = text[1:2] in ("x", "X")
    if tokens.kind != NUMBER or not (text.isdigit() or is_hex):
        _expected(tokens, what, field)
    base = 16 if is_hex else 8 if is_octal(text) else 10
    value = int(text, base)
    if value > highest:
        tokens.fail(f"{tokens.excerpt()} is out of range for '{field.name}'")
    tokens.advance()
    return value


def _signed_reader(bits: int) -> Callable[[Tokens, Field], int]:
    highest = 2 ** (bits - 1) - 1

    def read(tokens: Tokens, field: Field) -> int:
        if tokens.skip("-"):
            return -_unsigned(tokens, field, highest + 1, "an integer")
        return _unsigned(tokens, field, highest, "an integer")

    return read


_read_int32 = _signed_reader(32)


def _unsigned_reader(bits: int) -> Callable[[Tokens, Field], int]:
    highest = 2**bits - 1
    return lambda tokens, field: _unsigned(tokens, field, highest, "a non-negative integer")


def _read_float(tokens: Tokens, field: Field) -> float:
    negative = tokens.skip("-")
    text = tokens.text
    if tokens.kind == NUMBER:
        if text[1:2] in ("x", "X") or (is_octal(text) and text.isdigit()):
            _expected(tokens, "a decimal number", field)
        value = float(text.rstrip("fF"))
        if _LARGEST_FLOAT < value < _ROUNDS_TO_INFINITY and field.kind == "float":
            value = _LARGEST_FLOAT  # protobuf 4 in pure Python would make it infinite
    elif tokens.kind == NAME and text.lower() in ("inf", "infinity", "nan"):
        value = float(text)
    else:
        _expected(tokens, "a number", field)
    tokens.advance()
    return -value if negative else value


_BOOLS = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}


def _read_bool(tokens: Tokens, field: Field) -> bool:
    if tokens.kind == NUMBER:
        return bool(_unsigned(tokens, field, 1, "true or false"))
    value = _BOOLS.get(tokens.text) if tokens.kind == NAME else None
    if value is None:
        _expected(tokens, "true or false", field)
    tokens.advance()
    return value


def _read_enum(tokens: Tokens, field: Field) -> int:
    place = tokens.mark()
    if tokens.kind == NAME:
        number = field.numbers.get(tokens.text)
        if number is None:
            hint = did_you_mean(tokens.text, field.numbers)
            choices = hint or f": it is one of {', '.join(field.numbers)}"
            whose = origin(field.name, tokens.text)
            tokens.fail(f"'{tokens.text[:64]}' is no value of '{field.name}'{whose}{choices}")
        tokens.advance()
        return number
    if tokens.kind != NUMBER and tokens.text != "-":
        _expected(tokens, f"one of {', '.join(field.numbers)}", field)
    number = _read_int32(tokens, field)
    if number not in field.names:
        tokens.fail(f"{number} is no value of '{field.name}'", place)
    return number


def _read_bytes(tokens: Tokens, field: Field) -> bytes:
    if tokens.kind != STRING:
        _expected(tokens, "a quoted string", field)
    parts = []
    while tokens.kind == STRING:
        try:
            parts.append(unescape(tokens.text))
        except EscapeError as error:
            tokens.fail(f"'{error}' in a string begins no escape")
        except UnicodeEncodeError:
            tokens.fail(f"the string of '{field.name}' holds half a surrogate pair")
        tokens.advance()
    return b"".join(parts)


def _read_string(tokens: Tokens, field: Field) -> str:
    place = tokens.mark()
    value = _read_bytes(tokens, field)
    try:
        return value.decode()
    except UnicodeDecodeError:
        tokens.fail(f"the string of '{field.name}' is not UTF-8", place)


_READERS: Mapping[str, Callable[[Tokens, Field], int | float | str | bytes]] = {
    "int32": _read_int32,
    "int64": _signed_reader(64),
    "uint32": _unsigned_reader(32),
    "uint64": _unsigned_reader(64),
    "float": _read_float,
    "double": _read_float,
    "bool": _read_bool,
    "enum": _read_enum,
    "string": _read_string,
    "bytes": _read_bytes,
}
