"""ModelInputs: what a model's file cannot say, in a JSON file next to it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from sparknet.errors import FileError, SparkError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.spark.column_types import named
from sparknet.spark.remote import exists, fetched
from sparknet.spark.texts import TokenizerFile

_LARGEST = 1 << 30


@dataclass(frozen=True)
class ModelInputs:
    """The columns of a model, and what happens to its images."""

    SUFFIX: ClassVar[str] = ".sparknet.json"
    TOKENIZER: ClassVar[str] = ".tokenizer.json"

    columns: dict[str, str] = field(default_factory=dict)
    preprocessing: Preprocessing | None = None
    tokens: TokenizerFile | None = None
    labels: tuple[str, ...] = ()
    """The names of the classes, where they are known."""

    @classmethod
    def beside(cls, model: Any) -> ModelInputs:
        """What lies next to a caffemodel or a .h5; nothing next to other files."""
        if not isinstance(model, (str, os.PathLike)):
            return cls()
        text = os.fspath(model)
        suffix = Path(text).suffix
        if suffix not in (".caffemodel", ".h5"):
            return cls()
        path = f"{text.removesuffix(suffix)}{cls.SUFFIX}"
        if not exists(path):
            return cls()
        with fetched(path) as file:
            if Path(file).stat().st_size > _LARGEST:
                raise FileError(path, "is too large")
            said = cls.from_json(Path(file).read_text(encoding="utf-8", errors="replace"), path)
        tokenizer = f"{text.removesuffix(suffix)}{cls.TOKENIZER}"
        return replace(said, tokens=TokenizerFile.read(tokenizer)) if exists(tokenizer) else said

    def to_json(self) -> str:
        how = None if self.preprocessing is None else json.loads(self.preprocessing.to_json())
        said = {"columns": self.columns, "preprocessing": how}
        return json.dumps(said | ({"labels": self.labels} if self.labels else {}), indent=1)

    @classmethod
    def from_json(cls, text: str, name: str) -> ModelInputs:
        try:
            said = json.loads(text)
            columns, how = named(said["columns"]), said["preprocessing"]
            labels = tuple(said.get("labels", ()))
            if not all(isinstance(label, str) for label in labels):
                raise ValueError("labels are no names")
        except (ValueError, TypeError, KeyError, RecursionError, SparkError) as error:
            raise FileError(name, f"is no description of a model: {error}") from error
        images = None if how is None else Preprocessing.from_json(json.dumps(how), name)
        return cls(columns, images, labels=labels)
