"""open_training: a training on Spark before it has workers, with its rows, of a net or a module."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.net.files import fetched, local_path
from sparknet.net.recipe import names_model
from sparknet.net.record_checks import check_names, class_numbers
from sparknet.net.scratch import scratch_folder
from sparknet.net.weighting import WeighedNets, label_input
from sparknet.predict.input_columns import InputSpec, column_map, input_specs
from sparknet.predict.module_predictor import record_sizes
from sparknet.spark.cluster.probe import THREADS, footprint
from sparknet.spark.filesystem.remote import open_runs
from sparknet.spark.predict.table import (
    FrameTable,
    check_types,
    column_name,
    column_names,
    record_shapes,
    with_class_numbers,
    with_classes,
    with_features,
)
from sparknet.spark.train.frame import COLUMN as WEIGHT
from sparknet.spark.train.frame import FrameWeights, frame, mapped, without_weights
from sparknet.torch.modules.calling import ModuleLoss, arguments, chosen_inputs
from sparknet.torch.modules.trial import parts_of
from sparknet.training.checkpoints.runs import save_weights
from sparknet.training.driver.setup import Begin, NetSetup, RunSetup
from sparknet.training.module_setup import ModuleSetup, set_weights
from sparknet.training.settings.training import StrPath
from sparknet.training.training_net import net_of
from sparknet.training.workers.shared_data import TableColumns
from sparknet.weights import WeightCollection
from sparknet.weights.files import is_model_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRAINING, VALIDATION = "the training data", "the validation data"


@dataclass(frozen=True)
class SparkOpening:
    """What is trained, and the rows that the workers read."""

    setup: RunSetup
    training: DataFrame
    held_out: DataFrame | None
    mapping: dict[str, str]
    """Input or target → column."""
    shapes: dict[str, InputSpec]
    needed: int
    """Bytes of memory of a worker."""
    columns: dict[str, str] | None
    """Input → column, for the model that is trained."""
    changed: dict[str, Any] = field(default_factory=dict)
    """Settings that follow from the net."""


def open_training(
    trainer: Any, session: SparkSession, data: Any, validation: Any, resume: bool
) -> SparkOpening:
    """Return the run of a `Trainer`'s net or module on an RDD or a DataFrame."""
    settings = trainer.run_settings
    runs = None if settings.snapshots is None else open_runs(session, settings.snapshots)
    begin = (settings, runs, resume, validation is not None)
    if trainer.module is not None:
        return _open_module(trainer, session, data, validation, begin)
    if trainer.solver is None:
        raise SparkError("Trainer has no solver: Trainer(solver, …), or a module")
    return _open_net(trainer, session, data, validation, begin)


def _open_net(
    trainer: Any, session: SparkSession, data: Any, validation: Any, begin: Begin
) -> SparkOpening:
    weights = FrameWeights(trainer.weight_column, trainer.class_weights)
    nets = WeighedNets(partial(_net, trainer, session), weights.is_given)
    setup = NetSetup(*begin, nets)
    setup.check(weights=setup.weights().flat.size)
    plain, entries = nets.plain, list(nets.plain.inputs)
    features, columns = _table_columns(trainer, plain)
    names = [column_map(columns).get(entry, entry) for entry in entries if entry not in features]
    names += chain(*features.values())
    training = _records(frame(data, [*names, *weights.columns], TRAINING), features, trainer.label)
    mapping = mapped(training, entries, columns, TRAINING)
    training, labels = with_classes(
        training, mapping.values(), plain.labels, "training data", learns=True
    )
    check_names(plain, labels, "training data")
    raw_shapes = record_shapes(training, mapping)
    held_out = None
    if validation is not None:
        held_out = _records(frame(validation, names, VALIDATION), features, trainer.label)
        same = mapped(held_out, entries, columns, VALIDATION).values()
        held_out, _ = with_classes(held_out, same, labels, "validation data")
    if weights.is_given:
        label = mapping.get(label_input(plain) or "")
        training, held_out = _weigh(weights, training, held_out, label)
        mapping |= dict.fromkeys(nets.weights, WEIGHT)
    plain.labels = labels
    net, is_net = setup.net, isinstance(trainer.solver, Net)
    return SparkOpening(
        setup,
        training,
        held_out,
        mapping,
        input_specs(net.inputs.values(), True, raw_shapes, class_numbers(plain), features),
        footprint(net),
        columns,
        {
            "backend": net.backend.name,
            "precision": net.precision if is_net else trainer.precision,
        },
    )


Features = Mapping[str, Sequence[str]]


def _table_columns(trainer: Any, net: Net) -> tuple[Features, dict[str, str] | None]:
    """Return input → the columns of its record, and input → column for the other inputs."""
    table = TableColumns.of(trainer)
    if table is None:
        return {}, trainer.columns
    _, target = table.inputs(net)
    columns = column_map(trainer.columns)
    if target is not None and table.label is not None:
        columns = {**columns, target: table.label}
    return net.features, columns


def _records(data: DataFrame, features: Features, label: str | None) -> DataFrame:
    """Return rows with a column for each input that several columns make, and numbered classes."""
    for name in features:
        if (own := column_name(data, name)) is not None:
            raise SparkError(
                f"the data has a column '{own}', and features make the net's input '{name}': "
                "rename or drop the column"
            )
    data = with_features(data, features)
    return data if label is None else with_class_numbers(data, label)


def _net(trainer: Any, session: SparkSession, seed: int | None) -> Net:
    """Return the net with the initial weights."""
    weights: Any = trainer.weights
    with ExitStack() as stack:
        if (collection := weights_of(weights)) is not None:
            # By a file, whose layers are copied by name.
            weights = Path(stack.enter_context(scratch_folder()), "init.caffemodel")
            collection.save(weights)
        elif weights is not None and _is_folder(weights) and not is_model_folder(weights):
            folder = stack.enter_context(scratch_folder())
            weights = save_weights(partial(open_runs, session), os.fspath(weights), folder)
        path = stack.enter_context(fetched(weights, session))
        solver = trainer.solver
        if names_model(solver):
            solver = stack.enter_context(fetched(solver, session))
        net = net_of(trainer, solver, path, seed)
        _ = net.solver  # builds the net, with these weights
    return net


def weights_of(model: Any) -> WeightCollection | None:
    """Return the weights of a `Net`, or of a model of one; None of anything else."""
    if isinstance(model, WeightCollection):
        return model
    inner = model
    if not isinstance(model, Net):  # a stage of a pipeline has a SparkModel, and that a Net
        inner = getattr(getattr(model, "model", model), "net", None)
    return inner.get_weights() if isinstance(inner, Net) else None


def _is_folder(weights: StrPath) -> bool:
    """Return whether this is a folder of snapshots; a URL is told from a file of weights by its
    name.
    """
    if (here := local_path(weights)) is not None:
        return Path(here).is_dir()
    return not os.fspath(weights).endswith((".caffemodel", ".h5", ".onnx"))


def _open_module(
    trainer: Any, session: SparkSession, data: Any, validation: Any, begin: Begin
) -> SparkOpening:
    weights = FrameWeights(trainer.weight_column, trainer.class_weights)
    parts = parts_of(trainer.module, trainer.loss, trainer.optimizer, trainer.lr_schedule)
    module, targets, by_input = parts.module, trainer.targets, column_map(trainer.columns)
    names = [by_input.get(name, name) for name in (*arguments(module)[0], *targets)]
    training = frame(data, [*names, *weights.columns], TRAINING)
    by_input = column_names(training, by_input, (*chain(*arguments(module)), *targets))
    bound = {*names, *by_input.values()}
    offered = [one for one in training.columns if one in bound or one not in weights.columns]
    inputs = chosen_inputs(module, offered, targets, by_input)
    mapping = {**inputs, **{name: by_input.get(name, name) for name in targets}}
    check_types(training, mapping.values(), TRAINING)
    columns = [mapping[name] for name in targets]
    training, labels = with_classes(training, columns, (), "training data", learns=True)
    held_out = None
    if validation is not None:
        held_out = frame(validation, names, VALIDATION)
        chosen_inputs(module, held_out.columns, targets, {**by_input, **inputs})
        check_types(held_out, mapping.values(), VALIDATION)
        same = column_names(held_out, dict(zip(columns, columns, strict=True))).values()
        held_out, _ = with_classes(held_out, same, labels, "validation data")
    if weights.is_given:
        is_class = len(targets) == 1 and ModuleLoss(trainer.loss).kind == "classes"
        training, held_out = _weigh(weights, training, held_out, columns[0] if is_class else None)
        mapping[WEIGHT] = WEIGHT
    table = FrameTable(training, TRAINING)
    raw_shapes = table.record_shapes(mapping)
    first = table.first_rows(mapping, raw_shapes | record_sizes(trainer.shapes))
    weight = WEIGHT if weights.is_given else None
    setup = ModuleSetup(*begin, trainer, parts, {name: name for name in inputs}, first, weight)
    initial: Any = trainer.weights
    set_weights(setup.flat, initial, partial(open_runs, session))
    setup.check(weights=setup.flat.weights.size)
    shapes = {
        name: InputSpec(one.shape[1:], told=raw_shapes.get(name)) for name, one in first.items()
    }
    needed = 4 * setup.copies * setup.flat.weights.size + THREADS
    return SparkOpening(setup, training, held_out, mapping, shapes, needed, inputs)


def _weigh(
    weights: FrameWeights, training: DataFrame, held_out: DataFrame | None, label: str | None
) -> tuple[DataFrame, DataFrame | None]:
    """Return both sets with the weights of their rows."""
    weighed = weights.added_to(training, label)
    return weighed, None if held_out is None else without_weights(held_out)
