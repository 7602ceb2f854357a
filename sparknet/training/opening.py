"""open_training: a run on this machine before it has workers, and the files of its records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparknet.errors import DataError
from sparknet.loaders.records import ArrayRecords, Records, class_names, with_classes
from sparknet.net import Net
from sparknet.net.record_checks import check_counts, check_names, look_at_first
from sparknet.net.rows import frame_columns, is_frame
from sparknet.net.weighting import RowWeights, WeighedNets, label_input
from sparknet.torch.modules.calling import ModuleLoss, arguments, chosen_inputs
from sparknet.torch.modules.trial import parts_of
from sparknet.training.checkpoints.runs import FolderRuns, sampled, save_weights
from sparknet.training.driver.setup import Begin, NetSetup, RunSetup
from sparknet.training.module_setup import ModuleSetup, set_weights
from sparknet.training.settings.training import RunSettings
from sparknet.training.training_net import net_of
from sparknet.training.workers.shared_data import (
    TableColumns,
    open_data,
    open_shared,
    records_of,
    write_shared,
)
from sparknet.weights.files import is_model_folder

WEIGHT = "record weight"
"""The column of the weights of records."""
_FEW = 2
"""Records that a module is tried with: one alone has no variance."""


@dataclass(frozen=True)
class Opening:
    """A run before it has workers, and its records in files that all workers reach."""

    setup: RunSetup
    files: Mapping[str, str | None]
    """The paths of the records, and of those for validation."""

    @property
    def records(self) -> Records:
        return open_shared(str(self.files["records"]))

    @property
    def held_out(self) -> Records | None:
        path = self.files["validation"]
        return None if path is None else open_shared(path)


def open_training(
    given: Any, folder: Path, settings: RunSettings, runs: FolderRuns | None = None
) -> Opening:
    """Return the run of a net or a module, by the settings of `train` or `simulate`."""
    weights = RowWeights(
        getattr(given, "weight_column", None), getattr(given, "class_weights", None)
    )
    begin = (settings, runs, getattr(given, "resume", False), given.validation is not None)
    open_subject = _open_net if given.module is None else _open_module
    setup, files, records = open_subject(given, folder, begin, weights)
    setup.identity["data"] = sampled(records)
    setup.check(records=len(records), batch_size=setup.batch_size)
    return Opening(setup, files)


Begun = tuple[RunSetup, dict[str, Any], Records]


def _open_net(given: Any, folder: Path, begin: Begin, weights: RowWeights) -> Begun:
    def make_net(resumed_seed: int | None) -> Net:
        begin_with = given.weights
        if (
            isinstance(begin_with, (str, os.PathLike))
            and Path(begin_with).is_dir()
            and not is_model_folder(begin_with)
        ):
            begin_with = save_weights(FolderRuns, os.fspath(begin_with), str(folder))
        return net_of(given, given.solver, begin_with, resumed_seed)

    nets = WeighedNets(make_net, weights.is_given)
    setup = NetSetup(*begin, nets)
    setup.check()
    net = nets.plain
    files = share_data(net, given, folder)
    records = open_shared(files["records"])
    if weights.is_given:
        records = weights.added(records, nets.weights, label_input(net))
        files["records"] = write_shared(records, folder / "weighed")
        setup.net.set_training_data(records)
    setup.weights()  # may be refused
    ranges = look_at_first(net, records, "training data")
    if files["validation"] is not None:
        look_at_first(net, open_shared(files["validation"]), "validation data", ranges)
    return setup, files, records


def share_data(net: Net, settings: Any, folder: Path) -> dict[str, Any]:
    """Write the files that workers map, in a folder that all of them reach."""
    table = TableColumns.of(settings)
    more = getattr(settings, "weight_column", None)
    training, net.labels = open_data(settings.data, net, table, "training data", more)
    validation: Any = None
    if settings.validation is not None:
        validation, _ = open_data(settings.validation, net, table, "validation data")
    records = write_shared(training, folder / "records")
    net.set_training_data(open_shared(records))  # the data may decide the net's shapes
    check_names(net, net.labels if class_names(training) else (), "training data")
    check_counts(net, getattr(training, "arrays", {}))
    held_out = None if validation is None else write_shared(validation, folder / "validation")
    return {"records": records, "validation": held_out}


def _open_module(given: Any, folder: Path, begin: Begin, weights: RowWeights) -> Begun:
    parts = parts_of(given.module, given.loss, given.optimizer, given.lr_schedule)
    shared: dict[str, str | None] = {"validation": None}
    labels: tuple[str, ...] = ()
    sources = (given.data, "training data"), (given.validation, "validation data")
    for name, (data, what) in zip(("records", "validation"), sources, strict=True):
        if data is not None:
            rows = as_columns(data, parts.module, given.targets)
            rows, labels = with_classes(rows, labels, what, what == "training data")
            shared[name] = write_shared(rows, folder / name)
    records = open_shared(str(shared["records"]))
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
    column = WEIGHT if weights.is_given else None
    setup = ModuleSetup(*begin, given, parts, inputs, first_of(records), column)
    setup.check()
    set_weights(setup.flat, given.weights, FolderRuns)
    return setup, shared, records


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
