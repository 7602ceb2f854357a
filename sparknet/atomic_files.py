"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparknet.errors import FileError, SparkNetError

StrPath = str | os.PathLike[str]


@contextmanager
def atomic_file(path: StrPath, mode: int = 0o666) -> Iterator[Path]:
    """Yield a new file beside `path` that takes its name when the block ends without error.

    A reader of `path` sees the old content or the new, never a part.  ``mode`` says who may read
    it, as far as the umask lets them.  The new file's name ends as ``path`` does."""
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{os.getpid()}.{os.urandom(4).hex()}.{target.name[-200:]}")
    try:
        if target.exists() and not target.is_file():
            raise FileError(path, file_kind(path))
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
        yield draft
        draft.replace(target)
    except (OSError, ValueError) as error:
        if isinstance(error, SparkNetError):
            raise
        raise FileError(path, f"cannot be written: {io_reason(error)}") from error
    finally:
        with suppress(OSError):  # of a folder that cannot be written at all
            draft.unlink(missing_ok=True)


def file_kind(path: StrPath) -> str:
    """Return the words for something at a path that is no file."""
    return "is a folder, not a file" if Path(path).is_dir() else "is not an ordinary file"


def io_reason(error: Exception) -> str:
    """Return why a file could not be opened or written."""
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]
