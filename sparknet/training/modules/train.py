"""Training of a module on this machine: what `sparknet.train` does of ``module=``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparknet.errors import DataError
from sparknet.loaders.records import ArrayRecords, Records, with_classes
from sparknet.net.rows import frame_columns, is_frame
from sparknet.net.scratch import scratch_folder
from sparknet.net.weighting import RowWeights
from sparknet.torch.modules.calling import ModuleLoss, arguments, chosen_inputs
from sparknet.training.checkpoints.runs import FolderRuns, sampled
from sparknet.training.modules.begin import ModuleSetup, TrainedModule, parts_of, set_weights
from sparknet.training.settings.fields import values_of
from sparknet.training.settings.training import ProcessSettings, RunSettings
from sparknet.training.workers.local import conduct
from sparknet.training.workers.shared_data import open_shared, records_of, write_shared

WEIGHT = "record weight"
"""The column of the weights of records."""
_FEW = 2
"""Records that a module is tried with: one alone has no variance."""


def train_module(given: ProcessSettings) -> TrainedModule:
    """Train a module by processes of this machine."""
    runs = None if given.snapshots is None else FolderRuns(given.snapshots)
    run_settings = RunSettings(**values_of(given, RunSettings))
    with scratch_folder() as folder:
        setup, shared = begin_module(given, Path(folder), run_settings, runs, given.resume)
        outcome, weights, run = conduct(given, setup, setup.weights().flat, shared, folder)
    return run.done(setup.trained(outcome, weights, run.history))


def begin_module(
    given: Any, folder: Path, asked: RunSettings, runs: FolderRuns | None, resume: bool
) -> tuple[ModuleSetup, dict[str, str | None]]:
    """A run of a module before it has workers, and the files of its records."""
    parts = parts_of(given)
    shared: dict[str, str | None] = {"validation": None}
    labels: tuple[str, ...] = ()
    sources = (given.data, "training data"), (given.validation, "validation data")
    for name, (data, what) in zip(("records", "validation"), sources, strict=True):
        if data is not None:
            rows = as_columns(data, parts.module, given.targets)
            rows, labels = with_classes(rows, labels, what, what == "training data")
            shared[name] = write_shared(rows, folder / name)
    records = open_shared(str(shared["records"]))
    weights = RowWeights(
        getattr(given, "weight_column", None), getattr(given, "class_weights", None)
    )
    offered = [name for name in records.columns if name != weights.column]
    inputs = chosen_inputs(parts.module, offered, given.targets)
    if weights.is_given:
        is_class = len(given.targets) == 1 and ModuleLoss(given.loss).kind == "classes"
        records = weights.added(records, [WEIGHT], given.targets[0] if is_class else None)
        shared["records"] = write_shared(records, folder / "weighed")
        if shared["validation"] is not None:  # there all count the same
            validation = RowWeights().added(open_shared(shared["validation"]), [WEIGHT], None)
            shared["validation"] = write_shared(validation, folder / "held")
    if shared["validation"] is not None:
        validation = open_shared(shared["validation"])
        chosen_inputs(parts.module, list(validation.columns), given.targets)
    validates, first = given.validation is not None, first_of(records)
    column = WEIGHT if weights.is_given else None
    setup = ModuleSetup(asked, runs, resume, validates, given, parts, inputs, first, column)
    setup.check()
    set_weights(setup.flat, given.weights, FolderRuns)
    setup.identity["data"] = sampled(records)
    setup.check(records=len(records), batch_size=setup.batch_size)
    return setup, shared


def first_of(records: Records) -> Mapping[str, Any]:
    """Return a few records, of which the module's shapes follow."""
    if not len(records):
        raise DataError("the training data has no records")
    return records.take([0] * _FEW if len(records) < _FEW else slice(0, _FEW))


def as_columns(data: Any, module: Any, targets: tuple[str, ...]) -> Any:
    """Return a user's data as records; a tuple has the module's arguments, then the targets."""
    if is_frame(data):
        return ArrayRecords(**frame_columns(data, [str(name) for name in data.columns]))
    return records_of(
        data, lambda: [*arguments(module)[0], *targets], "the module's arguments and targets"
    )
