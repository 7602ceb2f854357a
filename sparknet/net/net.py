"""Net: SparkNet's interface to a net.  SparkNet (Moritz et al., ICLR 2016), Listing 1."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np

from sparknet import renamed
from sparknet.caffe.idle import warn_of_idle
from sparknet.caffe.solvers.nets import weight_files
from sparknet.errors import DataError, SolverError, SparkNetError, SpecError, shown
from sparknet.graph import html_summary
from sparknet.graph.boxes import plotted
from sparknet.graph.build import build_in_state
from sparknet.graph.outline import outline
from sparknet.graph.plots import Drawing
from sparknet.layers import TEST, TRAIN, Shape
from sparknet.loaders.preprocessing import ImageSettings, Preprocessing
from sparknet.native import NDArray
from sparknet.net.backend import Backend, Embedded, find_backend
from sparknet.net.description import NetMessage, NetSource, SolverMessage, describe
from sparknet.net.entries import Entry, UnknownShape
from sparknet.net.fed import FedNet
from sparknet.net.feed import Array, Preparation
from sparknet.net.lost import warn_of_loss
from sparknet.net.metrics import Means, flattened
from sparknet.net.quantising import MOST_LOSS, RECORDS, calibrate
from sparknet.net.rows import Data, Record, default_columns
from sparknet.net.scores import Scores, check_names, finished, judged_blobs
from sparknet.onnx import is_onnx, open_model
from sparknet.onnx.inputs import Axes, Shapes
from sparknet.onnx.opening import labels_of, preprocessing_of, refuse_axes
from sparknet.proto import Model
from sparknet.weights import (
    WeightCollection,
    check_layers,
    copy_from,
    copy_weights,
    open_weights,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sparknet.caffe.precision import Precision

StrPath = str | os.PathLike[str]


class Net:
    """A net to run, and to train if it has a solver.

    `source` is a net (`NetParams`, a NetParameter, a prototxt or its text), which runs, or a
    solver (`SolverParams`, a SolverParameter, its prototxt or its text), which also trains.
    A .onnx is a net with its weights.  `weights` is a caffemodel, a .onnx or a WeightCollection,
    or for a net without a solver the buffer of all weights (`flat_weights` of such a net), which
    is used without a copy.  A net without a solver is built for phase TEST unless `phase` is given;
    `level` and `stages` choose layers as in Caffe.  `backend` is
    "embedded", or a module with pycaffe's interface, or its name ("caffe").  `seed` seeds
    fillers, dropout, crops and mirrors, instead of the solver's random_seed.
    ``precision="bf16"`` multiplies in bfloat16: docs/precision.md.  ``device="cuda:0"`` computes
    with PyTorch, there: docs/gpu.md.  ``keep_blobs=True`` stores
    all blobs and gradients, not only the requested outputs; in the test phase the last bits may
    then differ: docs/pycaffe.md.  ``trusted=False`` is for a net of unknown origin: no layer
    imports a module, or reads or writes a file.  The net of a caffemodel is treated so, unless
    ``trusted=True``.  ``unknown="skip"`` leaves out fields and layers that sparknet does not know,
    and layers that read those; a warning names each.  ``dialect`` is the fork whose meaning counts
    where no field tells forks apart: "segnet", "pspnet", "hed", "textboxes" or "faceboxes".
    ``preprocessing``, or its settings as keywords (``resize=256, crop=224,
    mean=(104, 117, 123)``), says what happens to images: docs/images.md.  ``shapes`` and
    ``batch_axis={"data": 0}`` say of a .onnx what its file leaves open: docs/onnx.md.

    >>> from sparknet import LinearLayer, NetParams, RDDLayer
    >>> net = NetParams("n", RDDLayer("data", [8, 2]), LinearLayer("ip", "data", num_outputs=3))
    >>> Net(net).forward({"data": [[1, 2], [3, 4]]})["ip"].shape  # batches of any size
    (2, 3)
    """

    def __init__(
        self,
        source: NetSource,
        weights: StrPath | WeightCollection | NDArray | None = None,
        *,
        phase: int | None = None,
        level: int = 0,
        stages: Sequence[str] = (),
        backend: str | ModuleType = "embedded",
        seed: int | None = None,
        precision: Precision = "float32",
        keep_blobs: bool = False,
        device: str | None = None,
        trusted: bool | None = None,
        unknown: Literal["refuse", "skip"] = "refuse",
        dialect: str | None = None,
        shapes: Shapes | None = None,
        batch_axis: Axes | None = None,
        preprocessing: Preprocessing | None = None,
        **images: Unpack[ImageSettings],
    ) -> None:
        Preprocessing.check_keywords(images, Net.__init__)
        self.preprocessing = Preprocessing.given(preprocessing, images)
        """What was asked for images; a net's own transform_param is not in it."""
        self.labels: tuple[str, ...] = ()
        """The names of the classes by number, where a folder of images or a .onnx told them."""
        self._opened: dict[str, Model] = {}
        """Models that have been read, by path, until the net is built."""
        if _is_model(source):
            model = open_model(source, shapes=shapes, batch_axis=batch_axis, trusted=trusted)
            self._opened[os.fspath(source)] = model
            self.preprocessing = self.preprocessing or preprocessing_of(model, source)
            self.labels = labels_of(model, source)
        elif not _is_model(weights):
            refuse_axes("the net", shapes, batch_axis)
        else:
            path = os.fspath(weights)
            model = self._opened[path] = open_model(path, shapes=shapes, batch_axis=batch_axis)
            self.preprocessing = self.preprocessing or preprocessing_of(model, path)
            self.labels = labels_of(model, path)
        self._description = describe(
            self._opened[os.fspath(source)].net if _is_model(source) else source,
            phase,
            level,
            stages,
            trusted,
            unknown,
            dialect,
        )
        self._backend = find_backend(backend, precision, keep_blobs, device)
        self._is_lost = False
        self._files = [] if self.settings is None else weight_files(self.settings)
        self._given: WeightCollection | None = None
        self._flat: NDArray | None = None
        if isinstance(weights, NDArray):
            self._flat = weights
            if self.settings is not None:
                raise SpecError("a buffer of weights is for a net without a solver")
        elif isinstance(weights, WeightCollection):
            self._given = weights
        elif weights is not None:
            self._files.append(os.fspath(weights))
        elif _is_model(source):
            self._files.append(os.fspath(source))
        self._given_seed = _given_seed(seed, self.settings)
        self._seed = self._backend.seed(self._given_seed)
        self._build(TEST if phase is None else phase)
        with suppress(UnknownShape):  # the data will decide it
            _ = self.net

    def _build(self, alone: int) -> None:
        """Prepare the nets of the description; ``alone`` is the phase of a net without a solver."""
        self._solver: Any = None
        if self.settings is None:
            self._main = self._fed(self._description.main, alone, self._make_main, "data")
            self._tests = [self._main]
        else:
            self._main = self._fed(self._description.main, TRAIN, self._make_main, "training data")
            self._tests = [
                self._fed(described, TEST, self._make_test, "validation data")
                for described in self._description.tests
            ]

    # -- what it is ----------------------------------------------------------------------

    @property
    def settings(self) -> SolverMessage | None:
        """The solver's settings as given; None for a net without a solver."""
        return self._description.solver

    @property
    def described(self) -> NetMessage:
        """The description of the net that is trained, or else run, filtered by its phase."""
        return self._description.main

    @property
    def described_tests(self) -> tuple[NetMessage, ...]:
        """The descriptions of the nets for testing, filtered."""
        return self._description.tests

    @property
    def solver(self) -> Any:
        """The pycaffe solver of the training net; None for a net without a solver."""
        _ = self._main.net
        return self._solver

    @property
    def net(self) -> Any:
        """The pycaffe net with the weights: the one that is trained, if there is a solver."""
        return self._main.net

    @property
    def inputs(self) -> dict[str, Entry]:
        """The places where records enter, by name, in the order of a tuple's parts."""
        entries = {entry.name: entry for entry in self._main.entries}
        return {name: entries[name] for name in self.places if name in entries}

    @property
    def places(self) -> list[str]:
        """The names of the places where records may enter, also while shapes are not known."""
        return default_columns(self._main.places)

    @property
    def backend(self) -> Backend:
        """What makes its nets and solvers."""
        return self._backend

    @property
    def precision(self) -> Precision:
        """The precision of multiplications: "float32", or "bf16" or "int8" if supported."""
        return self._backend.precision

    @property
    def device(self) -> str | None:
        """PyTorch's name of where it computes, as "cuda:0"; None: the native engine."""
        return self._backend.device

    @property
    def batch_size(self) -> int:
        return self._main.batch

    @property
    def tested(self) -> FedNet:
        """The net that `forward` runs, with its description, entries and blobs."""
        fed = self._test_net(0)
        self._share(fed)
        return fed

    @property
    def iter(self) -> int:
        """The number of updates of the weights."""
        return 0 if self.solver is None else int(self.solver.iter)

    # -- data ----------------------------------------------------------------------------

    def set_training_data(self, data: Data, *, transformed: bool = False) -> None:
        """Train on these records; docs/net.md says what they can be.

        `transformed` records have been through `transforms` already.
        """
        self._know(self._main.set_data(data, transformed))

    def set_validation_data(self, data: Data, net: int = 0, *, transformed: bool = False) -> None:
        """Test on these records; `net` is the number of the solver's test net."""
        self._know(self._test_net(net).set_data(data, transformed))

    def check_columns(self, columns: Collection[str]) -> None:
        """Refuse training data that lacks a column which the net needs."""
        self._main.check_columns(columns)

    @property
    def transforms(self) -> dict[str, Preparation]:
        """The transforms of columns, for `Batches` to apply in its thread."""
        return {
            entry.name: Preparation(entry, self._main.phase, self._seed)
            for entry in self._main.entries
            if entry.preprocessing is not None
        }

    @property
    def taken(self) -> int:
        """The number of records trained on; set it to continue with the same random crops."""
        return self._main.taken

    @taken.setter
    def taken(self, records: int) -> None:
        self._main.taken = records

    def _know(self, shapes: Mapping[str, Shape]) -> None:
        for fed in (self._main, *self._tests):
            for name, shape in shapes.items():
                fed.records.setdefault(name, shape)

    # -- work ----------------------------------------------------------------------------

    def train(self, steps: int) -> float:
        """Update the weights ``steps`` times; returns the mean loss."""
        self._warn_of_idle(steps)
        losses = 0.0
        for _ in range(steps):
            loss = self.compute_gradients()
            if not (self._is_lost or isfinite(loss)):
                self._is_lost = True
                warn_of_loss(loss, self.solver.iter, self.get_weights())
            losses += loss
            self.apply_update()
        return losses / max(steps, 1)

    def _warn_of_idle(self, steps: int) -> None:
        if self.settings is None or not self._backend.is_embedded:
            return
        if steps > 0 and self.solver.iter == 0:
            warn_of_idle(self.net)

    def feed(self, columns: Collection[str]) -> Callable[[dict[str, Array], int], int]:
        """What puts transformed batches of these columns into the net, and counts their records.

        It is also given the number of a batch's first record.
        """
        self._main.check_columns(columns)
        return self._main.feed(columns, transformed=True)

    def compute_gradients(self, load: Callable[[], object] | None = None) -> float:
        """Compute the gradients of one iteration (all passes of iter_size); returns its loss.

        ``load`` puts a batch into the net, in the place of the training data's next one.
        """
        if self.settings is None:
            raise SolverError("a net without a solver cannot be trained: make the Net of a solver")
        net = self.net
        net.clear_param_diffs()
        passes, loss = int(self.settings.iter_size), 0.0
        for _ in range(passes):
            (load or self.fill)()
            net.forward()
            net.backward()
            loss += self._main.loss
        return loss / passes

    def fill(self) -> int:
        """Put the next batch of training data into the net; returns its number of records."""
        return self._main.fill()

    def apply_update(self) -> None:
        """Update the weights by the gradients, which completes an iteration."""
        self.solver.apply_update()

    def test(
        self, steps: int | None = None, net: int = 0, metrics: Sequence[str] = ()
    ) -> dict[str, float]:
        """The means of the test net's outputs, over all records or ``steps`` batches.

        An output of several numbers, as Accuracy's per class, becomes ``name[0]``, ``name[1]`` …
        ``metrics`` are further ones by name: confusion, class_accuracy, mean_iou, mae, rmse, r2.
        """
        scores = Scores(check_names(metrics))
        means = self._tested(steps, net, scores if metrics else None)
        return finished(flattened(means.arrays()) | scores.parts(), metrics, means.records)

    def measure(self, metrics: Sequence[str]) -> tuple[Means, dict[str, float]]:
        """What `test` counts, and its results with what `scores.finished` makes the metrics of."""
        scores = Scores(metrics)
        means = self._tested(None, 0, scores if metrics else None)
        return means, flattened(means.arrays()) | scores.parts()

    def test_arrays(self, steps: int | None = None, net: int = 0) -> dict[str, Array]:
        """The results of `test`, each output in its shape."""
        return self._tested(steps, net, None).arrays()

    def _tested(self, steps: int | None, net: int, scores: Scores | None) -> Means:
        fed = self._test_net(net)
        fed.rewind()
        limit = self._limit(fed, steps, net)
        self._share(fed)
        version = "Integral" if self.settings is None else self.settings.ap_version
        means = Means(fed.measures, fed.evaluated, version)
        inputs = [place.name for place in fed.places]
        judged = None if scores is None else judged_blobs(fed.described, inputs)
        blobs = judged[:2] if judged else ()
        while (limit is None or means.batches < limit) and (rows := fed.fill(endless=False)):
            made = fed.net.forward(blobs=list(blobs))
            means.add(fed.measured({name: made[name] for name in fed.net.outputs}), rows)
            if scores is not None and judged is not None:
                predictions, targets = (np.asarray(made[name]) for name in blobs)
                scores.add(predictions, targets, rows, judged.ignored)
        if not means.batches:
            raise DataError(f"the {fed.what} has come to its end")
        return means

    def _limit(self, fed: FedNet, steps: int | None, number: int) -> int | None:
        if steps is not None:
            if steps < 1:
                raise SpecError(f"test takes at least 1 step, not {steps}")
            return steps
        if fed.rows is not None and fed.rows.again:
            return None
        if self.settings is not None and number < len(self.settings.test_iter):
            return int(self.settings.test_iter[number])
        if fed.rows is None and any(not (one.kind.reads or one.kind.fills) for one in fed.places):
            raise DataError(f"no {fed.what} is set: set_validation_data takes the records to test")
        raise SpecError(f"the {fed.what} may have no end: say how many steps to test")

    def forward(self, batch: Record, outputs: Sequence[str] | None = None) -> dict[str, Array]:
        """Run a batch of any size through the net for testing; returns copies of its outputs."""
        return self.tested.forward(batch, outputs)

    # -- weights -------------------------------------------------------------------------

    def get_weights(self) -> WeightCollection:
        """A copy of the weights."""
        return WeightCollection.of(self.net)

    def set_weights(self, weights: WeightCollection) -> None:
        """Copy these weights into the net; they must have exactly its layers."""
        weights.to_net(self.net)

    @renamed.keywords(float32="exclude", records_used="most_records")
    def quantize(
        self,
        records: Data | None = None,
        *,
        method: Literal["mse", "max"] = "mse",
        exclude: Iterable[str] = (),
        most_records: int = RECORDS,
        most_loss: float = MOST_LOSS,
    ) -> None:
        """Multiply numbers of eight bits from now on; `save` then writes them.

        ``records``, of any kind that `set_validation_data` takes, show how large the values are, at
        most ``most_records`` of them; without them the net reads its own data.  Layers named in
        ``exclude`` stay as they are.  ``method`` "max" keeps the largest values, "mse" clips rare
        ones.  A layer whose values are further from float32's than ``most_loss`` of their norm
        stays in float32 too, and a warning names it: docs/precision.md.
        """
        if self.settings is not None:
            raise SpecError("quantize a net without a solver: Net(net, weights=…)")
        if self.precision == "bf16":
            raise SpecError("quantize a net of precision float32; this one's is bf16")
        if not isinstance(self._backend, Embedded):
            raise SpecError("quantize needs the embedded backend")
        if self.device is not None:
            raise SpecError(
                f"quantize a net of the native engine; this one computes on {self.device}"
            )
        copy = self._copy(Embedded("float32", keep_blobs=True))
        if records is not None:
            copy.set_validation_data(records)
        found = calibrate(copy.tested, method, exclude, most_records, most_loss)
        self._description.main.int8_param.CopyFrom(found)
        self._backend = Embedded("int8", self._backend.keeps_blobs)
        self.net.use_int8(found)

    def copy(self) -> Net:
        """Another Net of the same source, with a copy of the weights.

        Data and the solver's state (iterations, histories) are not copied.
        """
        return self._copy(self._backend)

    def with_solver(self, solver: SolverMessage) -> Net:
        """A copy that learns as another solver's settings say, of the same nets."""
        return self._copy(self._backend, solver)

    def _copy(self, backend: Backend, solver: SolverMessage | None = None) -> Net:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other._backend = backend
        if solver is not None:
            other._description = replace(self._description, solver=solver)
        other._files, other._opened = list(self._files), self._opened
        other._build(self._main.phase)
        mine, theirs = (self._main, *self._tests), (other._main, *other._tests)
        for one, another in zip(mine, theirs, strict=True):
            another.records.update(one.records)
        with suppress(UnknownShape):
            if self.settings is None and self.flat_weights is not None:
                other._flat = self.flat_weights.copy()  # the net is built on them
                _ = other.net
            else:
                other.set_weights(WeightCollection.of(self.net, copy=None))
        return other

    def save(self, path: StrPath) -> None:
        """Write a caffemodel; HDF5 if the name ends in .h5."""
        name = os.fspath(path)
        (self.net.save_hdf5 if name.endswith(".h5") else self.net.save)(name)

    def load(self, path: StrPath) -> None:
        """Load the weights of layers with the same names from a caffemodel.

        A file with none of the layers is refused; a warning names layers that it lacks.
        """
        copy_from(self.net, path)

    @property
    def flat_weights(self) -> NDArray | None:
        """The buffer of all weights; None where the backend has no single one."""
        return getattr(self.net, "flat_params", None)

    # -- inside --------------------------------------------------------------------------

    def _fed(self, described: NetMessage, phase: int, make: Any, what: str) -> FedNet:
        others = (self._description.main, *self._description.tests)
        return FedNet(
            described, phase, make, self._backend, self._seed, what, others, self.preprocessing
        )

    def _make_main(self, net: NetMessage) -> Any:
        opened = open_weights(self._files, self._opened)
        if self.settings is None:
            made = self._backend.net(net, self._main.phase, self._given_seed, self._flat, opened)
        else:
            bare = self._description.bare_solver(net)
            if self._given_seed is not None:
                bare.random_seed = self._given_seed
            self._solver = self._backend.solver(bare)
            made = self._solver.net
            copy_weights(made, opened)
        check_layers(made, opened)
        if getattr(made, "int8_param", None) is not None:
            self._description.main.int8_param.CopyFrom(made.int8_param)
        if self._given is not None:
            self._given.to_net(made)
        self._files, self._given, self._flat, self._opened = [], None, None, {}
        return made

    def _make_test(self, net: NetMessage) -> Any:
        return self._backend.net(net, TEST, self._seed)

    def _test_net(self, number: int) -> FedNet:
        if not 0 <= number < len(self._tests):
            raise SpecError(f"there is no test net {number}, there are {len(self._tests)}")
        return self._tests[number]

    def _share(self, fed: FedNet) -> None:
        """Let a test net share the trained weights."""
        if fed is not self._main and not fed.is_shared:
            fed.net.share_with(self.net)
            fed.is_shared = True

    def __repr__(self) -> str:
        read = (place for place in self._main.places if place.is_read)
        inputs = ", ".join(default_columns(read)) or "none"
        kind = "" if self.settings is None else f"{self.settings.type} "
        return f"<{kind}Net '{shown(self._description.main.name)}', inputs: {shown(inputs)}>"

    def _repr_html_(self) -> str:
        """Its layers, in a notebook."""
        try:
            return html_summary(build_in_state(self._main.described))
        except SparkNetError:
            return escape(repr(self))  # its shapes are not known yet

    def plot(self, out: StrPath | None = None) -> Drawing:
        """Its layers as a picture, which a notebook shows; ``out`` is a file named .svg."""
        main = self._main.described
        return plotted(outline(main), main.name).saved(out)

    def __getstate__(self) -> Any:
        raise TypeError("a Net cannot be pickled: send what it was made from, and get_weights()")


def _is_model(source: object) -> TypeGuard[StrPath]:
    """Whether the file of a net holds its weights too."""
    return isinstance(source, (str, os.PathLike)) and is_onnx(source)


def _given_seed(seed: int | None, solver: SolverMessage | None) -> int | None:
    if seed is None and solver is not None and solver.random_seed >= 0:
        return int(solver.random_seed)
    return seed
