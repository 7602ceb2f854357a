"""Cell: a piece of a notebook's output that is drawn again in its place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from typing import Any


def kernel_display() -> Callable[..., Any] | None:
    """IPython's `display`, in a process that serves a notebook; it is not imported for this."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if getattr(shell, "kernel", None) is None:  # a terminal has none
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display


class Cell:
    """A bar with words beside it and lines below.

    It is IPython's own way to change an output (``display_id``): it needs no other package
    and no widgets in the browser, and a saved notebook keeps the last state.
    """

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None
        self._share: float | None = None
        self._words = ""
        self._lines: Sequence[str] = ()

    def show(self, share: float | None, words: str, lines: Sequence[str]) -> None:
        """Draw this in place of what was there."""
        self._share, self._words, self._lines = share, words, lines
        if self._handle is None:
            self._handle = self._display(self, display_id=True)
        else:
            self._handle.update(self)

    def __repr__(self) -> str:
        return "\n".join(filter(None, (self._words, *self._lines)))

    def _repr_html_(self) -> str:
        bar = ""
        if self._share is not None:
            bar = f'<progress max="1" value="{self._share:.4f}"></progress> '
        lines = "".join(f"<br>{escape(line)}" for line in self._lines)
        return f"<div>{bar}{escape(self._words)}{lines}</div>"
