"""What MkDocs asks while it builds the site: mkdocs.yml names this file under hooks."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

from docs import settings_page
from docs.__main__ import PAGE
from docs.__main__ import page as layers_page

ROOT = Path(__file__).parent.parent
TREE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)([^)#]+)[^)]*\)")
"""A link upwards: to another folder of docs/, or out of it."""


def on_pre_build(config: Any) -> None:
    """Write the pages that are made from the code."""
    PAGE.write_text(layers_page())
    settings_page.PAGE.write_text(settings_page.page())


def on_files(files: Any, config: Any) -> Any:
    """Programs and notebooks to which a page links become pages, which no menu has."""
    for page in list(files.documentation_pages()):
        for program in re.finditer(TREE, page.content_string):
            name = out_of_docs(page.src_uri, program)
            if is_program(name) and files.get_file_from_path(page_of(name)) is None:
                code = (ROOT / name).read_text(encoding="utf-8")
                hidden = InclusionLevel.NOT_IN_NAV
                content = listing(name, code)
                files.append(
                    File.generated(config, page_of(name), content=content, inclusion=hidden)
                )
                if name.endswith(".ipynb"):
                    files.append(File.generated(config, name, content=code))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to programs and notebooks lead to their pages; others of the tree have none."""
    uri = page.file.src_uri

    def link(found: re.Match[str]) -> str:
        name = out_of_docs(uri, found)
        if name is None:
            return found[0]
        return (
            f"[{found[1]}]({'../' * uri.count('/')}{page_of(name)})"
            if is_program(name)
            else found[1]
        )

    return re.sub(TREE, link, markdown)


def out_of_docs(uri: str, link: re.Match[str]) -> str | None:
    """What file of the source tree a page links to, if it is none of docs/."""
    return link[3] if link[2].count("../") == uri.count("/") + 1 else None


def is_program(name: str | None) -> bool:
    return name is not None and name.endswith((".py", ".ipynb")) and (ROOT / name).is_file()


def page_of(name: str) -> str:
    return f"{name.rpartition('.')[0]}.md"


def listing(name: str, code: str) -> str:
    if name.endswith(".ipynb"):
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(code)["cells"]]
        shown = [f"````python\n{text}\n````" if kind == "code" else text for kind, text in cells]
        file = Path(name).name
        return "\n\n".join([*shown, f"The notebook: [{file}]({file})."]) + "\n"
    says = (ast.get_docstring(ast.parse(code)) or name).splitlines()[0]
    return f"# {name}\n\n{says}\n\n````python\n{code}````\n"
