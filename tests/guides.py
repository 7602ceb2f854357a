"""The pages of README and docs/: what they say, and their blocks as programs.

A block has a word: `python`, `sh`, or `text` and `prototxt` for what is no program.  All of a
page's programs run in order, in one folder.  A comment on the line before a block says that it
does not::

    <!-- fragment: needs a cluster -->
    <!-- run by tests/examples/test_spark.py -->
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.goldens import ROOT

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>fragment: [^\n]+|run by \S+) -->\n)?"
    r"```(?P<word>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    word: str
    text: str
    line: int  # of its first line, from 1
    mark: str  # what stands before one that does not run with its page

    @property
    def runs(self) -> bool:
        return self.word in ("python", "sh") and not self.mark


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def guide(name: str) -> str:
    return page(f"docs/{name}")


def blocks(name: str) -> list[Block]:
    text = page(name)
    return [
        Block(
            found["word"],
            found["text"],
            text.count("\n", 0, found.start("text")) + 1,
            found["mark"] or "",
        )
        for found in BLOCK.finditer(text)
    ]


def program(name: str) -> str:
    """A page's blocks as one program, whose lines have the numbers that they have on the page."""
    lines = [""] * (page(name).count("\n") + 1)
    for block in blocks(name):
        said = block.text.splitlines()
        if block.runs and block.word == "python":
            lines[block.line - 1 : block.line - 1 + len(said)] = said
        elif block.runs:
            words = ["bash", "-euo", "pipefail", "-c", block.text]
            lines[block.line - 1] = f"__import__('subprocess').run({words!r}, check=True)"
    return "\n".join(lines)


def run_page(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page's blocks, in order, as one program, in a folder."""
    path = folder / f"{Path(name).stem}.md.py"
    path.write_text(program(name), encoding="utf-8")
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [sys.executable, path.name],
        cwd=folder,
        env={
            **os.environ,
            "PATH": tools,
            "PYTHONPATH": str(ROOT),
            "OMP_WAIT_POLICY": "passive",
        },
        capture_output=True,
        text=True,
        check=False,
    )
