"""Predictor: a net or a module that predicts, as every room above knows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from sparknet.net.heads import Head, Kind
from sparknet.net.model import Array, InputShape, Model, PortableModel
from sparknet.predict.output_columns import Output
from sparknet.predict.prediction import Prediction
from sparknet.predict.request import Request
from sparknet.predict.texts import TokenizerFile
from sparknet.proto.byte_source import StrPath

if TYPE_CHECKING:
    import pyarrow as pa

Sizes = tuple[int, ...]


class TableSchema(Protocol):
    """The columns of data that nobody has read yet."""

    @property
    def columns(self) -> list[str]:
        """The columns' names."""

    def names(self, columns: Mapping[str, str], inputs: Iterable[str] = ()) -> dict[str, str]:
        """Return input → column as the data writes it."""

    def check(self, columns: Iterable[str], texts: bool = False) -> None:
        """SparkError if a column's type is none that a model takes."""

    def record_shapes(self, mapping: Mapping[str, str]) -> dict[str, Sizes]:
        """Return input → the shape of raw records, where the data says it."""

    def is_picture(self, column: str) -> bool:
        """Return whether a column holds bytes or images."""

    def key(self, request: Request) -> str | None:
        """Return the column that names a row in messages."""

    def first_rows(
        self, mapping: Mapping[str, str], sizes: Mapping[str, Sizes]
    ) -> dict[str, Array]:
        """Return a few records by input, in these shapes."""


class Predictor(ABC):
    """A model, the columns of its inputs, and what is known of its classes and texts."""

    model: Model
    """The net or module."""
    columns: dict[str, str]
    labels: tuple[str, ...] = ()
    features: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Input → the columns of a table that are its record together, one number each."""
    tokens: TokenizerFile | None = None
    """What makes numbers of texts, if the model takes texts."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's name."""

    @property
    def inputs(self) -> Mapping[str, InputShape]:
        """The inputs, and the shapes that they take."""
        return self.model.inputs

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return list(self.inputs)

    @abstractmethod
    def outputs(self, request: Request, table: TableSchema | None = None) -> list[Output]:
        """Return the columns that are asked for."""

    @abstractmethod
    def mapping(self, request: Request, table: TableSchema | None = None) -> dict[str, str]:
        """Return input → column, for the inputs that the outputs depend on."""

    @abstractmethod
    def plan(self, request: Request, table: TableSchema | None = None) -> Prediction:
        """Return what is done to each batch of rows."""

    @abstractmethod
    def record_shapes(self, outputs: Sequence[Output]) -> dict[str, Sizes]:
        """Return the shape of a record of each blob, where it has one."""

    @abstractmethod
    def heads(
        self, request: Request, table: TableSchema | None = None, kind: Kind | None = None
    ) -> list[Head]:
        """Return the predictions that `evaluate` compares with the truth.

        ``kind`` says what a module's numbers are; unless given, what the loss took them for, else
        classes if there are several for a record.
        """

    def truth_shapes(self) -> Mapping[str, tuple[int | None, ...]]:
        """Return the shape of a record of each target that is an input."""
        return {}

    @abstractmethod
    def portable(self) -> PortableModel:
        """Return the model without its weights, for executors."""

    @abstractmethod
    def save(self, path: StrPath) -> None:
        """Write a folder, or files beside each other, that `sparknet.load` reads."""

    def warn_of_batch(  # noqa: B027 - of nets alone
        self, batch: pa.RecordBatch, mapping: Mapping[str, str]
    ) -> None:
        """Warn of pictures without preprocessing, once."""
