"""Saves stages and reads them: metadata as JSON, nets as prototxt, weights as a caffemodel.

A stage is a folder on any file system that Spark writes.  Its metadata lie where pyspark.ml looks
for them, and name the size and the check sum of every other file; they are written last.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Generic, TypeVar

from pyspark.ml.util import (
    DefaultParamsReader,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)

from sparknet.errors import FileError, SparkError, SparkNetError
from sparknet.net.files import with_path
from sparknet.net.model_folder import FILES, check_file, file_sums, has_sound_names
from sparknet.net.scratch import scratch_folder
from sparknet.spark.cluster.background_job import is_classic
from sparknet.spark.filesystem.remote import remote_file

Stage = TypeVar("Stage", bound="SavedStage")


class SavedStage(MLWritable, MLReadable):  # type: ignore[misc]
    """A stage that is saved with pyspark.ml's words, alone and in pipelines."""

    def write(self) -> MLWriter:
        """Return what writes it: ``write().overwrite().save(path)``."""
        return StageWriter(self)

    @classmethod
    def read(cls: type[Stage]) -> StageReader[Stage]:
        """Return what reads it: ``read().load(path)``."""
        return StageReader(cls)

    def save_here(self, folder: Path) -> None:
        """Write it into a new folder of this machine, without Spark."""
        folder.mkdir(parents=True)
        more = self._save_files(folder)
        text = metadata_text(self, _version(), {FILES: file_sums(folder), **more})
        (folder / "metadata").mkdir()
        (folder / "metadata" / "part-00000").write_text(text + "\n", encoding="utf-8")
        (folder / "metadata" / "_SUCCESS").touch()

    def _save_files(self, folder: Path) -> dict[str, Any]:
        """Write what Params do not hold into a folder; returns more metadata, as JSON."""
        return {}

    @classmethod
    def _load_files(
        cls: type[Stage], folder: Path, metadata: dict[str, Any], trusted: bool
    ) -> Stage:
        """Return the stage with what `_save_files` wrote; its Params are set afterwards."""
        return cls()

    def _params_as_json(self, params: dict[Any, Any]) -> dict[str, Any]:
        """Return those Params of a map that no file holds, by name."""
        for param, value in params.items():
            try:
                json.dumps(value)
            except (TypeError, ValueError) as error:
                raise SparkError(f"{param.name} is {value!r}, which JSON cannot hold") from error
        return {param.name: value for param, value in params.items()}


class StageWriter(MLWriter):  # type: ignore[misc]
    """Writes a stage's folder."""

    def __init__(self, stage: SavedStage) -> None:
        super().__init__()
        self._stage = stage

    def _handleOverwrite(self, path: str) -> None:  # noqa: N802
        if is_classic(self.sparkSession):
            super()._handleOverwrite(path)
            return
        from pyspark.ml.connect.readwrite import RemoteMLWriter

        RemoteMLWriter.handleOverwrite(path, True)

    def saveImpl(self, path: str) -> None:  # noqa: N802
        session = self.sparkSession
        path = path.rstrip("/")
        self._check_free(path)
        stage = self._stage
        with scratch_folder("staging") as staged:
            more = stage._save_files(Path(staged))
            files = file_sums(Path(staged))
            for name in files:
                remote_file(f"{path}/{name}", session).put(Path(staged, name))
        text = metadata_text(stage, session.version, {FILES: files, **more})
        rows = session.createDataFrame([(text,)], ["value"])
        rows.coalesce(1).write.text(f"{path}/metadata")

    def _check_free(self, path: str) -> None:
        """FileError where there is a stage already; Spark would find its own part of it only."""
        from pyspark.errors import PySparkException

        try:
            self.sparkSession.read.text(f"{path}/metadata").head(1)
        except PySparkException:
            return
        raise FileError(path, "is a saved stage already: write().overwrite().save(…) replaces it")


def metadata_text(stage: SavedStage, version: str, more: dict[str, Any]) -> str:
    """Return the metadata, as pyspark.ml writes them."""
    maps = {"paramMap": stage._paramMap, "defaultParamMap": stage._defaultParamMap}
    metadata = {
        "class": f"{type(stage).__module__}.{type(stage).__name__}",
        "timestamp": int(time.time() * 1000),
        "sparkVersion": version,
        "uid": stage.uid,
        **{name: stage._params_as_json(params) for name, params in maps.items()},
        **more,
    }
    return json.dumps(metadata, separators=(",", ":"))


def _version() -> str:
    from pyspark import __version__

    return str(__version__)


class StageReader(MLReader, Generic[Stage]):  # type: ignore[misc]
    """Reads a stage's folder."""

    def __init__(self, kind: type[Stage]) -> None:
        super().__init__()
        self._kind = kind
        self._is_trusted = False

    def trusted(self) -> StageReader[Stage]:
        """Let the net import Python layers, and read and write files, and what a module names be
        imported and called."""
        self._is_trusted = True
        return self

    def load(self, path: str) -> Stage:
        path = path.rstrip("/")
        metadata = self._metadata(path)
        with scratch_folder("fetched") as folder:
            for name, facts in metadata[FILES].items():
                self._fetch(f"{path}/{name}", facts, Path(folder, name))
            try:
                stage = self._kind._load_files(Path(folder), metadata, self._is_trusted)
            except SparkNetError as error:
                raise with_path(error, folder, path) from error
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(path, f"is no saved {self._kind.__name__}: {error!r}") from error
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage

    def _metadata(self, path: str) -> dict[str, Any]:
        from pyspark.errors import PySparkException

        try:
            text = self.sparkSession.read.text(f"{path}/metadata").head()[0]
        except PySparkException as error:
            reason = str(error).strip().partition("\n")[0]
            raise FileError(path, f"is no saved stage: {reason}") from error
        kind = f"{self._kind.__module__}.{self._kind.__name__}"
        try:
            metadata: dict[str, Any] = DefaultParamsReader._parseMetaData(text, kind)
            files = metadata[FILES]
            sound = has_sound_names(files)
        except (AssertionError, KeyError, ValueError, TypeError) as error:
            raise FileError(path, f"is no saved {self._kind.__name__}: {error}") from error
        if not sound:
            raise FileError(path, f"is no saved {self._kind.__name__}: its files have odd names")
        return metadata

    def _fetch(self, url: str, said: dict[str, Any], copy: Path) -> None:
        remote_file(url, self.sparkSession).fetch(copy)
        check_file(copy, url, said)
