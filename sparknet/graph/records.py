"""Finds the axis of each blob along which records lie.

The layers' shape rules tell: when a net gets more records, each blob grows along its record axis.
A recurrent layer refuses more time steps, an InnerProduct refuses more inputs, and a Permute moves
the axis, so only the right axes of the inputs fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Layer, Shape, make
from sparknet.proto import caffe_pb2

Shapes = Mapping[str, Shape]
Axes = dict[str, int]
Pair = tuple[Shape, Shape]
"""A blob's shape, and its shape with more records."""

_AXES = (1, 0)
"""Where records may lie in a net with recurrent layers, the usual axis first."""


class Outline:
    """Computes a net's blob shapes from its input shapes, without running it or reading files.

    Blobs shaped by a user's own code, and those that depend on them, stay unknown.
    """

    def __init__(self, layers: Iterable[caffe_pb2.LayerParameter], phase: int) -> None:
        described = [layer for layer in layers if not _is_place(layer)]
        self.layers = [make(layer, phase) for layer in described]
        self.time_first = any(layer.time_first for layer in self.layers)

    def vectors(self, inputs: Shapes) -> dict[str, tuple[Shape, ...]]:
        """For each layer the axes that it reads as one vector: each size counts, not only their
        product."""
        blobs, found = dict(inputs), dict[str, tuple[Shape, ...]]()
        for layer in self.layers:
            if _is_known(layer, blobs):
                bottoms = [blobs[name] for name in layer.parameter.bottom]
                blobs |= zip(layer.parameter.top, layer.plan(bottoms).tops, strict=False)
                found[layer.name] = layer.vectors(bottoms)
            else:
                _forget(layer, blobs)
        return found

    def input_axes(self, inputs: Shapes) -> Axes:
        """The axis of each input: 0 unless a layer wants time to come first."""
        if not self.time_first:
            return dict.fromkeys(inputs, 0)
        for count in dict.fromkeys(size for shape in inputs.values() for size in shape[:2]):
            # Most nets have as many records in each input.
            choices = {
                name: [axis for axis in _AXES if shape[axis : axis + 1] == (count,)]
                for name, shape in inputs.items()
                if shape
            }
            if all(choices.values()) and (found := self._fit(inputs, choices, _more(count))):
                return found
        choices = {name: [axis for axis in _AXES if axis < len(inputs[name])] for name in inputs}
        found = self._fit(inputs, choices, _double)
        return found or {name: int(len(shape) > 1) for name, shape in inputs.items()}

    def axes(self, inputs: Shapes, input_axes: Mapping[str, int]) -> tuple[dict[str, Shape], Axes]:
        """The shape of every known blob, and the record axis of those that have one."""
        counts = {shape[input_axes[name]] for name, shape in inputs.items() if shape}
        grow = _more(*counts) if len(counts) == 1 else _double
        blobs = {
            name: (shape, _along(shape, input_axes[name], grow)) for name, shape in inputs.items()
        }
        for layer in self.layers:
            if not _add_tops(layer, blobs):
                _forget(layer, blobs)
        axes = {name: _axis(pair, grow) for name, pair in blobs.items()}
        return (
            {name: shape for name, (shape, _) in blobs.items()},
            {name: axis for name, axis in axes.items() if axis is not None},
        )

    def _fit(
        self, inputs: Shapes, choices: Mapping[str, Sequence[int]], grow: Callable[[int], int]
    ) -> Axes | None:
        """The first choice of axes with which every layer accepts more records."""

        def rest(number: int, blobs: dict[str, Pair], axes: Axes) -> Axes | None:
            for at in range(number, len(self.layers)):
                layer = self.layers[at]
                names = [name for name in layer.parameter.bottom if name in inputs]
                name = next((name for name in names if name not in axes), None)
                if name is not None:
                    shape = inputs[name]
                    for axis in choices.get(name) or (0,):
                        pair = shape, _along(shape, axis, grow)
                        found = rest(at, {**blobs, name: pair}, {**axes, name: axis})
                        if found is not None:
                            return found
                    return None
                if not _is_known(layer, blobs):
                    _forget(layer, blobs)
                elif not _add_tops(layer, blobs) or _loses(layer, blobs):
                    return None
            return {**dict.fromkeys(inputs, 0), **axes}

        return rest(0, {}, {})


def _is_place(layer: caffe_pb2.LayerParameter) -> bool:
    kind = LAYERS.get(layer.type)
    return kind is not None and kind.records


def _is_known(layer: Layer, blobs: Mapping[str, object]) -> bool:
    return not layer.user_code and all(name in blobs for name in layer.parameter.bottom)


def _forget(layer: Layer, blobs: dict[str, Pair] | dict[str, Shape]) -> None:
    for name in layer.parameter.top:
        blobs.pop(name, None)


def _add_tops(layer: Layer, blobs: dict[str, Pair]) -> bool:
    """The tops of a layer; False where it does not accept more records."""
    if not _is_known(layer, blobs):
        return False
    bottoms = [blobs[name] for name in layer.parameter.bottom]
    try:
        plan = layer.plan([shape for shape, _ in bottoms])
        grown = layer.plan([shape for _, shape in bottoms])
    except LayerError:
        return False
    if [param.shape for param in plan.params] != [param.shape for param in grown.params]:
        return False
    pairs = zip(plan.tops, grown.tops, strict=True)
    blobs |= zip(layer.parameter.top, pairs, strict=False)
    return True


def _loses(layer: Layer, blobs: Mapping[str, Pair]) -> bool:
    """Whether it reads more records and makes no more rows: it takes some of them (Gather)."""
    read, made = layer.parameter.bottom, layer.parameter.top
    if layer.loss or layer.judges or not any(_grows(blobs[name]) for name in read):
        return False
    tops = [blobs[name] for name in made if name in blobs]
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
    """The one axis along which a blob grew as records did."""
    shape, grown = pair
    pairs = enumerate(zip(shape, grown, strict=False))
    changed = [axis for axis, (before, after) in pairs if before != after]
    if len(shape) != len(grown) or len(changed) != 1:
        return None
    axis = changed[0]
    return axis if grown[axis] == grow(shape[axis]) else None
