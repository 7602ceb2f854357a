"""A whole net: layers in order, checked when it is built, never changed afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from sparknet.dsl.checks import check_net, served_phase
from sparknet.dsl.fields import set_field, set_fields, short_repr
from sparknet.dsl.layer_spec import Content, LayerSpec, clear_empty
from sparknet.dsl.source_code import net_source
from sparknet.errors import FileError, LayerError, SparkNetError, SpecError
from sparknet.graph import Graph, build, html_summary, render, summary, to_dot
from sparknet.graph.boxes import plotted
from sparknet.graph.plots import Drawing
from sparknet.graph.summary import outline_of
from sparknet.proto import caffe_pb2, parse_net, read_model, read_net, upgrade_net, write_text
from sparknet.proto.suggest import did_you_mean

Layers: TypeAlias = LayerSpec | Iterable["Layers"]
"""A layer, or layers nested in lists, such as a function that makes a block returns."""
Phase: TypeAlias = int | str | None

_REFUSED = ("layer", "layers", "input", "input_dim", "input_shape")


class NetParams(Content):
    """A net: its name, which may be left out, then its layers, which may be nested in lists.

    Keywords are NetParameter's own fields (``force_backward``, ``state`` …).
    The net is checked for both phases, as far as its include rules serve them;
    ``check=False`` leaves that out, for nets with layers unknown here.
    Nets compare, hash and pickle by content.

    >>> from sparknet import LinearLayer, RDDLayer
    >>> net = NetParams("n", RDDLayer("data", [8, 2]), LinearLayer("ip", "data", num_outputs=3))
    >>> net.graph().blobs["ip"]
    (8, 3)
    """

    __slots__ = ("checked", "layers", "name")
    _message_class = caffe_pb2.NetParameter
    name: str
    layers: tuple[LayerSpec, ...]
    checked: bool

    def __init__(
        self,
        *layers: str | Layers,
        name: str | None = None,
        check: bool = True,
        **fields: object,
    ) -> None:
        net = caffe_pb2.NetParameter()
        if name is None:
            name, layers = (
                (layers[0], layers[1:])
                if layers[:1] and isinstance(layers[0], str)
                else ("net", layers)
            )

        def fail(message: str) -> NoReturn:
            raise SpecError(f"net {short_repr(name)}: {message}")

        set_field(net, net.DESCRIPTOR.fields_by_name["name"], name, fail)
        for key in fields:
            if key in _REFUSED:
                fail(f"{key} is not set by keyword; list layers (RDDLayer for inputs)")
        set_fields(net, fields, fail)
        net.layer.extend(layer.to_proto() for layer in _flat(layers, fail))
        self._settle(net, check)

    def _settle(self, net: Any, check: bool) -> None:
        """Keep what Caffe would read from the net's prototxt, without weights."""
        net = upgrade_net(net)
        clear_empty(net, "name")
        for layer in net.layer:
            clear_empty(layer, "name", "type")
            layer.ClearField("blobs")
        if check:
            check_net(net)
        self._freeze(net)
        layers = tuple(LayerSpec(layer) for layer in net.layer)
        for key, value in {"name": net.name, "layers": layers, "checked": check}.items():
            object.__setattr__(self, key, value)

    # made from files and messages

    @classmethod
    def from_proto(cls, net: caffe_pb2.NetParameter, check: bool = True) -> NetParams:
        """Return the net of a NetParameter; old generations are upgraded, weights left out."""
        instance = cls.__new__(cls)
        instance._settle(net, check)
        return instance

    @classmethod
    def from_text(cls, text: str, check: bool = True, name: str = "<text>") -> NetParams:
        """Return the net of a prototxt's text; `name` stands for the file in errors."""
        return cls.from_proto(parse_net(text, name), check)

    @classmethod
    def load(cls, path: str | os.PathLike[str], check: bool = True) -> NetParams:
        """Return the net of a prototxt or of a binary caffemodel, told apart by content."""
        try:
            with Path(path).open("rb") as file:
                head = file.read(4096)
        except OSError as error:
            raise FileError(path, error.strerror or "cannot be read") from None
        if head.startswith(b"\x89HDF"):
            raise FileError(path, "an HDF5 file holds weights only; load the net's prototxt")
        control = any(byte < 32 and byte not in b"\t\n\v\f\r" for byte in head)
        binary = control and Path(path).suffix != ".prototxt"
        return cls.from_proto(read_model(path).net if binary else read_net(path), check)

    # what it gives

    def to_source(self) -> str:
        """Python source that binds ``net`` to an equal net."""
        return net_source(self.to_proto(), self.checked)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the prototxt."""
        write_text(path, self.to_proto())

    def graph(self, phase: Phase = None, level: int = 0, stages: Sequence[str] = ()) -> Graph:
        """Return the net as Caffe would set it up: filtered, split, with shapes.

        Without a phase it is TRAIN, or TEST where the net has sources for TEST only."""
        return build(self.to_proto(), self._phase(phase), level, stages)

    def summary(self, phase: Phase = None) -> str:
        """Return a table: layer, type, output shape, parameters."""
        return summary(self.graph(phase))

    def to_dot(self, phase: Phase = None) -> str:
        """Return the drawing in Graphviz's language."""
        return to_dot(self.graph(phase))

    def draw(self, path: str | os.PathLike[str], phase: Phase = None) -> None:
        """Draw to a .dot, .svg, .png or .pdf file; all but .dot need Graphviz."""
        render(self.to_dot(phase), Path(path))

    def plot(self, out: str | os.PathLike[str] | None = None, phase: Phase = None) -> Drawing:
        """Draw its layers as a picture, which a notebook shows; no Graphviz is needed.

        It is written to ``out``, a file named .svg, if that is given."""
        plot = plotted(outline_of(self.graph(phase)), self.name)
        return plot.saved(out)

    def _phase(self, phase: Phase) -> int:
        if phase is None:
            return served_phase(self.to_proto())
        phases = {"train": caffe_pb2.TRAIN, "test": caffe_pb2.TEST}
        number = phases.get(phase.lower()) if isinstance(phase, str) else phase
        if isinstance(number, bool) or number not in (caffe_pb2.TRAIN, caffe_pb2.TEST):
            raise SpecError(f"phase {short_repr(phase)} is neither 'TRAIN' nor 'TEST'")
        return int(number)

    # other nets from this one

    def with_name(self, name: str) -> NetParams:
        """Return the same layers under another name."""
        return self._changed(lambda net: setattr(net, "name", name))

    def with_layers(self, *layers: Layers, after: str | None = None) -> NetParams:
        """This net with more layers: at the end, or after the layer named `after`."""
        new = [layer.to_proto() for layer in _flat(layers, self._fail)]
        old = list(self.to_proto().layer)
        at = len(old)
        if after is not None:
            at = max(i for i, layer in enumerate(old) if layer.name == self[after].name) + 1
        return self._with(old[:at] + new + old[at:])

    def without_layers(self, *names: str) -> NetParams:
        """This net without the layers of these names."""
        dropped = {self[name].name for name in names}
        return self._with([layer for layer in self.to_proto().layer if layer.name not in dropped])

    def with_replaced(self, *layers: Layers) -> NetParams:
        """This net with each of these layers in place of the one with its name."""
        new = {layer.name: layer.to_proto() for layer in _flat(layers, self._fail)}
        for name in new:
            self[name]
        return self._with([new.get(layer.name, layer) for layer in self.to_proto().layer])

    def with_input_shape(self, blob: str, shape: object, phase: Phase = None) -> NetParams:
        """This net with another shape for one input blob; see `with_input_shapes`."""
        return self.with_input_shapes({blob: shape}, phase)

    def with_input_shapes(self, shapes: Mapping[str, object], phase: Phase = None) -> NetParams:
        """Return this net with other input shapes, in `phase` if rules differ."""
        net = self.to_proto()
        phase_number = None if phase is None else self._phase(phase)
        for blob, shape in shapes.items():
            makers = [m for m in net.layer if blob in m.top and _serves(m, phase_number)]
            if not makers:
                inputs = [top for m in net.layer if _serves(m, phase_number) for top in m.top]
                self._fail(
                    f"no Input layer makes a blob {short_repr(blob)}{did_you_mean(blob, inputs)}"
                )
            for maker in makers:
                _reshape_input(maker, blob, shape)
        return self._with(net.layer)

    def __add__(self, other: NetParams | LayerSpec) -> NetParams:
        """This net with the other's layers after its own."""
        if not isinstance(other, NetParams | LayerSpec):
            return NotImplemented
        return self.with_layers(other if isinstance(other, LayerSpec) else other.layers)

    def _with(self, layers: Iterable[Any]) -> NetParams:
        def change(net: Any) -> None:
            copies = [_copied(layer) for layer in layers]
            del net.layer[:]
            net.layer.extend(copies)

        return self._changed(change)

    def _changed(self, change: Any) -> NetParams:
        net = self.to_proto()
        change(net)
        instance = type(self).__new__(type(self))
        instance._settle(net, self.checked)
        return instance

    def _fail(self, message: str) -> NoReturn:
        raise SpecError(f"net {short_repr(self.name)}: {message}")

    # a sequence of layers

    def __iter__(self) -> Iterator[LayerSpec]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __contains__(self, name: object) -> bool:
        return any(layer.name == name for layer in self.layers)

    def __getitem__(self, name: str) -> LayerSpec:
        """Return the first layer of this name."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        hint = did_you_mean(name, [layer.name for layer in self.layers])
        raise KeyError(f"net {short_repr(self.name)} has no layer {short_repr(name)}{hint}")

    def __str__(self) -> str:
        return self.to_prototxt()

    def _repr_html_(self) -> str:
        """Return the table of `summary`, in a notebook."""
        try:
            return html_summary(self.graph())
        except SparkNetError:
            return escape(repr(self))  # its shapes are not known yet

    def __repr__(self) -> str:
        return f"<NetParams {self.name!r}: {len(self)} layers, {self.fingerprint[:8]}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _thaw, (self._bytes, self.checked)


def _thaw(data: bytes, checked: bool) -> NetParams:
    net = NetParams.__new__(NetParams)
    net._settle(caffe_pb2.NetParameter.FromString(data), False)
    object.__setattr__(net, "checked", checked)
    return net


def _copied(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _flat(layers: object, fail: Any) -> Iterator[LayerSpec]:
    if isinstance(layers, LayerSpec):
        yield layers
    elif isinstance(layers, Iterable) and not isinstance(layers, str | bytes | Mapping):
        for layer in layers:
            yield from _flat(layer, fail)
    else:
        fail(f"{short_repr(layers)} is no layer; make one with a builder, e.g. ConvLayer")


def _serves(layer: Any, phase: int | None) -> bool:
    """Return whether this is an Input layer of the phase; None is either."""
    rules = [rule.phase for rule in layer.include if rule.HasField("phase")]
    return layer.type == "Input" and (phase is None or not rules or phase in rules)


def _reshape_input(layer: Any, blob: str, shape: object) -> None:
    def fail(message: str) -> NoReturn:
        raise LayerError(layer.name, message)

    shapes = layer.input_param.shape
    at = list(layer.top).index(blob)
    while len(layer.top) > len(shapes) == 1:  # one shape may serve all tops
        for _ in layer.top[1:]:
            shapes.add().CopyFrom(shapes[0])
    if at >= len(shapes):
        fail(f"it has {len(shapes)} shapes for {len(layer.top)} tops")
    new = caffe_pb2.BlobShape()
    set_fields(new, {"dim": shape}, fail, "shape.")
    shapes[at].CopyFrom(new)
