"""CaffeSource: a format of Spark for each kind of Caffe's data sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from sparknet.errors import FileError, SettingError
from sparknet.loaders import Records, open_records
from sparknet.loaders.hdf5 import read_list
from sparknet.loaders.image_decoding import Size
from sparknet.loaders.image_files import SUFFIXES, PictureReader, Pictures
from sparknet.loaders.records import with_classes
from sparknet.net.files import local_path
from sparknet.predict.prediction import in_one_line
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.filesystem.record_batches import RecordBatches
from sparknet.spark.filesystem.videos import COLUMNS, FrameReader, Span
from sparknet.spark.sources.readers import FolderReader, PartReader, check_shapes, ranges

if TYPE_CHECKING:
    import pyarrow as pa


def _size(text: str) -> Size:
    """Return height and width of ``224``, ``224x320`` or ``224,320``."""
    height, _, width = text.replace("x", ",").partition(",")
    return int(height), int(width or height)


def _color(text: str) -> Any:
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "color": _color,
    "every": float,
    "invalid": str,
    "labels": str,
    "root": str,
    "size": _size,
    "span": float,
}
"""The options of loaders, and how they are read."""
OWN_OPTIONS = ("path", "partitions", "classes", "maxFilesPerTrigger")


class CaffeSource(DataSource):  # type: ignore[misc]  # mypy does not read PySpark
    """Data sets of one kind: the path names one of them, or a folder with several."""

    kind: ClassVar[str]
    """The loader, as `open_records` names it."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """How the names of data sets end."""
    own_options: ClassVar[tuple[str, ...]] = OWN_OPTIONS
    takes: ClassVar[tuple[str, ...]] = ("size", "color", "invalid")
    """The options of the loader."""

    def schema(self) -> Any:
        with in_one_line():
            return RecordBatches(self.open_all()).schema()

    def reader(self, schema: Any) -> DataSourceReader:
        with in_one_line():
            records = self.open_all(schema.names)
            for name in schema.names:
                if name not in records.columns:
                    near = did_you_mean(name, list(records.columns))
                    raise FileError(self.path, f"has no column '{name}'{near}")
            batches = RecordBatches(records, schema.names)
            return PartReader(ranges(batches, self.number("partitions")), batches.read_range)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - PySpark's name
        return FolderReader(self, schema)

    @cached_property
    def path(self) -> Path:
        """The path of ``load``, after a check of all options."""
        takes = (*self.own_options, *self.takes)
        for name in self.options:
            if name.lower() not in map(str.lower, takes):
                raise SettingError(
                    f"format {self.name()} has no option '{name}'{did_you_mean(name, takes)}: it "
                    f"takes {', '.join(takes)}"
                )
        if "path" not in self.options:
            raise SettingError(f"format {self.name()} needs a path, as load('folder') gives it")
        path = local_path(self.options["path"])
        if path is None:
            raise FileError(self.options["path"], "is no path of files that executors can open")
        return Path(path)

    def number(self, name: str) -> int | None:
        """Return an option that is a number above 0."""
        text = self.options.get(name)
        if text is not None and not (text.isdecimal() and int(text)):
            raise SettingError(f"option '{name}' is '{text}': a number above 0 is needed")
        return None if text is None else int(text)

    @property
    def classes(self) -> list[str]:
        """The names of the classes in the order of their numbers, if the option says them."""
        return [name.strip() for name in self.options.get("classes", "").split(",") if name.strip()]

    def open_all(self, names: Sequence[str] = ()) -> Records:
        """Return the records of the path, with these columns at least."""
        if self.is_data_set(self.path) or not self.path.is_dir():
            return self.open([self.path], names)
        paths = self.list_data_sets()
        if not paths:
            raise FileError(
                self.path, f"holds no data set of {self.name()}: a stream of it needs a schema"
            )
        return self.open(paths, names)

    def is_data_set(self, path: Path) -> bool:
        return path.suffix.lower() in self.suffixes and path.is_file()

    def list_data_sets(self) -> list[Path]:
        """Return the data sets in the folder; names with a dot or an underscore before are none."""
        if not self.path.is_dir():
            raise FileError(self.path, "is no folder, and a stream reads one")
        return [
            path
            for path in sorted(self.path.rglob("*"))
            if self.is_data_set(path)
            and not any(part[0] in "._" for part in path.relative_to(self.path).parts)
        ]

    def open(self, paths: Sequence[Path], names: Sequence[str] = ()) -> Records:
        """Return the records of data sets, with these columns at least."""
        return self.number_classes(open_records(paths, kind=self.kind, **self.loader_options()))

    def number_classes(self, records: Records) -> Records:
        """Return records with their classes numbered as the option says."""
        return with_classes(records, self.classes, "data set")[0] if self.classes else records

    def loader_options(self) -> dict[str, Any]:
        try:
            return {n: OPTIONS[n](self.options[n]) for n in self.takes if n in self.options}
        except ValueError as error:
            raise SettingError(f"options of {self.name()}: {error}") from error

    def check_stream(self) -> None:
        """Raise SettingError if a stream cannot know the number of each class."""

    def split(self, names: Sequence[str]) -> Sequence[Any]:
        """Return what each task of a stream's batch reads of these data sets."""
        return [[name] for name in names]

    def read_part(self, part: Any, schema: Any) -> Iterable[pa.RecordBatch]:
        """Return the rows of what a task reads."""
        with in_one_line():
            records = self.open([Path(name) for name in part], schema.names)
            batches = RecordBatches(records, schema.names)
            check_shapes(schema, batches, part[0])
        return batches.read_range(0, len(records))


class LMDBSource(CaffeSource):
    """LMDBs of Datum, and LevelDBs."""

    kind = "datums"

    @classmethod
    def name(cls) -> str:
        return "caffe.lmdb"

    def is_data_set(self, path: Path) -> bool:
        return any((path / name).is_file() for name in ("data.mdb", "CURRENT"))


class HDF5Source(CaffeSource):
    """HDF5 files, and lists of them."""

    kind = "hdf5"
    suffixes = (".h5", ".hdf5")
    takes = ()

    @classmethod
    def name(cls) -> str:
        return "caffe.hdf5"

    def open(self, paths: Sequence[Path], names: Sequence[str] = ()) -> Records:
        if not self.is_data_set(paths[0]):
            paths = [Path(name) for path in paths for name in read_list(str(path))]
        return open_records(paths, kind=self.kind, names=list(names) or None)


class TarSource(CaffeSource):
    """Tars of images."""

    kind = "tars"
    suffixes: ClassVar[tuple[str, ...]] = (".tar",)
    takes = ("labels", "size", "color", "invalid")

    @classmethod
    def name(cls) -> str:
        return "caffe.tars"

    def check_stream(self) -> None:
        if not self.classes and "labels" not in self.options:
            raise SettingError(
                f"a stream of {self.name()} needs the option classes, the names of all classes in "
                "the order of their numbers: nobody knows those of files that will arrive"
            )


class ImageSource(TarSource):
    """Images, each in the folder of its class, or listed in a file."""

    kind = "images"
    suffixes = tuple(SUFFIXES)
    takes = ("root", "size", "color", "invalid")

    @classmethod
    def name(cls) -> str:
        return "caffe.images"

    def open_all(self, names: Sequence[str] = ()) -> Records:
        return super().open([self.path], names)

    def list_data_sets(self) -> list[Path]:
        paths = super().list_data_sets()
        for path in paths:
            if self._class(path) not in self.classes:
                raise FileError(path, f"lies in no folder of the classes {', '.join(self.classes)}")
        return paths

    def open(self, paths: Sequence[Path], names: Sequence[str] = ()) -> Records:
        labels = [self.classes.index(self._class(path)) for path in paths]
        return ArrivedImages(list(map(str, paths)), labels, **self.loader_options())

    def split(self, names: Sequence[str]) -> Sequence[Any]:
        parts = min(self.number("partitions") or os.cpu_count() or 1, len(names))
        return [names[part::parts] for part in range(parts)]

    def _class(self, path: Path) -> str:
        """Return the folder in which an image lies, in the folder of the stream."""
        return path.relative_to(self.path).parts[0]


class VideoSource(CaffeSource):
    """Videos, a row for each frame."""

    kind = "videos"
    suffixes = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv")
    own_options = ("path", "maxFilesPerTrigger")
    takes = ("every", "span")

    @classmethod
    def name(cls) -> str:
        return "caffe.videos"

    def schema(self) -> str:
        with in_one_line():
            _ = self.path  # checks the options
            return self.frames().schema

    def reader(self, schema: Any) -> DataSourceReader:
        with in_one_line():
            paths = self.list_data_sets() if self.path.is_dir() else [self.path]
            if not paths:
                raise FileError(self.path, f"holds no data set of {self.name()}")
            frames = self.frames(schema.names)
            return PartReader(frames.spans(str(path.absolute()) for path in paths), frames.read)

    def split(self, names: Sequence[str]) -> Sequence[Span]:
        return self.frames().spans(names)

    def read_part(self, part: Span, schema: Any) -> Iterable[pa.RecordBatch]:
        return self.frames(schema.names).read(*part)

    def frames(self, columns: Sequence[str] = COLUMNS) -> FrameReader:
        return FrameReader(columns, **self.loader_options())


class ArrivedImages(Pictures):
    """Image files with their labels."""

    def __init__(
        self,
        paths: Sequence[str],
        labels: Sequence[int],
        *,
        size: Size | None = None,
        color: Any = True,
        invalid: str = "raise",
        root: str = "",
    ) -> None:
        self.paths = paths
        super().__init__(PictureReader(size, color, invalid), labels)

    def name(self, number: int) -> str:
        return self.paths[number]

    def stored(self, number: int) -> str:
        return self.paths[number]
