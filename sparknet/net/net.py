"""Net: SparkNet's interface to a net.  SparkNet (Moritz et al., ICLR 2016), Listing 1."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from html import escape
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from sparknet import renamed
from sparknet.caffe.training_checks import check_loss, warn_of_idle
from sparknet.errors import SolverError, SparkNetError, SpecError, clean
from sparknet.graph import html_summary
from sparknet.graph.boxes import plotted
from sparknet.graph.build import build_in_state
from sparknet.graph.plots import Drawing
from sparknet.graph.summary import outline
from sparknet.layers import TEST
from sparknet.loaders.preprocessing import ImageSettings, Preprocessing
from sparknet.native import NDArray
from sparknet.net.backend import Backend, Embedded, find_backend
from sparknet.net.description import NetMessage, NetSource, SolverMessage
from sparknet.net.entries import Entry, UnknownShape
from sparknet.net.fed import FedNet
from sparknet.net.feed import Array, Preparation
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.nets import Nets, run_test
from sparknet.net.origin import find_origin, warn_of_loss
from sparknet.net.quantize import MOST_LOSS, RECORDS, calibrate, quantizable
from sparknet.net.rows import Data, Record, default_columns
from sparknet.net.scores import Goal, Means, Scores, check_names, finished, flattened, goals_of
from sparknet.onnx.inputs import Axes, Shapes
from sparknet.proto.byte_source import StrPath
from sparknet.weights import WeightCollection, copy_from
from sparknet.weights.files import prepare

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sparknet.caffe.precision import Precision


class Net:
    """A net to run, and to train if it has a solver.  It pickles with its weights and the files
    that it names, as `copy` copies it: without data and the solver's state.

    `source` is a net (`NetParams`, a NetParameter, a prototxt or its text), which runs, or a solver
    (`SolverParams`, a SolverParameter, its prototxt or its text), which also trains. A net with a
    loss is trained by a usual solver, and a warning says so. A .onnx is a net with its weights.
    `weights` is a caffemodel, a .onnx or a WeightCollection, or for a net without a solver the
    buffer of all weights (its `flat_weights`), which is used without a copy. A net without a solver
    is built for phase TEST unless `phase` is given; `level` and `stages` choose layers as in Caffe.
    `backend` is "embedded", or a module with pycaffe's interface, or its name ("caffe"). `seed`
    seeds fillers, dropout, crops and mirrors, instead of the solver's random_seed.
    ``precision="bf16"`` multiplies in bfloat16: docs/precision.md. ``device="cuda:0"`` computes
    with PyTorch, there: docs/gpu.md. ``keep_blobs=True`` stores all blobs and gradients, not only
    the requested outputs; in the test phase the last bits may then differ: docs/pycaffe.md.
    ``trusted=False`` is for a net of unknown origin: no layer imports a module, or reads or writes
    a file. The net of a caffemodel is treated so, unless ``trusted=True``. ``unknown="skip"``
    leaves out fields and layers that sparknet does not know, and layers that read those; a warning
    names each. ``dialect`` is the fork whose meaning counts where no field tells forks apart:
    "segnet", "pspnet", "hed", "textboxes" or "faceboxes". ``preprocessing``, or its settings as
    keywords (``resize=256, crop=224, mean=(104, 117, 123)``), says what happens to images:
    docs/images.md. ``shapes`` and ``batch_axis={"data": 0}`` say of a .onnx what its file leaves
    open: docs/onnx.md.

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
        origin = find_origin(
            *(source, weights, Preprocessing.from_keywords(preprocessing, images)),
            phase=phase,
            level=level,
            stages=stages,
            trusted=trusted,
            unknown=unknown,
            dialect=dialect,
            shapes=shapes,
            batch_axis=batch_axis,
        )
        self.preprocessing, self.labels = origin.preprocessing, origin.labels
        self.features: dict[str, tuple[str, ...]] = {}
        self.begins_at_random = not origin.has_weights
        """Whether its first weights are its fillers': neither a file nor the caller gave any."""
        alone = TEST if phase is None else phase
        pycaffe = find_backend(backend, precision, keep_blobs, device)
        self._nets, self._is_lost = Nets.start(origin, pycaffe, alone, seed), False
        with suppress(UnknownShape):  # the data will decide it
            _ = self.net

    @property
    def settings(self) -> SolverMessage | None:
        """The solver's settings as given; None for a net without a solver."""
        return self._nets.description.solver

    @property
    def described(self) -> NetMessage:
        """The description of the net that is trained, or else run, filtered by its phase."""
        return self._nets.description.main

    @property
    def described_tests(self) -> tuple[NetMessage, ...]:
        """The descriptions of the nets for testing, filtered."""
        return self._nets.description.tests

    @property
    def solver(self) -> Any:
        """The pycaffe solver of the training net; None for a net without a solver."""
        return self._nets.solver

    @property
    def net(self) -> Any:
        """The pycaffe net with the weights: the one that is trained, if there is a solver."""
        return self._nets.main.net

    @property
    def inputs(self) -> dict[str, Entry]:
        """The places where records enter, by name, in the order of a tuple's parts."""
        entries = {entry.name: entry for entry in self._nets.main.entries}
        return {name: entries[name] for name in self.places if name in entries}

    @property
    def places(self) -> list[str]:
        """The names of the places where records may enter, also while shapes are not known."""
        return default_columns(self._nets.main.places)

    @property
    def backend(self) -> Backend:
        """What makes its nets and solvers."""
        return self._nets.backend

    @property
    def precision(self) -> Precision:
        """The precision of multiplications: "float32", or "bf16" or "int8" if supported."""
        return self._nets.backend.precision

    @property
    def device(self) -> str | None:
        """PyTorch's name of where it computes, as "cuda:0"; None: the native engine."""
        return self._nets.backend.device

    @property
    def batch_size(self) -> int:
        return self._nets.main.batch

    @property
    def tested(self) -> FedNet:
        """The net that `forward` runs, with its description, entries and blobs."""
        return self._nets.share(self._nets.test(0))

    @property
    def goals(self) -> dict[str, Goal]:
        """Whether a larger or a smaller value is better, by top; shapes need not be known."""
        return goals_of(self._nets.test(0).described)

    @property
    def iter(self) -> int:
        """The number of updates of the weights."""
        return 0 if self.solver is None else int(self.solver.iter)

    # -- data ----------------------------------------------------------------------------

    def set_training_data(self, data: Data, *, transformed: bool = False) -> None:
        """Train on these records (docs/net.md); `transformed` ones have passed `transforms`."""
        self._learn()
        self.labels = self._nets.set_data(self._nets.main, data, transformed, self.labels)

    def set_validation_data(self, data: Data, net: int = 0, *, transformed: bool = False) -> None:
        """Test on these records; `net` is the number of the solver's test net."""
        self._nets.set_data(self._nets.test(net), data, transformed, self.labels)

    def check_columns(self, columns: Collection[str]) -> None:
        """Refuse training data that lacks a column which the net needs."""
        self._nets.main.check_columns(columns)

    @property
    def transforms(self) -> dict[str, Preparation]:
        """The transforms of columns, for `Batches` to apply in its thread."""
        return self._nets.main.preparations(False)

    @property
    def staged_transforms(self) -> dict[str, Preparation]:
        """The same for `feed`, which leaves bytes to the device that the net computes on."""
        return self._nets.main.preparations(True)

    @property
    def taken(self) -> int:
        """The number of records trained on; set it to continue with the same random crops."""
        return self._nets.main.taken

    @taken.setter
    def taken(self, records: int) -> None:
        self._nets.main.taken = records

    # -- work ----------------------------------------------------------------------------

    def train(self, steps: int) -> float:
        """Update the weights ``steps`` times; returns the mean loss."""
        if self.settings and steps > 0 and self.backend.is_embedded and self.iter == 0:
            warn_of_idle(self.net, self.settings)
        losses = 0.0
        for _ in range(steps):
            loss = self.compute_gradients()
            if not (self._is_lost or isfinite(loss)):
                self._is_lost = True
                warn_of_loss(loss, self.solver.iter, self.get_weights())
            losses += loss
            self.apply_update()
        return losses / max(steps, 1)

    def _learn(self) -> None:
        """Give a net without a solver the usual one, if it has a loss."""
        if solver := self._nets.description.usual_solver():
            self._nets = self.with_solver(solver)._nets

    def feed(self, columns: Collection[str]) -> Callable[[dict[str, Array], int], int]:
        """Return what puts transformed batches, by their first record's number, into the net."""
        self._nets.main.check_columns(columns)
        return self._nets.main.feed(columns, transformed=True)

    def compute_gradients(self, load: Callable[[], object] | None = None) -> float:
        """Compute the gradients of one iteration (all passes of iter_size); returns its loss.

        ``load`` puts a batch into the net, in the place of the training data's next one."""
        self._learn()
        if self.settings is None:
            raise SolverError("a net without a solver cannot be trained: make the Net of a solver")
        net = self.net
        check_loss(net)
        if self.backend.is_embedded:
            return float(self.solver.compute_gradient(load or self.fill))
        net.clear_param_diffs()
        passes, loss = int(self.settings.iter_size), 0.0
        for _ in range(passes):
            (load or self.fill)()
            net.forward()
            net.backward()
            loss += self._nets.main.loss
        return loss / passes

    def fill(self) -> int:
        """Put the next batch of training data into the net; returns its number of records."""
        return self._nets.main.fill()

    def apply_update(self) -> None:
        """Update the weights by the gradients, which completes an iteration."""
        self.solver.apply_update()

    def test(
        self, steps: int | None = None, net: int = 0, metrics: Sequence[str] = ()
    ) -> dict[str, float]:
        """Return the means of the test net's outputs, over all records or ``steps`` batches.

        An output of several numbers, as Accuracy's per class, becomes ``name[0]``, ``name[1]`` …
        ``metrics`` are further ones by name: confusion, class_accuracy, mean_iou, mae, rmse, r2."""
        means, results = self.measure(check_names(metrics), steps, net)
        return finished(results, metrics, means.records)

    def measure(
        self, metrics: Sequence[str], steps: int | None = None, net: int = 0
    ) -> tuple[Means, dict[str, float]]:
        """Return what `test` counts, and its results with the sums behind its metrics."""
        scores = Scores(metrics)
        means = run_test(self._nets, net, steps, scores if metrics else None)
        return means, flattened(means.arrays()) | scores.parts()

    def test_arrays(self, steps: int | None = None, net: int = 0) -> dict[str, Array]:
        """Return the results of `test`, each output in its shape."""
        return run_test(self._nets, net, steps, None).arrays()

    def forward(self, batch: Record, outputs: Sequence[str] | None = None) -> dict[str, Array]:
        """Run a batch of any size through the net for testing; returns copies of its outputs."""
        return self.tested.forward(batch, outputs)

    # -- weights -------------------------------------------------------------------------

    def get_weights(self) -> WeightCollection:
        """Return a copy of the weights."""
        return WeightCollection.of(self.net)

    def set_weights(self, weights: WeightCollection) -> None:
        """Copy these weights into the net; they must have exactly its layers."""
        if not hasattr(weights, "to_net"):
            raise SpecError(
                f"weights are {type(weights).__name__}: a WeightCollection is needed, which "
                "get_weights, WeightCollection.load and WeightCollection.of_arrays make"
            )
        weights.to_net(self.net)

    @renamed.keywords(float32="exclude", records_used="most_records")
    def quantize(
        self,
        records: Data | None = None,
        *,
        method: Literal["auto", "mse", "max"] = "auto",
        exclude: Iterable[str] = (),
        most_records: int = RECORDS,
        most_loss: float = MOST_LOSS,
    ) -> None:
        """Multiply numbers of eight bits from now on; `save` then writes them.

        ``records``, of any kind that `set_validation_data` takes, show how large the values are, at
        most ``most_records`` of them, without labels too; else the net reads its own data.  Layers
        named in ``exclude`` stay as they are.  ``method`` "max" keeps the largest values, "mse"
        clips rare ones, "auto" takes what the outputs lose least by.  A layer whose values are
        further from float32's than ``most_loss`` of their norm stays in float32 too."""
        backend = quantizable(self.backend, self.settings)
        copy = self._copy(Embedded("float32", keep_blobs=True))
        copy.tested.needs_labels = False
        if records is not None:
            copy.set_validation_data(records)
        quantization = calibrate(copy.tested, method, exclude, most_records, most_loss)
        self._nets.description.main.int8_param.CopyFrom(quantization)
        self._nets.backend = Embedded("int8", backend.keeps_blobs)
        self.net.use_int8(quantization)

    def copy(self) -> Net:
        """Return a Net of the same source and weights, without data and the solver's state."""
        return self._copy(self.backend)

    def with_solver(self, solver: SolverMessage) -> Net:
        """Return a copy that learns as another solver's settings say, of the same nets."""
        return self._copy(self.backend, solver)

    def _copy(self, backend: Backend, solver: SolverMessage | None = None) -> Net:
        other, nets = object.__new__(type(self)), self._nets
        vars(other).update(vars(self))
        origin = nets.origin if solver is None else nets.origin.with_solver(solver)
        with suppress(UnknownShape):
            if origin.description.solver is None and self.flat_weights is not None:
                origin = origin.used(flat=self.flat_weights.copy())  # the net is built on them
            else:
                origin = origin.used(weights=WeightCollection.of(self.net, copy=None))
        other._nets = nets.again(backend, origin)
        with suppress(UnknownShape):
            _ = other.net
        return other

    def save(self, path: StrPath) -> None:
        """Write a caffemodel; HDF5 if the name ends in .h5.

        What happens to images, and the classes' names, go into x.sparknet.json beside it."""
        name = prepare(path)
        (self.net.save_hdf5 if name.endswith(".h5") else self.net.save)(name)
        ModelInputs({}, self.preprocessing, self.labels, self.features).write_beside(name)

    def load(self, path: StrPath) -> None:
        """Load the weights of layers with the same names from a caffemodel.

        A file with none of the layers is refused; a warning names layers that it lacks."""
        copy_from(self.net, path)

    @property
    def flat_weights(self) -> NDArray | None:
        """The buffer of all weights; None where the backend has no single one."""
        return getattr(self.net, "flat_params", None)

    def __repr__(self) -> str:
        entries = (place for place in self._nets.main.places if place.is_read)
        inputs = clean(", ".join(default_columns(entries)) or "none")
        kind = "" if self.settings is None else f"{self.settings.type} "
        return f"<{kind}Net '{clean(self.described.name)}', inputs: {inputs}>"

    def _repr_html_(self) -> str:
        """Return the layers as HTML, for a notebook."""
        with suppress(SparkNetError):  # its shapes may be unknown
            return html_summary(build_in_state(self._nets.main.described))
        return escape(repr(self))

    def plot(self, out: StrPath | None = None) -> Drawing:
        """Draw its layers as a picture, which a notebook shows; ``out`` is a file named .svg."""
        return plotted(outline(self.described), self.described.name).saved(out)
