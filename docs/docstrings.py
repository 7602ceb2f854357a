"""Docstrings as Markdown, and signatures that Python makes: mkdocs.yml names this extension."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from importlib import import_module
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

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """What `called_with` decorates has the signature and the docstring of its settings."""
        if any(str(one.value).startswith("called_with(") for one in func.decorators):
            made = getattr(import_module(func.module.path), func.name)
            func.parameters = parameters(made)
            _tell(func, made)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """`Trainer` inherits its settings, which a reader of its file alone does not see."""
        with suppress(KeyError):
            kind = pkg["spark.train.trainer.Trainer"]
            made = getattr(import_module(kind.module.path), kind.name)
            init = griffe.Function("__init__", parameters=parameters(made))
            kind.set_member("__init__", init)
            _tell(kind, made)


def parameters(made: Any) -> griffe.Parameters:
    known = inspect.signature(made).parameters.values()
    return griffe.Parameters(
        *(
            griffe.Parameter(
                one.name,
                annotation=None if one.annotation is one.empty else str(one.annotation),
                kind=griffe.ParameterKind[one.kind.name.lower()],
                default=None if one.default is one.empty else repr(one.default),
            )
            for one in known
        )
    )


def _tell(obj: griffe.Object, made: Any) -> None:
    if obj.docstring is not None and made.__doc__:
        obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", inspect.cleandoc(made.__doc__))


def _colon(found: re.Match[str]) -> str:
    return f"{found[1]}:\n\n" if found[1] else ""
