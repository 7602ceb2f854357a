"""ModuleModel: a module of PyTorch that predicts columns of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SettingError, SparkError
from sparknet.proto.suggest import did_you_mean
from sparknet.spark.address import no_data, session_of
from sparknet.spark.ask import Ask, check_used, output_of
from sparknet.spark.column_types import check_types, named
from sparknet.spark.columns import Wanted
from sparknet.spark.first_rows import Array, first_rows, record_sizes
from sparknet.spark.outputs import Best, Output
from sparknet.spark.prediction import Invalid, Prediction
from sparknet.spark.shared_weights import SharedWeights, send_weights
from sparknet.spark.transformed import key_of, transformed
from sparknet.training.modules.calling import chosen_inputs, tensor
from sparknet.training.modules.flat_module import FlatModule
from sparknet.training.modules.portable import ModuleParts, PortableModule, packed
from sparknet.training.modules.trainee import evaluating

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH = 64
_LARGEST = 64 << 20
"""The limit of an Arrow batch of results in bytes."""


class ModuleModel:
    """Predicts with a module of PyTorch: ``ModuleModel(module)``, or what `Trainer.fit` returns.

    ``columns`` maps the arguments of the module's forward to the data's columns.  ``shapes`` says
    what a column of bytes or of flat lists holds, as in ``{"pixels": [None, 3, 32, 32]}``.  The
    module computes in its mode of evaluation; it is not changed.
    """

    def __init__(
        self,
        module: Any,
        *,
        columns: dict[str, str] | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        records: Mapping[str, Array] | None = None,
    ) -> None:
        """``records`` are a few records by argument; else the data's first ones are looked at."""
        self.module, self.columns = module, named(columns)
        self._sizes, self._records = record_sizes(shapes), records

    def transform(
        self,
        data: DataFrame,
        outputs: Sequence[str] | None = None,
        *,
        columns: dict[str, str] | None = None,
        prefix: str = "",
        best: str | None = None,
        batch: int | None = None,
        invalid: Invalid = "raise",
        reason: str | None = None,
        key: str | None = None,
        top: int | None = None,
        labels: Sequence[str] | None = None,
        vectors: bool = False,
    ) -> DataFrame:
        """The data with a column for each of the module's outputs, as `SparkModel.transform` does.

        A tensor is called output, those of a tuple output_0, output_1 and so on, those of a dict as
        there.  ``best`` names a column for the index of the largest value of the first.
        """
        if not hasattr(data, "mapInArrow"):
            raise SparkError(f"the data is {no_data(data, 'a DataFrame')}")
        session = session_of(data, "the data")
        ask = Ask(
            outputs=outputs,
            columns=columns,
            prefix=prefix,
            best=best,
            batch=batch,
            invalid=invalid,
            reason=reason,
            key=key,
            top=top,
            labels=labels,
            vectors=vectors,
        )
        given = self.columns | named(columns)
        mapping = chosen_inputs(self.module, data.columns, (), given)
        check_types(data, mapping.values(), "the data")
        records = self._records
        if records is None or records.keys() != mapping.keys():
            records = first_rows(data, mapping, self._sizes, "the data")
        sent = PortableModule(
            packed(ModuleParts(self.module, None, None, None)),
            {name: name for name in mapping},
            (),
            1,
            "average",
            None,
            "cpu",
        )
        made = computed(self.module, records)
        found = _outputs(made, ask)
        flat = flat_copy(sent, self.module)
        batch = ask.batch or _BATCH
        record = 4 * sum(prod(made[one.blob].shape[1:]) for one in found)
        task = ModulePrediction(
            mapping=mapping,
            shapes={name: Wanted(one.shape[1:]) for name, one in records.items()},
            outputs=found,
            batch=batch,
            most=max(_LARGEST // max(record, 1) // batch, 1) * batch,
            invalid=ask.invalid,
            reason=ask.reason,
            key=key_of(ask, data),
            module=sent,
        )
        return transformed(data, replace(task, weights=send_weights(session, flat.weights)))

    def __repr__(self) -> str:
        return f"<ModuleModel '{type(self.module).__name__}'>"


@dataclass(frozen=True)
class ModulePrediction(Prediction):
    """A task that predicts with a module."""

    module: PortableModule | None = None

    @property
    def cache_key(self) -> Any:
        assert self.module is not None
        return self.weights, blake2b(self.module.data, digest_size=16).hexdigest()

    def make_net(self) -> Any:
        from pyspark import SparkFiles

        assert self.module is not None
        weights = SharedWeights(Path(SparkFiles.get(self.weights)))
        flat = FlatModule(self.module.unpacked().module, learns=False)
        flat.weights.copy_from(weights.flat)
        flat.push()
        return WorkerModule(flat.module)


@dataclass(frozen=True)
class WorkerModule:
    """A module in a Python worker."""

    module: Any

    def run(self, values: dict[str, Array], blobs: Sequence[str]) -> dict[str, Array]:
        made = computed(self.module, values)
        return {name: made[name] for name in blobs}

    def trim(self) -> None:
        """Nothing is kept between partitions but the weights."""


def flat_copy(sent: PortableModule, module: Any) -> FlatModule:
    """A module's values as one flat buffer; the module itself stays as it is."""
    flat = FlatModule(sent.unpacked().module, learns=False)
    flat.module.load_state_dict(module.state_dict(), strict=False)
    flat.pull()
    return flat


def computed(module: Any, values: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a batch by name, as float32."""
    import torch

    given = {name: tensor(one, True) for name, one in values.items()}
    with torch.no_grad(), evaluating(module):
        made = module(**given)
    if isinstance(made, torch.Tensor):
        named_outputs: dict[str, Any] = {"output": made}
    elif isinstance(made, Mapping):
        named_outputs = dict(made)
    else:
        named_outputs = {f"output_{number}": one for number, one in enumerate(made)}
    return {
        name: one.detach().cpu().to(torch.float32).numpy()
        for name, one in named_outputs.items()
        if isinstance(one, torch.Tensor)
    }


def _outputs(made: Mapping[str, Array], ask: Ask) -> list[Output]:
    """The columns that are asked for."""
    count = next((one.shape[0] for one in made.values() if one.ndim), 0)
    whole = [name for name, one in made.items() if one.ndim and one.shape[0] == count]
    for name in ask.outputs or ():
        if name not in whole:
            raise SparkError(
                f"the module has no output '{name}': {whole}{did_you_mean(name, whole)}"
            )
    names, labels = list(ask.outputs or whole), ask.names()
    if not names:
        raise SettingError("the module's outputs are no tensors with a row for each record")
    found: list[Output] = [
        output_of(name, ask.prefix + name, 0, np.shape(made[name])[1:], ask, labels)
        for name in names
    ]
    check_used(found, ask)
    if ask.best is not None:
        found.append(Best(found[0].blob, ask.best))
    return found
