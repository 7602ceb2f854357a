"""ModelInputs: what a caffemodel cannot say of its net, in a JSON file beside it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.proto.byte_source import exists
from sparknet.weights.files import DESCRIPTION

StrPath = str | os.PathLike[str]
_LARGEST = 1 << 30


@dataclass(frozen=True)
class ModelInputs:
    """The columns of a model, what happens to its images, and the names of its classes."""

    SUFFIX: ClassVar[str] = ".sparknet.json"
    FOLDER: ClassVar[str] = DESCRIPTION
    """The same file where a model is a folder."""

    columns: dict[str, str] = field(default_factory=dict)
    preprocessing: Preprocessing | None = None
    labels: tuple[str, ...] = ()
    """The names of the classes, where they are known."""
    features: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Input → the columns of a table that are its record together, one number each."""
    tokenizer: bytes | None = field(default=None, repr=False, compare=False)
    """The text of tokenizer.json, which is a file of its own."""

    @classmethod
    def place(cls, model: StrPath) -> Path:
        """Return where the file of a model lies: x.sparknet.json, or model.json in a folder."""
        path = Path(model)
        shared = (path if path.is_dir() else path.parent) / cls.FOLDER
        return shared if exists(shared) else path.with_suffix(cls.SUFFIX)

    @classmethod
    def beside(cls, model: StrPath) -> ModelInputs | None:
        """Return what the file of a model on this machine says; None where there is no file."""
        place = cls.place(model)
        return cls.read(place, str(place)) if exists(place) else None

    @classmethod
    def read(cls, file: Path, name: str) -> ModelInputs:
        """Return what a file says, which is called ``name`` in messages."""
        if file.stat().st_size > _LARGEST:
            raise FileError(name, "is too large")
        return cls.from_json(file.read_text(encoding="utf-8", errors="replace"), name)

    def write_beside(self, model: StrPath) -> None:
        """Write the file of a caffemodel if it adds something; its columns stay."""
        before = ModelInputs.beside(model) or ModelInputs()
        merged = replace(self, columns=before.columns | self.columns)
        if merged == before:
            return
        with atomic_file(Path(model).with_suffix(self.SUFFIX)) as file:
            file.write_text(merged.to_json(), encoding="utf-8")

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    def to_dict(self) -> dict[str, Any]:
        how = None if self.preprocessing is None else json.loads(self.preprocessing.to_json())
        more = {"labels": self.labels, "features": self.features}
        names = {name: value for name, value in more.items() if value}
        return {"columns": self.columns, "preprocessing": how, **names}

    @classmethod
    def from_json(cls, text: str, name: str) -> ModelInputs:
        try:
            return cls.of(json.loads(text), name)
        except (ValueError, RecursionError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(name, f"is no description of a model: {error}") from error

    @classmethod
    def of(cls, said: Any, name: str) -> ModelInputs:
        """Return what parsed JSON says."""
        try:
            columns, how = dict(said["columns"]), said["preprocessing"]
            labels = tuple(said.get("labels", ()))
            features = {one: tuple(names) for one, names in said.get("features", {}).items()}
            every = (*columns, *columns.values(), *labels, *chain(features, *features.values()))
            if not all(isinstance(one, str) for one in every):
                raise ValueError("a column or a label is no name")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FileError(name, f"is no description of a model: {error!r}") from error
        images = None if how is None else Preprocessing.from_json(json.dumps(how), name)
        return cls(columns, images, labels, features)
