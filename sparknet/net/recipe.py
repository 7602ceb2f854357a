"""Recipe: a solver from a model and a few settings, and a solver with other settings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from typing import Any

from sparknet.errors import SettingError, clean
from sparknet.graph import Graph, build
from sparknet.graph.records import set_batch
from sparknet.layers import LAYERS, TRAIN
from sparknet.layers.accuracy import Accuracy
from sparknet.layers.activations import Sigmoid, Softmax
from sparknet.layers.inner_product import Embed
from sparknet.layers.inputs import Input
from sparknet.layers.losses import SoftmaxWithLoss
from sparknet.net.description import NetMessage, SolverMessage, solver_of
from sparknet.net.entries import unused_name
from sparknet.net.net import Net
from sparknet.onnx import is_onnx, open_model
from sparknet.onnx.inputs import Axes, Shapes, input_shapes
from sparknet.proto import Model, caffe_pb2, read_net, upgrade_net
from sparknet.proto.solver import put_nets_inside
from sparknet.weights import WeightsWarning

HEAD = "head"
FASTER = 10.0
"""What the learning rate of a new head is multiplied by, as in Caffe's example of fine-tuning."""
BATCH = 32
"""Records of a batch of a .onnx, which says nothing of it."""
_MODELS = (".onnx", ".caffemodel")


@dataclass(frozen=True)
class Recipe:
    """How a net that has learned goes on learning something else."""

    head: int | None = None
    """The classes of a new last layer."""
    lr_mult: Mapping[str, float] | None = None
    """What the learning rates of layers are multiplied by, by their names or patterns of these."""
    shapes: Shapes | None = None
    batch_axis: Axes | None = None

    @classmethod
    def of(cls, given: Any) -> Recipe:
        return cls(given.head, given.lr_mult, given.shapes, given.batch_axis)

    def applied(self, solver: Any, weights: Any) -> tuple[Any, Any]:
        """Return what a `Net` is made from: the solver, with a net that fits, and the weights."""
        if self.head is None and not self.lr_mult and not _with_model(solver):
            if self.shapes or self.batch_axis:
                raise SettingError("shapes and batch_axis are for a net that is a .onnx")
            return solver, weights
        if isinstance(solver, Net):
            raise SettingError("this Net is made already: give head and lr_mult with its solver")
        solver_message, source = self._solver(solver)
        nets = put_nets_inside(solver_message)
        if not nets:
            raise SettingError("the solver names no net")
        for net in nets:
            if self.head is not None:
                old = replace_head(net, self.head)
                if weights is not None or source is not None or solver_message.weights:
                    _check_kept(net, old)
            for pattern, factor in self._rates():
                multiply(net, pattern, factor)
        return solver_message, source if weights is None else weights

    @contextmanager
    def expected(self) -> Iterator[None]:
        """Says nothing of the new head, for which no file has weights."""
        with warnings.catch_warnings():
            if self.head is not None:
                warnings.filterwarnings(
                    "ignore", rf".*: no weights for '{HEAD}', which keep", WeightsWarning
                )
            yield

    def _rates(self) -> Iterator[tuple[str, float]]:
        rates = dict(self.lr_mult or {})
        if self.head is not None and not any(fnmatchcase(HEAD, one) for one in rates):
            yield HEAD, FASTER
        yield from rates.items()

    def _solver(self, source: Any) -> tuple[SolverMessage, Any]:
        """Return a copy of the solver with its nets inside, and the weights that come with them."""
        if names_model(source):
            model = self._open(source)
            return usual(_as_net(model)), os.fspath(source)
        message = solver_of(source)
        if message is None:
            return usual(_described(source)), None
        solver = SolverMessage()
        solver.CopyFrom(message)
        models: list[str] = []

        def read(path: str) -> NetMessage:
            if not names_model(path):
                return read_net(path)
            models.append(path)
            return _as_net(self._open(path))

        put_nets_inside(solver, read)
        return solver, models[0] if models and not solver.weights else None

    def _open(self, path: Any) -> Model:
        model = open_model(path, shapes=self.shapes, batch_axis=self.batch_axis)
        names = dict(input_shapes(model.net))  # without inputs of one number
        sizes_of_inputs = [sizes for name, sizes in (self.shapes or {}).items() if name in names]
        if is_onnx(path) and not any(
            isinstance(one, Sequence) and one[0] for one in sizes_of_inputs if one
        ):
            set_batch(model.net, BATCH)
        return model


PLAIN = Recipe()


def names_model(source: Any) -> bool:
    """Return whether it is the path of a net with its weights."""
    return isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(_MODELS)


def _with_model(source: Any) -> bool:
    """Return whether it is a model, or a solver that names one as its net."""
    if names_model(source):
        return True
    if isinstance(source, Net) or (hasattr(source, "net_param") and source.net_param.layer):
        return False
    net_path = getattr(source, "net", "")
    return isinstance(net_path, str) and names_model(net_path)


def _as_net(model: Model) -> NetMessage:
    net = upgrade_net(model.net)
    for layer in net.layer:
        del layer.blobs[:]
    return net


def _described(source: Any) -> NetMessage:
    net = source.to_proto() if hasattr(source, "to_proto") else source
    if isinstance(net, NetMessage):
        return upgrade_net(net)
    return read_net(source)


def usual(net: NetMessage | None = None) -> SolverMessage:
    """Return a solver for fine-tuning, where none is given."""
    solver = SolverMessage(base_lr=0.001, momentum=0.9, lr_policy="fixed", type="SGD")
    if net is not None:
        solver.net_param.CopyFrom(net)
    return solver


def _check_kept(net: NetMessage, old: str) -> None:
    """Refuse a head in place of all that has learned."""
    if not any(node.params for node in build(net, TRAIN).nodes if node.name != HEAD):
        raise SettingError(
            f"a new head in place of '{clean(old)}' leaves nothing of what the net has learned: "
            "no other layer has weights"
        )


def replace_head(net: NetMessage, classes: int) -> str:
    """Give a net a new last layer, and a loss if it has none; return the old layer's name."""
    sized = [layer for layer in net.layer if _outputs_of(layer) is not None]
    if not sized:
        raise SettingError(f"net '{clean(net.name)}' has no layer of num_output for a new head")
    last = sized[-1]
    old = last.name
    options = _outputs_of(last)
    options.num_output, last.name = classes, HEAD
    options.weight_filler.CopyFrom(caffe_pb2.FillerParameter(type="xavier"))
    for spec in last.param:
        spec.ClearField("name")
    if not any(LAYERS[layer.type].is_loss for layer in net.layer if layer.type in LAYERS):
        _drop_probabilities(net)
        _add_loss(net, classes, old)
    return old


def _outputs_of(layer: caffe_pb2.LayerParameter) -> Any:
    """Return the options of a layer that learns and has so many outputs as they say."""
    kind = LAYERS.get(layer.type)
    field = None if kind is None else kind.field
    if kind is None or field is None or issubclass(kind, Embed):
        return None
    options = getattr(layer, field)
    fields = set(options.DESCRIPTOR.fields_by_name)
    return options if fields >= {"num_output", "weight_filler"} else None


def _drop_probabilities(net: NetMessage) -> None:
    """Drop a Softmax before the loss, which makes probabilities itself."""
    while net.layer and issubclass(LAYERS[net.layer[-1].type], (Softmax, Sigmoid)):
        del net.layer[-1]
    while net.layer and not net.layer[-1].top:  # Silence of what is gone
        del net.layer[-1]


def _add_loss(net: NetMessage, classes: int, old: str) -> None:
    graph = build(net, TRAIN)
    blob = _result(net)
    shape = graph.blobs[blob]
    if len(shape) < 2 or shape[1] != classes:
        raise SettingError(
            f"a new head of {classes} in place of '{clean(old)}' does not reach the net's result "
            f"'{clean(blob)}', which is {' x '.join(map(str, shape))}: give a net with a loss"
        )
    around = shape[2:] if prod(shape[2:]) > 1 else ()
    label = unused_name(net, "label")
    net.layer.add(name=label, type=Input.type, top=[label]).input_param.shape.add().dim.extend(
        [shape[0], *around]
    )
    both = [blob, label]
    net.layer.add(name="loss", type=SoftmaxWithLoss.type, bottom=both, top=["loss"])
    judge = net.layer.add(name="accuracy", type=Accuracy.type, bottom=both, top=["accuracy"])
    judge.include.add().phase = caffe_pb2.TEST


def _result(net: NetMessage) -> str:
    """Return the newest blob that comes from the head."""
    reached: dict[str, None] = {}
    for layer in net.layer:
        if layer.name == HEAD or any(name in reached for name in layer.bottom):
            for name in layer.bottom:
                reached.pop(name, None)
            reached |= dict.fromkeys(layer.top)
    return list(reached)[-1]


def multiply(net: NetMessage, pattern: str, factor: float) -> None:
    """Multiply the learning rates of the layers whose names fit a pattern (``conv*``)."""
    graph: Graph = build(net, TRAIN)
    learned = {node.name: node.params for node in graph.nodes if node.params}
    matches = [name for name in learned if fnmatchcase(name, pattern)]
    if not matches:
        names = ", ".join(f"'{clean(name)}'" for name in list(learned)[-5:])
        raise SettingError(
            f"lr_mult names '{clean(pattern)}', which no layer with weights fits; the last of them "
            f"are {names}"
        )
    for layer in net.layer:
        if layer.name not in matches:
            continue
        for place, ref in enumerate(learned[layer.name]):
            if place == len(layer.param):
                layer.param.add()
            layer.param[place].lr_mult = ref.spec.lr_mult * factor


def tuned(solver: Any, settings: Mapping[str, Any], batch: int | None = None) -> Any:
    """Return the solver, or a Net with its weights, with other ``settings`` by Caffe's names."""
    if not settings and batch is None:
        return solver
    base = solver.settings if isinstance(solver, Net) else solver_of(solver)
    if base is None:
        raise SettingError("training needs a solver: a net alone does not say how it is trained")
    changed = SolverMessage()
    changed.CopyFrom(base)
    for name, value in settings.items():
        _change(changed, name, value)
    if batch is not None:
        _set_batches(changed, batch)
    if isinstance(solver, Net):
        return Net(
            changed,
            solver.get_weights(),
            precision=solver.precision,
            device=solver.device,
            preprocessing=solver.preprocessing,
        )
    return changed


def _change(solver: SolverMessage, name: str, value: Any) -> None:
    try:
        solver.ClearField(name)
        if isinstance(value, (list, tuple)):
            getattr(solver, name).extend(value)
        else:
            setattr(solver, name, value)
    except (TypeError, ValueError, AttributeError) as error:
        raise SettingError(f"the solver's {name} cannot be {value!r}: {error}") from error


def _set_batches(solver: SolverMessage, batch: int) -> None:
    if type(batch) is not int or batch < 1:
        raise SettingError(f"a batch size is a whole number, at least 1, not {batch!r}")
    for net in put_nets_inside(solver):
        set_batch(net, batch)
