"""Model: a net of any pycaffe, or a module of PyTorch; the rooms above know nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sparknet.loaders.batches import Batches, Transforms
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.net.learner import Learner
from sparknet.net.model_inputs import ModelInputs
from sparknet.proto.byte_source import StrPath
from sparknet.weights import Layout

Array = np.ndarray[Any, Any]
AllRows = Callable[[Array | None], Array]
"""Returns the rows of all workers, given this one's; every worker calls it."""
PLAIN = ModelInputs()


class InputShape(Protocol):
    """What an input takes: an `Entry` of a net is one."""

    @property
    def record(self) -> tuple[int, ...]:
        """The shape of a record."""

    @property
    def stored(self) -> tuple[int | None, ...]:
        """The shape of a row before what happens to images; None stands for any size."""


@dataclass(frozen=True)
class ModuleInput:
    """What a module is given by an argument."""

    record: tuple[int, ...]

    @property
    def stored(self) -> tuple[int | None, ...]:
        return self.record


class Model(ABC):
    """What computes outputs of batches, and learns of them."""

    batch_size: int
    """Records of a batch in training."""
    iter_size: int
    """Batches of an iteration."""

    @property
    @abstractmethod
    def inputs(self) -> Mapping[str, InputShape]:
        """The inputs, and the shapes of their records."""

    @abstractmethod
    def save(self, path: StrPath, metadata: ModelInputs = PLAIN) -> None:
        """Write files for `sparknet.load`; ``metadata`` has columns, classes and texts."""

    @property
    @abstractmethod
    def weights(self) -> NDArray:
        """All weights for prediction, as one flat buffer."""

    @property
    def device(self) -> str | None:
        """PyTorch's name of where the model computes, if it is not the native engine."""
        return None

    # -- predicting ----------------------------------------------------------------------

    @abstractmethod
    def forward(self, values: dict[str, Array], outputs: Sequence[str]) -> dict[str, Array]:
        """Return outputs of a batch; they may lie in the model's own memory."""

    def trim(self) -> None:  # noqa: B027 - nothing to give back
        """Give back the memory that only a pass needs."""

    # -- learning ------------------------------------------------------------------------

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Where the weights that learn lie in the learner's buffers."""

    @property
    def transforms(self) -> Transforms:
        """What `Batches` does to columns in its thread."""
        return {}

    @property
    def chance(self) -> float | None:
        """The loss of a model that guesses, where that is known."""
        return None

    @abstractmethod
    def learner(self, batches: Batches) -> Learner:
        """Return what trains it, with random numbers of this worker's own; weights come later."""

    @abstractmethod
    def set_validation_data(self, records: Records) -> None:
        """Validate on these records from now on."""

    @abstractmethod
    def measure(self, metrics: Sequence[str], all_rows: AllRows) -> dict[str, float]:
        """Return the means over the validation records; {} where there are none."""

    @abstractmethod
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the least and the largest value of each input's last batch, but of labels."""


class PortableModel(Protocol):
    """A model that travels without its weights."""

    @property
    def key(self) -> Any:
        """What tells it from other models."""

    def open(self, weights: NDArray, device: str | None) -> Model:
        """Make the model over these weights."""
