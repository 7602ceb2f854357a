"""The axis of each blob along which records lie: where it grows if a net gets more records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from sparknet.errors import LayerError, SpecError, clean
from sparknet.layers import LAYERS, TRAIN, Layer, Shape, make
from sparknet.layers.layer import count
from sparknet.layers.python import Python
from sparknet.layers.recurrent import Recurrent
from sparknet.layers.reshape import Reshape
from sparknet.layers.source_layer import SourceLayer
from sparknet.native.alone import cached_property
from sparknet.proto import caffe_pb2

Shapes = Mapping[str, Shape]
Axes = dict[str, int]
Pair = tuple[Shape, Shape]
"""A blob's shape, and its shape with more records."""

_AXES = (1, 0)
"""Where records may lie in a net with recurrent layers, the usual axis first."""
_MOST_LEAVES = 64


class Outline:
    """Computes a net's blob shapes from its input shapes, without running it or reading files.

    Blobs shaped by a user's own code, and those that depend on them, stay unknown."""

    def __init__(self, layers: Iterable[caffe_pb2.LayerParameter], phase: int) -> None:
        layers = list(layers)
        self.layers = [make(layer, phase) for layer in layers if not _is_place(layer)]
        self.described = {
            top: axis
            for layer in layers
            for top, axis in zip(layer.top, layer.input_param.record_axis, strict=False)
        }
        """The axes of records that Input layers name."""
        self.is_time_major = any(layer.is_time_major for layer in self.layers)

    def vectors(self, inputs: Shapes) -> dict[str, tuple[Shape, ...]]:
        """Return for each layer the axes that it reads as one vector."""
        blobs, shapes = dict(inputs), dict[str, tuple[Shape, ...]]()
        for layer in self.layers:
            if _is_known(layer, blobs):
                bottoms = [blobs[name] for name in layer.parameter.bottom]
                blobs |= zip(layer.parameter.top, layer.plan(bottoms).tops, strict=False)
                shapes[layer.name] = layer.vectors(bottoms)
            else:
                _forget(layer, blobs)
        return shapes

    def input_axes(self, inputs: Shapes) -> Axes:
        """Return the record axis of each input: its layer's, else 0, or 1 if time is first."""
        if not self.is_time_major:
            return {name: self.described.get(name, 0) for name in inputs}
        counts = dict.fromkeys(size for shape in inputs.values() for size in shape[:2])
        # Most nets have as many records in each input.
        alike = [(self._choices(inputs, count), _more(count)) for count in counts]
        alike = [pair for pair in alike if all(pair[0].values())]
        any_count = (self._choices(inputs), _double)
        for follows in (False, True):
            for choices, grow in (*alike, any_count):
                search = _Search(self.layers, inputs, choices, grow, follows)
                axes = next((leaf.axes for leaf in search.leaves() if leaf.fits), None)
                if axes is not None:
                    return {**dict.fromkeys(inputs, 0), **self.described, **axes}
        return self._only_possible(inputs, _Search(self.layers, inputs, *any_count, True))

    def _choices(self, inputs: Shapes, count: int | None = None) -> dict[str, list[int]]:
        """Return the axes of each input on which records may lie, the usual one first."""
        axes = {**self._recurrent, **self.described}
        return {
            name: [
                axis
                for axis in ((axes[name],) if name in axes else _AXES)
                if axis < len(shape) and count in (None, shape[axis])
            ]
            for name, shape in inputs.items()
            if shape or count is None
        }

    @cached_property
    def _recurrent(self) -> Axes:
        """The axes of blobs that recurrent layers read: time comes first but in static inputs."""
        return {
            name: int(not 2 <= place < len(layer.parameter.bottom) - layer.exposed)
            for layer in self.layers
            if isinstance(layer, Recurrent)
            for place, name in enumerate(layer.parameter.bottom)
        }

    def _only_possible(self, inputs: Shapes, search: _Search) -> Axes:
        """Return the axes of a net of a fixed number of records, by elimination."""
        leaves = list(islice(search.leaves(), _MOST_LEAVES))
        possible: dict[str, list[int]] = {}
        for name in inputs:
            places = {leaf.axes.get(name) for leaf in leaves} or {None}
            possible[name] = [one for one in search.choices[name] or [0] if {one, None} & places]
        settled = {name: axes[0] for name, axes in possible.items() if len(axes) == 1}
        counts = {inputs[name][axis] for name, axis in settled.items() if inputs[name]}
        for name, axes in possible.items():
            if name in settled:
                continue
            same = [axis for axis in axes if {inputs[name][axis]} == counts]
            if len(same) != 1:
                shape = " x ".join(map(str, inputs[name]))
                raise SpecError(
                    f"no layer tells along which axis of input '{clean(name)}' ({shape}) records "
                    f"lie: layer {search.obstacle} takes no other number of them; write -1 for it "
                    "in Reshape layers, name record_axis in input_param (batch_axis= of a .onnx), "
                    "or run the net by sparknet.caffe.Net"
                )
            settled[name] = same[0]
        return settled

    def axes(
        self, inputs: Shapes, input_axes: Mapping[str, int], follows: bool = False
    ) -> tuple[dict[str, Shape], Axes]:
        """Return known blobs' shapes and record axes, with `follows` also behind fixed ones."""
        counts = {shape[input_axes[name]] for name, shape in inputs.items() if shape}
        grow = _more(*counts) if len(counts) == 1 else _double
        blobs = {
            name: (shape, _along(shape, input_axes[name], grow)) for name, shape in inputs.items()
        }
        for layer in self.layers:
            if not _add_tops(layer, blobs, follows):
                _forget(layer, blobs)
        axes = {name: _axis(pair, grow) for name, pair in blobs.items()}
        return (
            {name: shape for name, (shape, _) in blobs.items()},
            {name: axis for name, axis in axes.items() if axis is not None},
        )


@dataclass(frozen=True)
class _Leaf:
    """Where a search ends: at the end of the net, or at a layer for which axes are in doubt."""

    axes: Axes
    fits: bool


@dataclass
class _Search:
    """Looks for axes of inputs with which the layers accept more records."""

    layers: Sequence[Layer]
    inputs: Shapes
    choices: Mapping[str, Sequence[int]]
    grow: Callable[[int], int]
    follows: bool
    """Whether sizes that a Reshape fixes grow with the records."""
    obstacle: str = "?"
    """The layer that does not accept more records."""

    def leaves(self) -> Iterator[_Leaf]:
        return self._rest(0, {}, {}, False)

    def _rest(
        self, number: int, blobs: dict[str, Pair], axes: Axes, in_doubt: bool
    ) -> Iterator[_Leaf]:
        """Behind a Reshape it is in doubt whether its sizes or the axes are at fault."""
        for at in range(number, len(self.layers)):
            layer = self.layers[at]
            names = [name for name in layer.parameter.bottom if name in self.inputs]
            name = next((name for name in names if name not in axes), None)
            if name is not None:
                shape = self.inputs[name]
                for axis in self.choices.get(name) or (0,):
                    pair = shape, _along(shape, axis, self.grow)
                    yield from self._rest(at, {**blobs, name: pair}, {**axes, name: axis}, in_doubt)
                return
            if not _is_known(layer, blobs):
                _forget(layer, blobs)
                continue
            reshapes = isinstance(layer, Reshape) and _grows(blobs[layer.parameter.bottom[0]])
            in_doubt |= reshapes
            if not _add_tops(layer, blobs, self.follows) or _loses(layer, blobs):
                self.obstacle = f"'{clean(layer.name)}' ({layer.type})"
                if in_doubt:
                    yield _Leaf(axes, False)
                return
        yield _Leaf(axes, True)


def _is_place(layer: caffe_pb2.LayerParameter) -> bool:
    kind = LAYERS.get(layer.type)
    return kind is not None and kind.holds_records


def _is_known(layer: Layer, blobs: Mapping[str, object]) -> bool:
    return not isinstance(layer, Python) and all(name in blobs for name in layer.parameter.bottom)


def _forget(layer: Layer, blobs: dict[str, Pair] | dict[str, Shape]) -> None:
    for name in layer.parameter.top:
        blobs.pop(name, None)


def _add_tops(layer: Layer, blobs: dict[str, Pair], follows: bool = False) -> bool:
    """Add the tops of a layer; return False where it does not accept more records."""
    if not _is_known(layer, blobs):
        return False
    bottoms = [blobs[name] for name in layer.parameter.bottom]
    try:
        plan = layer.plan([shape for shape, _ in bottoms])
        grown = layer.plan([shape for _, shape in bottoms])
    except LayerError:
        return follows and isinstance(layer, Reshape) and _follow(layer, blobs)
    if [param.shape for param in plan.params] != [param.shape for param in grown.params]:
        return False
    pairs = zip(plan.tops, grown.tops, strict=True)
    blobs |= zip(layer.parameter.top, pairs, strict=False)
    return True


def _follow(layer: Layer, blobs: dict[str, Pair]) -> bool:
    """Let a Reshape of fixed sizes grow where records lie: behind as many values as before it."""
    shape, grown = blobs[layer.parameter.bottom[0]]
    top = layer.plan([shape]).tops[0]
    axis = next((axis for axis, size in enumerate(shape) if size != grown[axis]), None)
    if axis is None:
        return False
    for place, size in enumerate(top):
        longer, rest = divmod(size * grown[axis], shape[axis] or 1)
        if count(top[:place]) == count(shape[:axis]) and not rest:
            blobs[layer.parameter.top[0]] = (top, (*top[:place], longer, *top[place + 1 :]))
            return True
    return False


def _loses(layer: Layer, blobs: Mapping[str, Pair]) -> bool:
    """Return whether it reads more records and makes no more rows (Gather)."""
    bottoms, results = layer.parameter.bottom, layer.parameter.top
    if layer.is_loss or layer.compares_labels or not any(_grows(blobs[name]) for name in bottoms):
        return False
    tops = [blobs[name] for name in results if name in blobs]
    return bool(tops) and all(shape for shape, _ in tops) and not any(map(_grows, tops))


def _grows(pair: Pair) -> bool:
    return pair[0] != pair[1]


def _more(count: int) -> Callable[[int], int]:
    return lambda size: 2 * count + 1


def _double(size: int) -> int:
    return 2 * size


def _along(shape: Shape, axis: int, grow: Callable[[int], int]) -> Shape:
    return (*shape[:axis], *map(grow, shape[axis : axis + 1]), *shape[axis + 1 :])


def _axis(pair: Pair, grow: Callable[[int], int]) -> int | None:
    """Return the one axis along which a blob grew as records did."""
    shape, grown = pair
    pairs = enumerate(zip(shape, grown, strict=False))
    changed = [axis for axis, (before, after) in pairs if before != after]
    if len(shape) != len(grown) or len(changed) != 1:
        return None
    axis = changed[0]
    return axis if grown[axis] == grow(shape[axis]) else None


def set_batch(net: caffe_pb2.NetParameter, batch: int) -> None:
    """Change the batch size of every layer that brings data in, along its batch axis."""
    sized = [  # a top may come twice: from a layer for training and one for testing
        (top, shape)
        for layer in net.layer
        for top, shape in zip(layer.top, _shapes(layer, len(layer.top)), strict=False)
    ]
    lists: dict[str, Shape] = {top: tuple(shape.dim) for top, shape in sized}
    axes = Outline(net.layer, TRAIN).input_axes(lists)
    for top, shape in sized:
        if axes[top] < len(shape.dim):
            shape.dim[axes[top]] = batch
    for layer in net.layer:
        for index in range(len(layer.dummy_data_param.num)):
            layer.dummy_data_param.num[index] = batch
        kind = LAYERS.get(layer.type)
        if (
            kind is not None
            and issubclass(kind, SourceLayer)
            and kind.has_batch_size
            and kind.field
        ):
            getattr(layer, kind.field).batch_size = batch


def _shapes(layer: caffe_pb2.LayerParameter, tops: int) -> list[caffe_pb2.BlobShape]:
    """Return the shapes that the description gives for the tops; one shape may stand for all."""
    shapes = [*layer.input_param.shape, *layer.dummy_data_param.shape]
    return shapes * tops if len(shapes) == 1 else shapes
