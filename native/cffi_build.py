"""Writes the C source of the extension: python native/cffi_build.py INCLUDE_FOLDER OUT.c

The declarations are the public headers themselves, less what cffi does not read:
preprocessor lines, the visibility mark and the C++ guard.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cffi

HEADERS = (
    "status.h",
    "ndarray.h",
    "codes.h",
    "ring.h",
    "engine.h",
    "net.h",
    "solver.h",
    "transform.h",
)

# Called by the core when borrowed memory is free again; the body is in Python.
CALLBACKS = 'extern "Python" void sn_release_owner(void *context);'


def declarations(header: str) -> str:
    """A header as cffi wants it."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\bSN_API\b", "", text)


def write_source(include: Path, out: Path) -> None:
    """Writes the extension's C source."""
    ffi = cffi.FFI()
    names = [f"sparknet/{name}" for name in HEADERS]
    ffi.cdef("\n".join(declarations((include / name).read_text()) for name in names))
    ffi.cdef(CALLBACKS)
    source = "\n".join(f"#include <{name}>" for name in names)
    ffi.set_source("sparknet.native._sparknet", source, py_limited_api=True)
    ffi.emit_c_code(str(out))


if __name__ == "__main__":
    write_source(Path(sys.argv[1]), Path(sys.argv[2]))
