"""Training of a module of PyTorch on Spark: what `Trainer.fit` does of ``module=``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sparknet.spark.address import session_of
from sparknet.spark.column_types import check_types, named, told_shapes
from sparknet.spark.columns import Wanted
from sparknet.spark.conducting import conduct
from sparknet.spark.first_rows import Array, first_rows, record_sizes
from sparknet.spark.footprint import THREADS
from sparknet.spark.frame import frame, numbered
from sparknet.spark.hadoop import open_runs
from sparknet.spark.module_model import ModuleModel
from sparknet.spark.task import Columns
from sparknet.spark.trained import SparkTrained
from sparknet.training.modules.beginning import ModuleBeginning, parts_of, set_weights
from sparknet.training.modules.calling import arguments, chosen_inputs
from sparknet.training.modules.keywords import ModuleKeywords
from sparknet.training.modules.trained import TrainedModule
from sparknet.training.training_settings import RunSettings


@dataclass(frozen=True)
class SparkTrainedModule(SparkTrained, TrainedModule):
    """The result of training a module on Spark."""

    first: Mapping[str, Array] = field(default_factory=dict, repr=False)
    """A few records by argument, which say what the module is given."""

    @property
    def model(self) -> ModuleModel:  # type: ignore[override]
        mapping = self.columns or {}
        known = {name: self.first[name] for name in mapping}
        return ModuleModel(self.module, columns=mapping, records=known)


def fit_module(
    given: RunSettings,
    how: ModuleKeywords,
    data: Any,
    validation: Any,
    *,
    columns: dict[str, str] | None,
    weights: Any,
    drops: bool,
    resume: bool,
    patience: float | None,
) -> SparkTrainedModule:
    """Train a module by tasks of Spark."""
    session = session_of(data)
    runs = None if given.snapshots is None else open_runs(session, given.snapshots)
    parts, said = parts_of(how), named(columns)
    names = [said.get(name, name) for name in (*arguments(parts.module)[0], *how.targets)]
    training = frame(data, names, "the training data")
    inputs = chosen_inputs(parts.module, training.columns, how.targets, said)
    mapping = {**inputs, **{name: said.get(name, name) for name in how.targets}}
    check_types(training, mapping.values(), "the training data")
    held = None if validation is None else frame(validation, names, "the validation data")
    if held is not None:
        chosen_inputs(parts.module, held.columns, how.targets, {**said, **inputs})
        check_types(held, mapping.values(), "the validation data")
    told = told_shapes(training, mapping)
    first = first_rows(training, mapping, told | record_sizes(given.shapes))
    begun = ModuleBeginning(
        given,
        runs,
        resume,
        validation is not None,
        how,
        parts,
        {name: name for name in inputs},
        first,
    )
    set_weights(begun.flat, weights, partial(open_runs, session))
    initial = begun.weights()
    begun.check(weights=initial.flat.size)
    wanted = {name: Wanted(one.shape[1:], told=told.get(name)) for name, one in first.items()}
    outcome, trained, run = conduct(
        session,
        given,
        begun,
        initial.flat,
        numbered(training, held, mapping, given.workers),
        Columns(mapping, wanted, drops),
        resume=resume,
        patience=patience,
        needed=4 * begun.copies * initial.flat.size + THREADS,
    )
    result = begun.trained(outcome, trained, run.history)
    return run.done(
        SparkTrainedModule(
            result.weights,
            result.history,
            result.net,
            outcome,
            inputs,
            first,
            module=result.module,
        )
    )
