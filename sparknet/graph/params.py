"""Parameter blobs: owners, sharing and rates (Caffe: net.cpp, AppendParam)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparknet.errors import LayerError
from sparknet.layers import Layer, Param, Shape
from sparknet.layers.layer import count, shape_text
from sparknet.proto import caffe_pb2

_DEFAULT = caffe_pb2.ParamSpec()


def _spec(layer: Layer, specs: Sequence[caffe_pb2.ParamSpec], index: int) -> caffe_pb2.ParamSpec:
    own = specs[index] if index < len(specs) else _DEFAULT
    if not layer.fixed(index):
        return own
    spec = caffe_pb2.ParamSpec()
    spec.CopyFrom(own)
    spec.lr_mult = 0
    return spec


@dataclass(frozen=True)
class Learnable:
    """A parameter blob as the solver sees it: once, even if several layers share it."""

    node: int
    """The owner: the first layer that uses it."""
    index: int
    """Which of the owner's blobs it is."""
    name: str
    """The name under which it is shared; empty if it has none."""
    shape: Shape
    filler: caffe_pb2.FillerParameter
    lr_mult: float
    decay_mult: float


@dataclass(frozen=True)
class ParamRef:
    """One parameter blob of a layer."""

    learnable: int
    """Its place in ``Graph.params``."""
    node: int
    """The owner's place in ``Graph.nodes``."""
    index: int
    """Which of the owner's blobs it is."""
    owned: bool
    """Whether this layer is the owner."""
    name: str
    """Its name, or its number within the layer."""
    shape: Shape
    """The shape in this layer; permissive sharing keeps only the number of values."""
    spec: caffe_pb2.ParamSpec
    needs_gradient: bool

    def forced(self) -> ParamRef:
        """Return the same under ``force_backward``."""
        return self if self.needs_gradient else replace(self, needs_gradient=True)


@dataclass
class _Rates:
    """Multipliers that any one of the sharing layers may set."""

    lr_mult: float | None
    decay_mult: float | None


class Params:
    """Collects the parameter blobs of a net, layer by layer."""

    def __init__(self) -> None:
        self._owners: list[tuple[int, int, str, Param]] = []
        self._layer_names: list[str] = []
        self._rates: list[_Rates] = []
        self._by_name: dict[str, int] = {}

    def add(self, node: int, layer: Layer, params: Sequence[Param]) -> tuple[ParamRef, ...]:
        """Give each blob of a layer to its owner."""
        specs = layer.parameter.param
        if len(specs) > len(params):
            raise LayerError(
                layer.name, f"{len(specs)} param entries for {len(params)} parameter blob(s)"
            )
        layer.check_params(specs)
        return tuple(
            self._add(node, layer, index, param, _spec(layer, specs, index))
            for index, param in enumerate(params)
        )

    def learnables(self) -> tuple[Learnable, ...]:
        """Return all owned blobs, in order of first use."""
        return tuple(
            Learnable(
                node=node,
                index=index,
                name=name,
                shape=param.shape,
                filler=param.filler,
                lr_mult=1.0 if rates.lr_mult is None else rates.lr_mult,
                decay_mult=1.0 if rates.decay_mult is None else rates.decay_mult,
            )
            for (node, index, name, param), rates in zip(self._owners, self._rates, strict=True)
        )

    def _add(
        self, node: int, layer: Layer, index: int, param: Param, spec: caffe_pb2.ParamSpec
    ) -> ParamRef:
        place = self._by_name.get(spec.name) if spec.name else None
        owned = place is None
        if place is None:
            place = self._own(node, layer, index, param, spec)
        else:
            self._share(place, layer, param, spec)
        owner_node, owner_index = self._owners[place][:2]
        return ParamRef(
            learnable=place,
            node=owner_node,
            index=owner_index,
            owned=owned,
            name=spec.name or str(index),
            shape=param.shape,
            spec=spec,
            needs_gradient=spec.lr_mult != 0,
        )

    def _own(
        self, node: int, layer: Layer, index: int, param: Param, spec: caffe_pb2.ParamSpec
    ) -> int:
        place = len(self._owners)
        self._owners.append((node, index, spec.name, param))
        self._layer_names.append(layer.name)
        self._rates.append(
            _Rates(
                spec.lr_mult if spec.HasField("lr_mult") else None,
                spec.decay_mult if spec.HasField("decay_mult") else None,
            )
        )
        if spec.name:
            self._by_name[spec.name] = place
        return place

    def _share(self, place: int, layer: Layer, param: Param, spec: caffe_pb2.ParamSpec) -> None:
        self._check_shape(place, layer, param, spec)
        rates = self._rates[place]
        for field in ("lr_mult", "decay_mult"):
            if not spec.HasField(field):
                continue
            current, target = getattr(rates, field), getattr(spec, field)
            if current is None:
                setattr(rates, field, target)
            elif current != target:
                raise LayerError(
                    layer.name,
                    f"it shares parameter '{spec.name}' with {field} {target:g}, but layer "
                    f"'{self._layer_names[place]}' or another sharer has {current:g}",
                )

    def _check_shape(
        self, place: int, layer: Layer, param: Param, spec: caffe_pb2.ParamSpec
    ) -> None:
        shape = self._owners[place][3].shape
        if spec.share_mode == caffe_pb2.ParamSpec.PERMISSIVE:
            fits, what = count(param.shape) == count(shape), "number of values"
        else:
            fits, what = param.shape == shape, "shape"
        if not fits:
            raise LayerError(
                layer.name,
                f"it cannot share parameter '{spec.name}' of layer '{self._layer_names[place]}': "
                f"the {what} differs ({shape_text(param.shape)} here, {shape_text(shape)} there)",
            )
