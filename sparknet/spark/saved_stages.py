"""The folders of saved stages: metadata as pyspark.ml has them, which name all other files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparknet.errors import FileError
from sparknet.proto.byte_source import read_file

_LARGEST = 1 << 28


def stage_metadata(folder: Path) -> dict[str, Any]:
    """The metadata of a stage on this machine."""
    parts = sorted((folder / "metadata").glob("part-*"))
    try:
        if sum(part.stat().st_size for part in parts) > _LARGEST:
            raise FileError(folder, "is no saved stage: its metadata are too large")
        text = "".join(read_file(part, _LARGEST).decode("utf-8") for part in parts)
        metadata = json.loads(text) if text else None
    except (OSError, ValueError, RecursionError, FileError) as error:
        raise FileError(folder, f"is no saved stage: {error}") from error
    if not isinstance(metadata, dict):
        raise FileError(
            folder, "is no saved stage: it has no metadata, and no model.json as a saved model has"
        )
    return metadata
