"""The words of Caffe's text format. Rules of the C++ tokenizer (protobuf: io/tokenizer.cc)."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from sparknet.errors import TextError

END, NAME, NUMBER, STRING, SYMBOL = range(5)

# One match is one token with the space and comments before it. The last two branches take any
# character and the end, so the pattern never looks back and time stays linear.
_TOKEN = re.compile(
    r"""(?:[ \t\n\r\v\f]+|\#[^\n\0]*)*
    (?:([A-Za-z_][A-Za-z0-9_]*)
      |(0[xX][0-9A-Fa-f]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)
      |("[^"\\\n\0]*(?:\\[^\n\0][^"\\\n\0]*)*"|'[^'\\\n\0]*(?:\\[^\n\0][^'\\\n\0]*)*')
      |((?s:.))
      |\Z)""",
    re.VERBOSE,
)
_PART_OF_NUMBER = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.")
_LONGEST_NUMBER = 1000


class Unknown(NamedTuple):
    """A field or an enumeration's value that the schema lacks, and its line in the text."""

    message: str
    """The message type that would hold it."""
    name: str
    line: int


class Tokens:
    """A text and the place in it: `kind` and `text` are the current token.

    With a list `skipped` what the schema lacks is passed over and noted there."""

    def __init__(self, text: str, name: str, skipped: list[Unknown] | None = None) -> None:
        self._source, self._name = text.removeprefix("\ufeff"), name
        self.skipped = skipped
        self._lines = self._counted = 0
        """The line ends before a place that only moves on."""
        self._matches = _TOKEN.finditer(self._source)
        self.kind, self.text = END, ""
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        self._match = match = next(self._matches)
        group = match.lastindex
        if group is None:
            self.kind, self.text = END, ""
            return
        self.kind, self.text = group, match[group]
        if group == NUMBER:
            self._check_number(match.end())
        elif group == SYMBOL and (self.text < "!" or self.text > "~" or self.text in "\"'"):
            self._bad_character()

    def skip(self, symbol: str) -> bool:
        """Return whether the symbol stood here; if so, it is passed."""
        if self.text == symbol and self.kind == SYMBOL:
            self.advance()
            return True
        return False

    def expect(self, symbol: str, why: str) -> None:
        """Pass this symbol, or refuse."""
        if not self.skip(symbol):
            self.fail(f"expected '{symbol}' {why}, found {self.excerpt()}")

    def excerpt(self) -> str:
        """Return the current token, for a message."""
        if self.kind == END:
            return "the end of the text"
        text = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        return text if self.kind == STRING else f"'{text}'"

    def mark(self) -> re.Match[str]:
        """Return the current token's place, for `fail`."""
        return self._match

    def fail(self, message: str, at: re.Match[str] | None = None) -> NoReturn:
        """Raise, with the line and column of the current token or of a marked one."""
        match = at or self._match
        self.fail_at(_start(match), message)

    def note_unknown(self, message: str) -> bool:
        """Return whether the current token, unknown in this message type, is to be passed over."""
        if self.skipped is None:
            return False
        start = _start(self._match)
        self._lines += self._source.count("\n", self._counted, start)
        self._counted = start
        self.skipped.append(Unknown(message, self.text, self._lines + 1))
        return True

    def fail_at(self, position: int, message: str) -> NoReturn:
        line = self._source.count("\n", 0, position) + 1
        column = position - self._source.rfind("\n", 0, position)
        excerpt = message.encode("ascii", "backslashreplace").decode()
        raise TextError(excerpt, self._name, line, column)

    def _check_number(self, end: int) -> None:
        if self._source[end : end + 1] in _PART_OF_NUMBER:
            self.fail(f"'{self.text[:40]}{self._source[end]}' begins no number")
        if len(self.text) > _LONGEST_NUMBER:
            self.fail(f"a number of {len(self.text)} digits")
        if is_octal(self.text) and not set(self.text) <= set("01234567"):
            self.fail(f"'{self.text}' begins with zero, so only octal digits may follow")

    def _bad_character(self) -> NoReturn:
        if self.text in "\"'":
            self.fail("a string is not closed on its line")
        if self.text > "~":
            if "\udc80" <= self.text <= "\udcff":
                self._fail_as_binary(f"byte {ord(self.text) - 0xDC00:#04x}")
            self.fail(f"character {self.text!a} outside a string or comment")
        self._fail_as_binary(f"control character {self.text!a}")

    def _fail_as_binary(self, what: str) -> NoReturn:
        self.fail(f"{what}: this is no text file, as a prototxt is")


def _start(match: re.Match[str]) -> int:
    return match.start(match.lastindex) if match.lastindex else match.end()


def is_octal(number: str) -> bool:
    """Return whether a number starts as C writes octal ones."""
    return number[0] == "0" and number[1:2].isdigit()


_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|[xX]([0-9A-Fa-f]{1,2})"
    rb"|u([dD][89abAB][0-9A-Fa-f]{2})\\u([dD][c-fC-F][0-9A-Fa-f]{2})"
    rb"|u([0-9A-Fa-f]{4})|U(00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})|([abfnrtv\\?'\"])|)",
)
_LETTERS = dict(zip(b"abfnrtv\\?'\"", b"\a\b\f\n\r\t\v\\?'\"", strict=True))


class EscapeError(ValueError):
    """A backslash in a string that begins no escape."""


def unescape(literal: str) -> bytes:
    """Return the bytes that a quoted string stands for."""
    raw = literal[1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_escaped, raw) if b"\\" in raw else raw


def _escaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, high, low, short, long, letter = match.groups()
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if letter:
        return bytes([_LETTERS[letter[0]]])
    if high:
        code = 0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
    elif short or long:
        code = int(short or long, 16)
    else:
        raise EscapeError(match.string[match.start() : match.start() + 2].decode("latin-1"))
    return chr(code).encode("utf-8", "surrogatepass")
