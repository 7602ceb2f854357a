"""Trainer: the driver's side of training on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sparknet.errors import SparkError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.class_numbers import class_numbers
from sparknet.net.scratch import scratch_folder
from sparknet.net.weighting import weighted
from sparknet.spark import preflight
from sparknet.spark.address import bind_address, driver_address, is_encrypted, session_of
from sparknet.spark.column_types import named, told_shapes
from sparknet.spark.columns import wanted
from sparknet.spark.footprint import footprint
from sparknet.spark.frame import frame, mapped, numbered
from sparknet.spark.hadoop import open_runs
from sparknet.spark.launcher import SparkWorkers
from sparknet.spark.model import SparkModel
from sparknet.spark.remote import fetched, local_path
from sparknet.spark.row_weights import COLUMN as WEIGHT
from sparknet.spark.row_weights import RowWeights, label_column, without_weights
from sparknet.spark.task import Columns
from sparknet.training import local_training
from sparknet.training.events import OnEvent
from sparknet.training.run import Run
from sparknet.training.runs import save_weights
from sparknet.training.seal import choose_seal
from sparknet.training.strategies import Strategy
from sparknet.training.training_net import training_net
from sparknet.training.training_settings import Beginning, Protection, TrainingSettings
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StrPath = str | os.PathLike[str]
INVALID = ("raise", "drop")


@dataclass(frozen=True)
class Trained(local_training.Trained):
    """The result of `Trainer.fit`."""

    columns: dict[str, str] | None = None

    @property
    def model(self) -> SparkModel:
        """The trained net, ready to predict from the columns that it was trained on."""
        return SparkModel(self.net, columns=self.columns)


@dataclass(frozen=True)
class Trainer:
    """Trains the net of a solver (whatever `Net` takes) on the workers of a Spark cluster.

    ``workers`` tasks run together in one barrier stage and synchronise by ``strategy``: a name or
    an object of `sparknet.training`.  ``init_weights`` are the initial weights: a caffemodel, a
    model, or a path of snapshots, of which the newest is used.  ``columns`` maps the net's blobs to
    the data's columns, where the names differ.  ``weight`` names a column that says what each row
    counts for in every loss, ``class_weights`` maps labels to what their rows count for (1 for
    others), or is "balanced": docs/pipelines.md.  A row that cannot be read, or whose label is no
    class, fails the training, or is left out and counted in the event `workers`
    (``invalid="drop"``).  The records are shuffled by ``seed``, or come in the order in which they
    are numbered (``shuffle=False``).  ``precision="bf16"`` multiplies in
    bfloat16, on those workers that can: docs/precision.md.  ``backend`` is that of `Net`: "caffe"
    trains with another pycaffe, which the workers' Python can import, docs/net.md.

    Training ends after ``steps`` iterations (the solver's max_iter unless given), ``epochs`` or
    ``seconds``.  Validation records are measured every ``validate_every`` rounds; ``metrics``
    names further ones than the test net's outputs (docs/training.md).  With
    ``patience``, training also ends after that many validations without a better ``metric``;
    ``goal`` says whether more of it is better ("max") or less ("min").  Every ``histograms_every``
    rounds an event says how large each layer's weights and gradients are.

    ``snapshots`` is any path that Spark can write.  Each run has a folder of its own there and
    writes a snapshot every ``snapshot_every`` rounds; the newest ``keep`` snapshots stay.  A run
    that lost a worker continues from its newest snapshot.  A worker that sends no heartbeat for
    ``deadline`` seconds counts as lost.  The workers may take ``start_timeout`` seconds to start
    together, ten minutes unless given, as with Spark itself, or any time (None); an event
    ``waiting`` says that they are waited for.  ``ports`` are those that workers may listen on, for
    clusters with a firewall.  Each event (`sparknet.training.events`) is passed to ``on_event``.

    Nobody can change what travels between the workers and the driver without being noticed.
    ``protection="encrypted"`` makes it unreadable as well, which is the default where Spark itself
    encrypts (spark.network.crypto.enabled, spark.ssl.enabled); "none" saves the time that
    it takes: docs/comm.md.

    ``resize``, ``crop``, ``mean`` and the settings up to ``mirror`` say what happens to images:
    docs/images.md.  Images are stored as bytes, of the size that they are resized to; crops and
    mirrors are random.
    """

    solver: Any
    strategy: str | Strategy = "averaging"
    workers: int = 1
    _: KW_ONLY
    init_weights: StrPath | WeightCollection | Net | SparkModel | None = None
    columns: dict[str, str] | None = None
    steps: int | None = None
    epochs: float | None = None
    seconds: float | None = None
    validate_every: int = 10
    histograms_every: int = 0
    metrics: Sequence[str] = ()
    metric: str | None = None
    goal: Literal["max", "min"] | None = None
    patience: int | None = None
    diverged: float = 20.0
    snapshots: StrPath | None = None
    snapshot_every: int = 0
    keep: int = 3
    weight: str | None = None
    class_weights: Mapping[Any, float] | Literal["balanced"] | None = None
    invalid: Literal["raise", "drop"] = "raise"
    seed: int = 0
    shuffle: bool = True
    ports: Sequence[int] = (0,)
    deadline: float = 60.0
    start_timeout: float | None = preflight.PATIENCE
    precision: str = "float32"
    backend: Any = "embedded"
    protection: Protection | None = None
    on_event: OnEvent | None = None
    resize: Any = None
    resize_mode: str | None = None
    pad: Any = None
    interpolation: str | None = None
    crop: Any = None
    color: str | None = None
    upright: bool | None = None
    mean: Any = None
    scale: float | None = None
    std: Any = None
    mirror: bool | str | None = None

    def fit(self, data: Any, validation: Any = None, resume: bool = False) -> Trained:
        """Train on an RDD of tuples or dicts, or on a DataFrame; ``validation`` is another one.

        ``resume`` continues from the newest snapshot of the newest run, if there is one.
        An interruption (Ctrl-C) lets the workers finish their round and write a snapshot, and is
        raised again.
        """
        given = TrainingSettings.of(self)
        given.check()
        preflight.check_patience(self.start_timeout)
        if self.invalid not in INVALID:
            raise SparkError(f"invalid is {self.invalid!r}: it is one of {', '.join(INVALID)}")
        weights = RowWeights(self.weight, self.class_weights)
        session = session_of(data)
        runs = None if self.snapshots is None else open_runs(session, self.snapshots)
        nets = _Nets(partial(self._training_net, session), weights.is_given)
        begun = Beginning(given, runs, resume, nets.make)
        net = begun.net
        initial = begun.weights()
        begun.check(weights=initial.flat.size)
        rows = _Rows(nets, data, validation, self.columns, weights)
        given.plan(net, rows.held is not None)  # may be refused
        store = begun.open_store()
        usual: Protection = "encrypted" if is_encrypted(session) else "sealed"
        seal = choose_seal(self.protection or usual)
        with Run(
            initial.flat,
            store,
            self.on_event,
            resume=resume,
            seal=seal,
            host=bind_address(session),
            deadline=self.deadline,
            foreign=SparkError,
        ) as run:
            link = run.link(driver_address(session, 0)[0])
            preflight.check(
                session,
                self.workers,
                link,
                self.start_timeout,
                needed=footprint(net),
                backend=net.backend.name,
                say=run.say,
            )
            precision = net.precision if isinstance(self.solver, Net) else self.precision
            spec = begun.spec(link, rows.held is not None, store, None, precision)
            workers = SparkWorkers(
                session,
                numbered(rows.training, rows.held, rows.mapping, self.workers),
                self.workers,
                run,
                spec,
                rows.columns(net, self.invalid == "drop"),
                f"sparknet: training {net.described.name}",
            )
            outcome, trained = run.supervise(workers)
        nets.plain.set_weights(WeightCollection(initial.layout, trained))
        net = nets.plain
        return Trained(net.get_weights(), run.history, net, outcome, self.columns)

    def _training_net(self, session: SparkSession, seed: int | None) -> Net:
        """The net with the initial weights."""
        weights: Any = self.init_weights
        with ExitStack() as stack:
            if (given := weights_of(weights)) is not None:
                # By a file, whose layers are copied by name.
                weights = Path(stack.enter_context(scratch_folder()), "init.caffemodel")
                given.save(weights)
            elif weights is not None and _is_folder(weights):
                folder = stack.enter_context(scratch_folder())
                runs_at = partial(open_runs, session)
                weights = save_weights(runs_at, os.fspath(weights), folder)
            path = stack.enter_context(fetched(weights, session))
            how = Preprocessing.of(self)
            net = training_net(self.solver, path, seed, self.precision, how, self.backend)
            _ = net.solver  # builds the net, with these weights
        return net


class _Nets:
    """The user's net, and the one that is trained: another one where records have weights."""

    def __init__(self, make: Callable[[int | None], Net], is_weighted: bool) -> None:
        self._make, self._is_weighted = make, is_weighted
        self.plain: Net
        self.weights: list[str] = []
        """The inputs for the weights of records."""

    def make(self, seed: int | None) -> Net:
        self.plain = self._make(seed)
        if not self._is_weighted:
            return self.plain
        trained, self.weights = weighted(self.plain)
        return trained


class _Rows:
    """The training rows and those that are held out, with the columns that the net reads."""

    def __init__(
        self,
        nets: _Nets,
        data: Any,
        validation: Any,
        columns: dict[str, str] | None,
        weights: RowWeights,
    ) -> None:
        entries = list(nets.plain.inputs)
        wanted = [named(columns).get(entry, entry) for entry in entries]
        more = [] if weights.column is None else [weights.column]
        self.training = frame(data, wanted + more, "the training data")
        self.mapping = mapped(self.training, entries, columns, "the training data")
        self._plain = nets.plain
        self._told = told_shapes(self.training, self.mapping)
        self.held = None
        if validation is not None:
            self.held = frame(validation, wanted, "the validation data")
            mapped(self.held, entries, columns, "the validation data")
        if weights.is_given:
            self._weigh(nets, weights)

    def columns(self, net: Net, drops: bool) -> Columns:
        """What the workers read for the net that is trained."""
        classes = class_numbers(self._plain)
        return Columns(self.mapping, wanted(net.inputs.values(), True, self._told, classes), drops)

    def _weigh(self, nets: _Nets, weights: RowWeights) -> None:
        self.training = weights.added(self.training, label_column(nets.plain, self.mapping))
        if self.held is not None:
            self.held = without_weights(self.held)
        self.mapping |= dict.fromkeys(nets.weights, WEIGHT)


def weights_of(model: Any) -> WeightCollection | None:
    """The weights of a `Net`, or of a model of one; None of anything else."""
    if isinstance(model, WeightCollection):
        return model
    inner = model
    if not isinstance(model, Net):  # a stage of a pipeline has a SparkModel, and that a Net
        inner = getattr(getattr(model, "model", model), "net", None)
    return inner.get_weights() if isinstance(inner, Net) else None


def _is_folder(weights: StrPath) -> bool:
    """Whether this is a folder of snapshots; a URL is told from a file of weights by its name."""
    if (here := local_path(weights)) is not None:
        return Path(here).is_dir()
    return not os.fspath(weights).endswith((".caffemodel", ".h5", ".onnx"))
