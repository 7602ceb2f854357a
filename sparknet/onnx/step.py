"""One node on its way into the net: what a converter of an operator works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from sparknet.onnx.geometry import even_window
from sparknet.onnx.netlist import Computed, NetLayer, Value
from sparknet.onnx.records import COMPUTES, COMPUTES_WITH_LENGTH
from sparknet.onnx.sizes import Size, is_same
from sparknet.onnx.source import Array, OnnxNode

if TYPE_CHECKING:
    from sparknet.layers import Shape
    from sparknet.onnx.conversion import Reading

Outputs = Value | list[Value]
Converter = Callable[["Step"], Outputs]
OPERATORS: dict[str, Converter] = {}


class Unfit(ValueError):
    """Why a node cannot become layers."""


def reads(*ops: str) -> Callable[[Converter], Converter]:
    """Registers a function as the converter of these operators."""

    def registered(convert: Converter) -> Converter:
        OPERATORS.update(dict.fromkeys(ops, convert))
        return convert

    return registered


@dataclass(eq=False)
class Step:
    """A node, its inputs, and the net as far as it is made."""

    reading: Reading
    node: OnnxNode
    inputs: list[Value | None]

    def refuse(self, reason: str) -> NoReturn:
        raise Unfit(reason)

    @property
    def op(self) -> str:
        return self.node.op

    @property
    def opset(self) -> int:
        return self.reading.source.opset

    @property
    def batch(self) -> int:
        net = self.reading.net
        return net.size_of(net.batch)

    def attribute(self, name: str, otherwise: Any = None) -> Any:
        return self.node.attributes.get(name, otherwise)

    # -- inputs --------------------------------------------------------------------------

    def has(self, place: int) -> bool:
        return place < len(self.inputs) and self.inputs[place] is not None

    def value(self, place: int, *, rounded: bool = False, rows: bool = False) -> Value:
        """Return an input, unless a cast, a place through all records or an open size forbids."""
        value = self.inputs[place] if place < len(self.inputs) else None
        if value is None:
            self.refuse(f"input {place} is missing")
        if isinstance(value, Computed) and value.rounded and not rounded:
            value = self.whole(value)
        if isinstance(value, Computed) and value.rows and not rows:
            self.refuse("it computes with the numbers of the records, which no layer does")
        if not rows and not isinstance(value, Computed):
            self.check_numbers(place)
        return value

    def check_numbers(self, place: int) -> None:
        """Refuse a constant that has other numbers for other open sizes."""
        if self.reading.folds.varies(self.node.inputs[place]):
            self.refuse(COMPUTES_WITH_LENGTH if self.reading.lengths else COMPUTES)

    def shape(self, place: int) -> Shape:
        value = self.inputs[place] if self.has(place) else None
        return tuple((self.value(place) if value is None else value).shape)

    def constant(self, place: int, what: str) -> Array:
        """Return an input that must be known."""
        value = self.value(place)
        if isinstance(value, Computed):
            self.refuse(f"{what} must be constant; here the model computes it")
        return value

    def sizes(self, place: int, what: str) -> list[int]:
        """Whole numbers that may depend on open sizes."""
        sizes = self.reading.sizes(self.node.inputs[place])
        numbers = self.constant(place, what) if sizes is None else sizes
        return [one if isinstance(one, Size) else int(one) for one in np.ravel(numbers)]

    def optional(self, place: int, what: str) -> Array | None:
        return self.constant(place, what) if self.has(place) else None

    def blob(self, place: int = 0) -> Computed:
        """Return an input as a blob whose axes lie in order."""
        return self.plain(self.value(place))

    def plain(self, value: Value) -> Computed:
        """Return a blob whose values lie as its shape says; adds the layers that this takes."""
        if not isinstance(value, Computed):
            return self.parameter(value)
        if value.rounded:
            return self.whole(value)
        if value.rows:
            self.refuse("it computes with the numbers of the records, which no layer does")
        if value.is_plain:
            return value
        if value.done is None:
            padded = Computed(value.name, value.stored)
            order = value.order or range(len(padded.shape))
            if value.pads is not None:
                back = np.argsort(order)
                padded = self.padded(padded, *([pads[one] for one in back] for pads in value.pads))
            value.done = padded if value.order is None else self.permuted(padded, order)
            value.done.step = self.reading.net.blobs[value.name].step
        return value.done

    def whole(self, value: Computed) -> Computed:
        """Return the whole numbers that a cast of others makes."""
        is_whole = self.reading.whole
        if value.name not in is_whole:
            plain = Computed(value.name, value.stored)
            output = self.layer("Math", [plain], part="whole", function="TRUNC")
            output.dtype, output.integral = value.dtype, True
            is_whole[value.name] = output
        return is_whole[value.name]

    def parameter(self, array: Array, grown: Callable[[Array], Computed] | None = None) -> Computed:
        """Return a constant as a Parameter's top; `grown` makes one that grows with a length."""
        if not array.size:
            sizes = [*map(self.reading.net.size_of, array.shape)]
            self.refuse(f"a constant of the shape {sizes} is empty")
        if self.is_batched(array.shape):
            one = self.unbatched(array)
            if not self.is_batched(one.shape) and self.batch in self.reading.net.anchors:
                return self._sized(self.parameter(one, grown), array.shape, "each", False)
            rows = self.rows_of_each(array)
            if rows is not None:
                each = self._sized(
                    self.parameter(rows, grown), (self.batch, *rows.shape[1:]), "each", False
                )
                return self.reshape(each, array.shape, part="rows")
            self.refuse(
                "a constant that has as many rows as there are records has no layer here: give the "
                "input's whole shape, with the number of records"
            )
        shape = {"dim": list(array.shape)}
        if not any(map(self.is_open, array.shape)):
            return self.layer("Parameter", [], [array], part="constant", shape=shape)
        if grown is None:
            self.refuse(
                "it needs a constant that is as long as the input, which may be of any length"
            )
        return grown(array)

    def is_batched(self, shape: Sequence[int]) -> bool:
        return any(map(self.reading.net.is_batched, shape))

    def is_open(self, size: int) -> bool:
        return self.reading.net.is_open(size)

    def is_read(self, place: int) -> bool:
        """Return whether anybody reads an output of the node."""
        names = self.node.outputs
        return place < len(names) and bool(names[place]) and self.reading.uses[names[place]] > 0

    def readers_of(self, place: int) -> list[OnnxNode]:
        """Return the nodes that read an output."""
        return self.reading.readers[self.node.outputs[place]]

    # -- layers --------------------------------------------------------------------------

    def layer(
        self,
        type_name: str,
        bottoms: Sequence[Computed],
        arrays: Sequence[Array] = (),
        *,
        part: str | None = None,
        label: str | None = None,
        **options: Any,
    ) -> Computed:
        """Append a layer of one top; ``part`` and ``label`` tell layers of a node apart."""
        return self.layers(type_name, bottoms, arrays, part=part, label=label, **options)[0]

    def layers(
        self,
        type_name: str,
        bottoms: Sequence[Computed],
        arrays: Sequence[Array] = (),
        *,
        tops: Sequence[str] | None = None,
        part: str | None = None,
        label: str | None = None,
        **options: Any,
    ) -> list[Computed]:
        """Append a layer; returns its tops."""
        name = self.reading.layer_name(self.node)
        top = self.node.outputs[0]
        suffix = part if label is None else label
        name = f"{name}_{suffix}" if suffix else name
        top = f"{top}_{part}" if part else top
        net, plain = self.reading.net, [self.plain(one) for one in bottoms]
        blobs = net.add(
            type_name,
            plain,
            name=name,
            tops=[top] if tops is None else tops,
            arrays=arrays,
            options=options,
        )
        if self.reading.source.quantised.intersection(self.node.inputs[1:2]):
            net.layers[-1].in_int8 = all(net.blobs[one.name].step for one in plain)
        return blobs

    def pointwise(self, type_name: str, *, of: Value | None = None, **options: Any) -> Computed:
        """Return a layer that does not care in which order the axes lie."""
        value = self.value(0) if of is None else of
        if isinstance(value, Computed) and value.order is not None and value.pads is None:
            output = self.layer(type_name, [Computed(value.name, value.stored)], **options)
            return Computed(output.name, output.stored, value.order)
        return self.layer(type_name, [self.plain(value)], **options)

    def maker(self, value: Value) -> NetLayer | None:
        """Return the layer that makes a blob which this node alone reads."""
        if not isinstance(value, Computed) or not value.is_plain:
            return None
        if self.reading.held[value.name] != 1:
            return None
        maker = self.reading.net.makers.get(value.name)
        return maker if maker is not None and len(maker.parameter.top) == 1 else None

    # -- shapes --------------------------------------------------------------------------

    def axis(self, axis: int, axes: int) -> int:
        if not -axes <= axis < axes:
            self.refuse(f"axis {axis} of {axes} axes")
        return axis % axes

    def reshape(self, blob: Computed, shape: Sequence[int], part: str | None = None) -> Computed:
        """Return the values under another shape; sizes that come from the batch stay free."""
        blob, target = self.plain(blob), tuple(map(self.reading.net.size_of, shape))
        if target == blob.shape:
            return blob
        if prod(target) != prod(blob.shape):
            self.refuse(f"{list(blob.shape)} does not become {list(target)}")
        if len(blob.shape) > 1 and target == (blob.shape[0], prod(blob.shape[1:])):
            return self.layer("Flatten", [blob], part=part)
        first = _alike(blob.shape, target)
        last = _alike(blob.shape[first:][::-1], target[first:][::-1])
        old, new = blob.shape[first : len(blob.shape) - last], target[first : len(target) - last]
        if last and set(old + new) == {1}:  # The sizes around them stay free.
            dim = {"dim": list(new)}
            return self.layer(
                "Reshape", [blob], part=part, shape=dim, axis=first, num_axes=len(old)
            )
        if 0 in target:
            self.refuse(f"a blob of the shape {list(target)} is empty")
        dims, moves = list[int](), self.reading.net.moves
        for place, size in enumerate(target):
            same = place < len(blob.shape) and blob.shape[place] == size
            dims.append(0 if same else -1 if moves(size) else size)
        if dims.count(-1) <= 1:
            return self.layer("Reshape", [blob], part=part, shape={"dim": dims})
        dims = [-1 if moves(size) else size for size in new]
        if dims.count(-1) <= 1:
            dim = {"dim": dims}
            return self.layer(
                "Reshape", [blob], part=part, shape=dim, axis=first, num_axes=len(old)
            )
        return self.sized(blob, target, part=part, reshape=True)

    def sized(
        self, x: Computed, shape: Sequence[int], part: str | None = None, *, reshape: bool = False
    ) -> Computed:
        """Return a blob spread or cut off to this shape; open sizes are those of the inputs."""
        x, target = self.plain(x), tuple(map(self.reading.net.size_of, shape))
        if len(target) == len(x.shape) and all(map(is_same, target, x.shape)):
            return x
        for axis, size in enumerate(() if reshape else target):
            # So many rows for each record, which are the same: records have an axis of their own.
            if self.is_several(size) and x.shape[axis] == 1:
                before, after = target[:axis], target[axis + 1 :]
                one = self.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]), part=f"{part}_each")
                each = (*before, self.batch, size // self.batch, *after)
                return self.reshape(self.sized(one, each, f"{part}_rows"), target, part=part)
        return self._sized(x, target, part, reshape)

    def is_several(self, size: int) -> bool:
        """Return whether a size counts several rows for each record."""
        return self.is_open(size) and size not in self.reading.net.anchors and not size % self.batch

    def sized_by_inputs(self, x: Computed, target: Sequence[int], part: str | None) -> Computed:
        """Sizes that are open are those of the inputs: records have no axis of their own."""
        return self._sized(x, tuple(target), part, False)

    def _sized(
        self, x: Computed, target: Sequence[int], part: str | None, reshape: bool
    ) -> Computed:
        net, bottoms, sizes, is_unknown = self.reading.net, [x], list[dict[str, int]](), False
        target = tuple(map(net.size_of, target))
        own = (*[0] * (len(target) - len(x.shape)), *x.shape)
        for place, size in enumerate(target):
            if not self.reading.net.moves(size):
                sizes.append({"dim": size})
                continue
            place_of_size = net.places.get(str(size)) or net.anchors.get(size)
            if place_of_size is None and not reshape and is_same(own[place], size):
                sizes.append({"bottom": 0, "axis": place - len(target) + len(x.shape)})
                continue
            if place_of_size is None:
                if is_unknown or not reshape:
                    self.refuse(
                        "it computes with a size that the model leaves open: give its shape"
                    )
                is_unknown = True
                sizes.append({"dim": -1})
                continue
            like, axis = place_of_size
            if like not in bottoms:
                bottoms.append(like)
            sizes.append({"bottom": bottoms.index(like), "axis": axis})
        return self.layer("SizedLike", bottoms, part=part, size=sizes, reshape=reshape)

    def permuted(self, x: Computed, order: Sequence[int]) -> Computed:
        """Return the blob with its axes in another order."""
        moved = [axis for axis in order if x.shape[axis] != 1]
        if moved == sorted(moved):
            return self.reshape(x, [x.shape[axis] for axis in order], part="transposed")
        return self.layer("Permute", [x], part="transposed", order=list(order))

    def padded(self, x: Computed, before: Sequence[int], after: Sequence[int]) -> Computed:
        """Zeros around an image: a convolution that copies each channel, and pads."""
        channels, spatial = x.shape[1], len(x.shape) - 2
        ones = np.ones((channels, 1, *[1] * spatial), np.float32)
        unit = [1] * spatial
        kernel, options = even_window(ones, before[2:], after[2:], unit, unit)
        return self.layer(
            "Convolution",
            [x],
            [kernel],
            part="padded",
            num_output=channels,
            group=channels,
            bias_term=False,
            **options,
        )

    def unbatched(self, array: Array) -> Array:
        """Return a constant that is the same along an open size, with a size of 1 there."""
        for axis, size in enumerate(array.shape):
            if size in (self.batch, *self.reading.net.lengths):
                first = np.take(array, [0], axis)
                if np.array_equal(np.broadcast_to(first, array.shape), array, equal_nan=True):
                    array = first
        return array

    def rows_of_each(self, array: Array) -> Array | None:
        """Return rows that come again for each record under a first axis of 1, or None."""
        if not array.ndim or not self.is_several(array.shape[0]) or not array.size:
            return None
        rows = array.reshape(self.batch, array.shape[0] // self.batch, *array.shape[1:])
        return rows[:1] if np.array_equal(rows[1:], rows[:-1], equal_nan=True) else None


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many first sizes are the same."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
