"""Training of a module of PyTorch on Spark: what `Trainer.fit` does of ``module=``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from typing import Any

from sparknet.predict.columns import InputSpec, column_map
from sparknet.predict.module_predictor import ModulePredictor, record_sizes
from sparknet.spark.cluster.probe import THREADS
from sparknet.spark.cluster.session import session_of
from sparknet.spark.filesystem.remote import open_runs
from sparknet.spark.hosts.task import Columns
from sparknet.spark.hosts.train import conduct, partitions
from sparknet.spark.predict.model import SparkModel
from sparknet.spark.predict.table import FrameTable, check_types, column_names, with_classes
from sparknet.spark.train.frame import COLUMN as WEIGHT
from sparknet.spark.train.frame import FrameWeights, frame, numbered, without_weights
from sparknet.spark.train.result import SparkTrained
from sparknet.torch.modules.calling import ModuleLoss, arguments, chosen_inputs
from sparknet.torch.modules.saved_module import StrPath
from sparknet.training.modules.begin import ModuleSetup, TrainedModule, parts_of, set_weights
from sparknet.training.modules.keywords import ModuleKeywords
from sparknet.training.settings.training import RunSettings


@dataclass(frozen=True)
class SparkTrainedModule(SparkTrained, TrainedModule):
    """The result of training a module on Spark."""

    @property
    def model(self) -> SparkModel:
        predictor = ModulePredictor(
            self.module, columns=self.inputs, records=self.first, kind=self.kind
        )
        predictor.made_by = self.made_by
        return SparkModel.of(predictor)

    def save(self, path: StrPath) -> None:
        """Write the same as `SparkModel.save`, to any path that Spark can write."""
        self.model.save(path)


def fit_module(
    given: RunSettings,
    how: ModuleKeywords,
    data: Any,
    validation: Any,
    *,
    columns: dict[str, str] | None,
    weights: Any,
    row_weights: FrameWeights,
    drops: bool,
    resume: bool,
    patience: float | None,
    profile: Any = None,
) -> SparkTrainedModule:
    """Train a module by tasks of Spark."""
    session = session_of(data)
    runs = None if given.snapshots is None else open_runs(session, given.snapshots)
    parts, mapping_of_user = parts_of(how), column_map(columns)
    names = [
        mapping_of_user.get(name, name) for name in (*arguments(parts.module)[0], *how.targets)
    ]
    of_rows = [] if row_weights.column is None else [row_weights.column]
    training = frame(data, names + of_rows, "the training data")
    mapping_of_user = column_names(
        training, mapping_of_user, (*chain(*arguments(parts.module)), *how.targets)
    )
    offered = [
        one
        for one in training.columns
        if one in (*names, *mapping_of_user.values()) or one not in of_rows
    ]
    inputs = chosen_inputs(parts.module, offered, how.targets, mapping_of_user)
    mapping = {**inputs, **{name: mapping_of_user.get(name, name) for name in how.targets}}
    check_types(training, mapping.values(), "the training data")
    validation_rows = (
        None if validation is None else frame(validation, names, "the validation data")
    )
    if validation_rows is not None:
        chosen_inputs(
            parts.module, validation_rows.columns, how.targets, {**mapping_of_user, **inputs}
        )
        check_types(validation_rows, mapping.values(), "the validation data")
    targets = [mapping[name] for name in how.targets]
    training, labels = with_classes(training, targets, (), "training data", learns=True)
    if validation_rows is not None:
        same = column_names(validation_rows, dict(zip(targets, targets, strict=True))).values()
        validation_rows, _ = with_classes(validation_rows, same, labels, "validation data")
    if row_weights.is_given:
        is_class = len(how.targets) == 1 and ModuleLoss(how.loss).kind == "classes"
        training = row_weights.added_to(training, mapping[how.targets[0]] if is_class else None)
        validation_rows = None if validation_rows is None else without_weights(validation_rows)
        mapping[WEIGHT] = WEIGHT
    table = FrameTable(training, "the training data")
    raw_shapes = table.record_shapes(mapping)
    first = table.first_rows(mapping, raw_shapes | record_sizes(given.shapes))
    setup = ModuleSetup(
        given,
        runs,
        resume,
        validation is not None,
        how,
        parts,
        {name: name for name in inputs},
        first,
        WEIGHT if row_weights.is_given else None,
    )
    set_weights(setup.flat, weights, partial(open_runs, session))
    initial = setup.weights()
    setup.check(weights=initial.flat.size)
    shapes = {
        name: InputSpec(one.shape[1:], told=raw_shapes.get(name)) for name, one in first.items()
    }
    outcome, trained, run = conduct(
        session,
        given,
        setup,
        initial.flat,
        numbered(training, validation_rows, mapping, partitions(given)),
        Columns(mapping, shapes, drops),
        resume=resume,
        patience=patience,
        profile=profile,
        needed=4 * setup.copies * initial.flat.size + THREADS,
    )
    result = setup.trained(outcome, trained, run.history)
    facts = {one.name: getattr(result, one.name) for one in fields(TrainedModule)}
    return run.done(SparkTrainedModule(**facts | {"columns": inputs, "inputs": inputs}))
