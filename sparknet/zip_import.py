"""Import from a zip, as ``spark-submit --py-files`` and ``addArtifacts(pyfile=True)`` bring one.

Python imports no native module from a zip, so the first import on a machine unpacks it."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
from hashlib import blake2b
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def unpack(archive: str) -> str:
    """Return the folder of the package, in a folder that is named by the zip's contents.

    An executor's folder lies in its local directory, which Spark removes."""
    digest = blake2b(Path(archive).read_bytes(), digest_size=16).hexdigest()
    base = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    place = Path(base, f"sparknet-zip-{os.getuid()}-{digest}")
    if not place.is_dir():
        draft = Path(tempfile.mkdtemp(prefix="sparknet-zip-", dir=base))
        with zipfile.ZipFile(archive) as contents:
            contents.extractall(draft)
        try:
            draft.rename(place)
        except OSError:  # another process was faster
            shutil.rmtree(draft, ignore_errors=True)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & _OTHERS:
        raise ImportError(f"{place} belongs to somebody else: remove it, or set SPARK_LOCAL_DIRS")
    return str(place / "sparknet")
