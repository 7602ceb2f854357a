"""Loads the compiled extension, and finds oneDNN for it where the loader did not.

A wheel carries its oneDNN beside the extension, and so does a build in place: then
there is nothing to look for. A build against another oneDNN (a system's, conda's, or
the package onednn-cpu-gomp) may lie elsewhere.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparknet.errors import NativeError

LIBRARY = "libdnnl.so.3"
PACKAGE = "onednn-cpu-gomp"
EXTENSION = "sparknet.native._sparknet"


def candidates() -> Iterator[Path]:
    """Return where oneDNN may lie, likeliest first."""
    from importlib import metadata

    yield Path(__file__).parent / LIBRARY
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == LIBRARY:
            yield Path(str(file.locate()))
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)):
        yield Path(prefix) / "lib" / LIBRARY


def preload() -> None:
    """Loads oneDNN from the first place that has a usable one."""
    import ctypes

    for path in candidates():
        if path.is_file():
            try:
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
            return
    raise NativeError(f"oneDNN ({LIBRARY}) was not found: run pip install {PACKAGE}")


def calm_threads() -> None:
    """Let idle threads sleep soon, unless the environment says how long they wait.

    GNU OpenMP's spin for milliseconds by default, which costs little on a quiet machine and makes
    small nets ten times slower where processes outnumber processors, as in Spark's executors.
    It reads this once, when it is loaded.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def extension() -> Any:
    """Return the compiled extension."""
    calm_threads()
    try:
        return importlib.import_module(EXTENSION)
    except ModuleNotFoundError as error:
        raise NativeError(
            "sparknet's native core is not built: run pip install -e . in the source tree"
        ) from error
    except ImportError as error:
        if LIBRARY not in str(error):
            raise NativeError(f"sparknet's native core does not load: {error}") from error
    preload()
    return importlib.import_module(EXTENSION)
