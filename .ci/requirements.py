"""Print what a development environment installs: build and run dependencies and the dev extra.

Reads pyproject.toml, the one place where they are listed; Python 3.10 has no
TOML reader, so pip's own is used there.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())
wanted = [
    *project["build-system"]["requires"],
    *project["project"]["dependencies"],
    *project["project"]["optional-dependencies"]["dev"],
]
sys.stdout.write("\n".join(dict.fromkeys(wanted)) + "\n")
