"""The folders of saved stages: metadata as pyspark.ml has them, which name all other files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from sparknet.errors import FileError

FILES = "files"
"""What metadata call the sizes and check sums of the other files."""
_NAME = re.compile(r"\w[\w.-]*")
_AT_ONCE = 1 << 20
_LARGEST = 1 << 28


def stage_metadata(folder: Path) -> dict[str, Any]:
    """The metadata of a stage on this machine."""
    parts = sorted((folder / "metadata").glob("part-*"))
    try:
        if sum(part.stat().st_size for part in parts) > _LARGEST:
            raise FileError(folder, "is no saved stage: its metadata are too large")
        text = "".join(part.read_text(encoding="utf-8") for part in parts)
        metadata = json.loads(text) if text else None
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(folder, f"is no saved stage: {error}") from error
    if not isinstance(metadata, dict):
        raise FileError(folder, "is no saved stage: it has no metadata")
    return metadata


def has_sound_names(files: Any) -> bool:
    """Whether these can be the files of a stage."""
    return isinstance(files, dict) and all(_NAME.fullmatch(name) for name in files)


def check_files(folder: Path, metadata: Mapping[str, Any]) -> None:
    """FileError where a file of a stage is missing, or is another one than was saved."""
    files = metadata.get(FILES)
    if not has_sound_names(files):
        raise FileError(folder, "is no saved stage: its files have odd names")
    assert isinstance(files, dict)
    for name, said in files.items():
        check_file(folder / name, str(folder / name), said)


def check_file(file: Path, name: str, said: Any) -> None:
    """FileError where a file has not the size or the check sum that was saved with it."""
    try:
        size, sum = said["bytes"], said["blake2b"]
        found = file.stat().st_size
    except (KeyError, TypeError) as error:
        raise FileError(name, "is of a stage whose metadata say nothing of it") from error
    except OSError as error:
        raise FileError(name, error.strerror or str(error)) from error
    if found != size:
        raise FileError(name, f"has {found} bytes; {size} were saved")
    if check_sum(file) != sum:
        raise FileError(name, "is damaged: it has another check sum than when it was saved")


def check_sum(file: Path) -> str:
    sum = blake2b(digest_size=32)
    with file.open("rb") as read:
        while data := read.read(_AT_ONCE):
            sum.update(data)
    return sum.hexdigest()
