"""Docstrings as Markdown: an extension for griffe, which mkdocs.yml names."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!$).*)*", re.MULTILINE)
LITERAL = re.compile(r"^(.*?):?:$\n\n(?=    )", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Examples with >>> become code, and a final `::` leads to a block of code as in reST."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = LITERAL.sub(_colon, text)


def _colon(found: re.Match[str]) -> str:
    return f"{found[1]}:\n\n" if found[1] else ""
