"""A net as a `torch.nn.Module`: the way from Caffe's files to PyTorch's programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sparknet.errors import LayerError, SpecError
from sparknet.graph import Graph, Node
from sparknet.layers.layer import TEST, TRAIN, Layer, Plan
from sparknet.layers.registry import make
from sparknet.torch.translations import TABLE
from sparknet.torch.translations.table import Shape

_PASSED = ("Split", "Reshape", "Flatten")


class CaffeNet(Protocol):
    """What a module is made of: a `sparknet.caffe.Net`."""

    @property
    def graph(self) -> Graph: ...

    @property
    def params(self) -> Mapping[str, Any]: ...


class _TorchDraw:
    """Random numbers by PyTorch's own generator, as modules draw."""

    def top40(self, count: int, device: torch.device) -> Tensor:
        return torch.randint(2**40, (count,), device=device)

    def uniform(self, count: int, device: torch.device) -> Tensor:
        return torch.rand(count, device=device)


class _Step:
    """A layer, as translations see it (`translations.table.Translatable`)."""

    record_weights = None

    def __init__(self, node: Node) -> None:
        self.node, self.name, self.type = node, node.name, node.type
        self.train = node.phase == TRAIN
        self.options: Mapping[str, Any] = node.plan.values
        self.product = torch.float32
        self.state: dict[str, Any] = {}
        self.top_shapes: list[Shape] = list(node.plan.tops)
        self._layers = {self.train: node.layer}
        self._planned: Any = None
        self._kept: dict[str, Any] = {}
        self._kind: Any = None

    def follow(self, bottoms: list[Tensor], train: bool) -> None:
        """Adopt the shapes of the bottoms (Caffe: Layer::Reshape), their type and the mode."""
        if bottoms:
            first = bottoms[0]
            self.product = first.dtype if first.is_floating_point() else torch.float32
            if self._kind != (first.dtype, first.device):
                self._kind = (first.dtype, first.device)
                self.forget()
        self.train = train
        if is_recorded():  # sizes are symbols, and nothing of this pass may stay
            self.state, self._planned = {}, None
            layer = self._layer()
            self._adopt(layer.completed(layer.infer([_sizes(one) for one in bottoms])))
            return
        self.state = self._kept
        shapes: list[Shape] = [tuple(int(size) for size in bottom.shape) for bottom in bottoms]
        if self._planned != (train, shapes):
            self._adopt(self._layer().plan(shapes))
            self._planned = train, shapes

    def forget(self) -> None:
        """Begin the next pass without states of the passes before."""
        self._kept = {}

    def _layer(self) -> Layer:
        if self.train not in self._layers:
            phase = TRAIN if self.train else TEST
            self._layers[self.train] = make(self.node.layer.parameter, phase)
        return self._layers[self.train]

    def _adopt(self, plan: Plan) -> None:
        self.options, self.top_shapes = plan.values, list(plan.tops)

    def draw(self) -> Any:
        return _TorchDraw()

    def check(self, fine: Tensor, message: Callable[[], str]) -> None:
        if not is_recorded() and not torch.compiler.is_compiling() and not bool(fine):
            raise LayerError(self.name, f"{self.type}: {message()}")


def _sizes(x: Tensor) -> Shape:
    """Return sizes as symbols; pictures' as numbers, as TorchScript divides otherwise."""
    if not torch.jit.is_tracing():
        return tuple(x.shape)
    return (*x.shape[:2], *(int(size) for size in x.shape[2:]))


def is_recorded() -> bool:
    """Return whether `torch.export` or `torch.jit` records this pass."""
    exports = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return bool(torch.jit.is_tracing() or exports())


class NetModule(nn.Module):
    """The layers of a net, by their names; its forward pass takes the inputs in their order, or by
    name, and returns the only output, or a dictionary of them.

    A parameter is called as its layer and its number there: ``conv1.0`` are the weights,
    ``conv1.1`` the bias; a dot within a name is an underscore.  Statistics, as those of
    BatchNorm, are buffers."""

    def __init__(self, net: CaffeNet, share: bool) -> None:
        super().__init__()
        graph = net.graph
        self.inputs, self.outputs = tuple(graph.inputs), tuple(graph.outputs)
        self._steps = [_Step(node) for node in graph.nodes]
        _refuse_what_is_lacking(self._steps)
        owners: dict[int, tuple[str, str]] = {}
        self._places: list[list[tuple[str, str, Shape]]] = []
        for node in graph.nodes:
            places = []
            statistics = range(*type(node.layer).statistics.indices(len(node.params)))
            for number, ref in enumerate(node.params):
                if ref.learnable not in owners:
                    home = self._home(node.name)
                    values = torch.from_numpy(np.asarray(net.params[node.name][number].data))
                    values = values if share else values.clone()
                    if number in statistics:
                        home.register_buffer(str(number), values)
                    else:
                        learns = ref.needs_gradient
                        home.register_parameter(str(number), nn.Parameter(values, learns))
                    owners[ref.learnable] = (_attribute_name(node.name), str(number))
                places.append((*owners[ref.learnable], ref.shape))
            self._places.append(places)
        self.train(graph.nodes[0].phase == TRAIN if graph.nodes else True)

    def _home(self, name: str) -> nn.Module:
        if _attribute_name(name) not in self._modules:
            self.add_module(_attribute_name(name), nn.Module())
        home = self._modules[_attribute_name(name)]
        assert home is not None
        return home

    def forward(self, *inputs: Tensor, **named: Tensor) -> Any:
        """Return the outputs."""
        if len(inputs) > len(self.inputs):
            raise SpecError(f"the net has {len(self.inputs)} inputs; {len(inputs)} are given")
        blobs: dict[str, Tensor] = dict(zip(self.inputs, inputs, strict=False)) | named
        for name in self.inputs:
            if name not in blobs:
                raise SpecError(f"input '{name}' of the net is not given")
        for step, places in zip(self._steps, self._places, strict=True):
            self._run(step, places, blobs)
        outputs = {name: blobs[name] for name in self.outputs}
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def forget(self) -> None:
        """Have recurrent layers begin with zeros, not with the state of the pass before."""
        for step in self._steps:
            step.forget()

    def _run(
        self, step: _Step, places: list[tuple[str, str, Shape]], blobs: dict[str, Tensor]
    ) -> None:
        node = step.node
        if step.type == "Input":
            return
        bottoms = [blobs[name] for name in node.bottoms]
        step.follow(bottoms, self.training)
        if step.type == "Split":
            tops: tuple[Tensor, ...] = (bottoms[0],) * len(node.tops)
        elif step.type in _PASSED:
            tops = tuple(bottoms[0].reshape(shape) for shape in step.top_shapes)
        else:
            params = [getattr(self.get_submodule(home), name).view(s) for home, name, s in places]
            computed = TABLE[step.type].compute(step, bottoms, params)
            tops = computed if isinstance(computed, tuple) else (computed,)
        blobs.update(zip(node.tops, tops, strict=True))


def _attribute_name(layer: str) -> str:
    return layer.replace(".", "_") or "_"


def _refuse_what_is_lacking(steps: list[_Step]) -> None:
    for step in steps:
        if step.type not in TABLE and step.type not in (*_PASSED, "Input"):
            raise LayerError(
                step.name,
                f"{step.type}: has no translation into PyTorch; a module is made of layers that "
                "have one, and gets its data from its caller",
            )
