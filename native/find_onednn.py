"""Prints the prefix under which pip has put oneDNN for building, or nothing.

The package onednn-devel-cpu-gomp lays its files out as <prefix>/include and
<prefix>/lib/cmake/dnnl. Its own record says where: that holds in a venv, in the
temporary environment of an isolated build and in a user's home alike.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

PACKAGE = "onednn-devel-cpu-gomp"


def prefix() -> Path | None:
    """Where the package lies, if it is there."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "dnnl-config.cmake":
            found = Path(str(file.locate())).resolve()
            if found.is_file():
                return found.parents[3]
    return None


if __name__ == "__main__":
    print(prefix() or "", end="")
