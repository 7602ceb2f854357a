"""What MkDocs asks while it builds the site: mkdocs.yml names this file under hooks."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.exceptions import PluginError

from docs import settings_page
from docs.__main__ import PAGE
from docs.__main__ import page as layers_page


def on_pre_build(config: Any) -> None:
    if PAGE.read_text() != layers_page():
        raise PluginError(f"{PAGE} is not what the layers say: run make layers")
    if settings_page.PAGE.read_text() != settings_page.page():
        raise PluginError(f"{settings_page.PAGE} is not what the settings say: run make layers")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files of the source tree become plain text: the site does not have them."""
    up = "../" * (page.file.src_uri.count("/") + 1)
    return re.sub(rf"\[([^\]]+)\]\({re.escape(up)}[^)]*\)", r"\1", markdown)
