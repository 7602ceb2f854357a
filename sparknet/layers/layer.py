"""Layer: a type with options, arity and shape rule; `infer` makes a `Plan` of bottom shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn, TypeVar

from sparknet.errors import LayerError
from sparknet.native.alone import cached_property
from sparknet.proto import caffe_pb2
from sparknet.proto.message_fields import is_repeated

Shape = tuple[int, ...]

TRAIN: int = caffe_pb2.TRAIN
TEST: int = caffe_pb2.TEST

MAX_AXES = 32
MAX_COUNT = 2**31 - 1
"""The bounds of a blob (Caffe: blob.cpp, Reshape)."""
EVERY = ("*",)
"""All options of a layer's own message (`Layer.plain_options`)."""
INTERPRETED = 1 << 14
"""Multiplications in about the time of one turn of a loop in Python (`Layer.work`)."""


@dataclass(frozen=True)
class Arity:
    """How many bottoms or tops a layer takes; ``most=None`` is without limit."""

    least: int
    most: int | None
    like_bottoms: bool = False
    """As many tops as bottoms (Caffe's EqualNumBottomTopBlobs)."""

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


def exactly(count: int) -> Arity:
    return Arity(count, count)


def at_least(count: int) -> Arity:
    return Arity(count, None)


def between(least: int, most: int) -> Arity:
    return Arity(least, most)


@dataclass(frozen=True)
class Param:
    """One learnable blob: its shape and the FillerParameter that sets its first value."""

    shape: Shape
    filler: caffe_pb2.FillerParameter


@dataclass(frozen=True)
class Plan:
    """What `Layer.infer` finds: everything about a layer that depends on its bottoms."""

    tops: tuple[Shape, ...]
    params: tuple[Param, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


L = TypeVar("L", bound="Layer")


class Layer(ABC):
    """A layer type.  Concrete subclasses are final."""

    type: ClassVar[str]
    """Caffe's type name, which `layer` sets."""
    summary: ClassVar[Any] = None
    """Computes a metric of all batches' tops, which hold counts of a batch; the second argument is
    the solver's ``ap_version``."""
    host: ClassVar[Any] = None
    """The `Host` that computes the layer in Python; None: a kernel does."""
    field: ClassVar[str | None] = None
    """The LayerParameter field that holds this type's options, e.g. ``pooling_param``."""
    fields: ClassVar[tuple[str, ...]] = ()
    """Further LayerParameter fields that this type reads (``loss_param``, ``transform_param``)."""
    bottoms: ClassVar[Arity] = exactly(1)
    tops: ClassVar[Arity] = exactly(1)
    works_in_place: ClassVar[bool] = False
    """A top may be the bottom itself."""
    is_loss: ClassVar[bool] = False
    """The first top carries loss weight 1 unless the net says otherwise; missing tops get a name
    (Caffe's AutoTopBlobs)."""
    has_gradient: ClassVar[bool] = True
    """The layer has a backward pass.  False: Accuracy, ArgMax, data layers …"""
    is_constant: ClassVar[bool] = False
    """The values of the tops depend on the bottoms' shapes alone (PriorBox)."""
    statistics: ClassVar[slice] = slice(0)
    """The blobs that the forward pass computes and no gradient changes."""
    holds_records: ClassVar[bool] = False
    """The tops hold records, which a caller may also feed."""
    is_input: ClassVar[bool] = False
    """The tops are inputs of the net, which its caller fills (Caffe: Net::input_blobs)."""
    is_time_major: ClassVar[bool] = False
    """Time is axis 0 of the first bottom, and records lie side by side on axis 1 (LSTM, RNN)."""
    compares_labels: ClassVar[bool] = False
    """Compares predictions with labels: losses and Accuracy."""
    other_bottoms: ClassVar[str] = "numbers"
    """What bottoms after the first hold: "numbers", "indices" (labels, places), or "classes"."""
    score_function: ClassVar[str | None] = None
    """How scores become probabilities here: "softmax" or "sigmoid"."""
    padding_value: ClassVar[float | None] = None
    """The value of rows that fill up a record of the first bottom that has fewer (TrueBoxes)."""
    is_view: ClassVar[bool] = False
    """The forward pass moves no values: the tops share the bottoms' memory, or there are none."""
    is_split: ClassVar[bool] = False
    """Only passes a blob to several readers; tables and drawings leave the layer out."""
    has_dynamic_tops: ClassVar[bool] = False
    """The shapes of the tops depend on data: they are known after the forward pass (Filter)."""
    is_stock: ClassVar[bool] = False
    """BVLC's Caffe has the type, not only a fork or sparknet."""
    bottoms_without_gradient: ClassVar[tuple[int, ...]] = ()
    """Bottoms that ``force_backward`` does not reach."""
    mixes_records: ClassVar[bool] = False
    """A record's result depends on the other records, whatever the axis."""
    plain_options: ClassVar[tuple[str, ...]] = ()
    """Options that the plan's values hold as they are given, beside those of the bases."""

    def __init__(self, parameter: caffe_pb2.LayerParameter, phase: int) -> None:
        self.parameter = parameter
        self.phase = phase
        self.name: str = parameter.name

    @property
    def options(self) -> Any:
        """The type's own *_param message."""
        assert self.field is not None
        return getattr(self.parameter, self.field)

    def fail(self, message: str) -> NoReturn:
        raise LayerError(self.name, f"{self.type}: {message}")

    def choice(self, field: str) -> str:
        """Return an enum option as a short lowercase word: ``max``, ``across_channels``."""
        values = self.options.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
        word: str = values[getattr(self.options, field)].name
        return word.lower()

    def axis(self, axis: int, shape: Shape, what: str = "axis") -> int:
        """Return a canonical axis; negative counts from the end (Caffe's CanonicalAxisIndex)."""
        if not -len(shape) <= axis < len(shape):
            self.fail(f"{what} {axis} is out of range for the shape {shape_text(shape)}")
        return axis % len(shape)

    @property
    def freezes_by_default(self) -> bool:
        """Whether all blobs are statistics: without ``param { }`` they have ``lr_mult: 0``."""
        return self.statistics.start is None and self.statistics != slice(0)

    def force_backward(self, bottom: int) -> bool:
        """Return whether ``force_backward`` reaches this bottom (Caffe's AllowForceBackward)."""
        return not self.is_constant and bottom not in self.bottoms_without_gradient

    def mixes(self, bottom: Shape, axis: int) -> bool:
        """Return whether a record's result depends on others along this axis of a bottom."""
        return self.mixes_records

    def vectors(self, bottoms: Sequence[Shape]) -> tuple[Shape, ...]:
        """Axes of the bottoms that the weights read as one vector, each place by itself."""
        return ()

    def takes(self, bottom: int) -> str:
        """Return what a bottom holds: "numbers", "indices", or "marks" of where sequences go on."""
        return "indices" if bottom and self.other_bottoms != "numbers" else "numbers"

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        """Multiplications with an addition each, in the matrix products of a forward pass."""
        return 0

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        """Estimate a pass in multiplications, loops in Python included."""
        return self.products(plan, bottoms)

    def multiplies_narrow(self, plan: Plan) -> bool:
        """Return whether the layer multiplies in bfloat16 in a net with that precision."""
        return False

    accepts_int8: ClassVar[bool] = False
    """Whether bottoms may be rounded to eight bits though it computes in float32."""

    def multiplies_int8(self, plan: Plan) -> bool:
        """Return whether the layer can multiply numbers of eight bits in the test phase."""
        return False

    rounds_inputs: ClassVar[bool] = False
    """Whether it rounds what it multiplies itself in a net of eight bits, to bytes or bfloat16."""

    def passes_int8(self, plan: Plan) -> bool:
        """Return whether the tops hold numbers of the bottoms, as they are."""
        return False

    def ambiguous(self, bottoms: Sequence[Shape]) -> str:
        """Explain what forks mean by this text if it does not tell them apart, else ""."""
        return ""

    @property
    def draws(self) -> bool:
        """Whether a pass draws random numbers."""
        return False

    def data_set(self) -> Any:
        """Return the data set that a data layer reads, as Records (`sparknet.loaders`), or None."""
        return None

    def fixed(self, index: int) -> bool:
        """Return whether a blob never learns: its rate is 0, whatever ``param { }`` says (BN)."""
        return False

    def check_params(self, specs: Sequence[caffe_pb2.ParamSpec]) -> None:  # noqa: B027
        """Refuse ``param { }`` entries that this type cannot honour (BatchNorm)."""

    @abstractmethod
    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        """Check the options against the bottom shapes, and make the plan."""

    def plan(self, bottoms: Sequence[Shape]) -> Plan:
        """Run `infer` and check the sizes of its result; callers use this."""
        bottoms = tuple(tuple(shape) for shape in bottoms)
        plan = self.completed(self.infer(bottoms))
        for index, shape in enumerate(plan.tops):
            self._check_size(f"top {index}", shape)
        for index, param in enumerate(plan.params):
            self._check_size(f"parameter {index}", param.shape)
        for index, names in enumerate(zip(self.parameter.bottom, self.parameter.top, strict=False)):
            if names[0] == names[1] and plan.tops[index] != bottoms[index]:
                self.fail(
                    f"cannot work in place on '{names[0]}': it would turn the shape "
                    f"{shape_text(bottoms[index])} into {shape_text(plan.tops[index])}"
                )
        return plan

    def completed(self, plan: Plan) -> Plan:
        """Add the values of `plain_options`: enumerations by `choice`, lists as tuples."""
        done = self._plain_options.keys() <= plan.values.keys()
        return plan if done else replace(plan, values={**self._plain_options, **plan.values})

    @cached_property
    def _plain_options(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for kind in type(self).__mro__:
            names = vars(kind).get("plain_options", ())
            if names == EVERY:
                fields = self.options.DESCRIPTOR.fields
                names = [field.name for field in fields if field.message_type is None]
            for name in names:
                field = self.options.DESCRIPTOR.fields_by_name[name]
                value = getattr(self.options, name)
                word = self.choice(name) if field.enum_type is not None else value
                values[name] = tuple(value) if is_repeated(field) else word
        return values

    def _check_size(self, what: str, shape: Shape) -> None:
        """Caffe: blob.cpp, Reshape.  Sizes of zero are allowed."""
        if len(shape) > MAX_AXES:
            self.fail(f"{what} would have {len(shape)} axes; {MAX_AXES} is the most")
        if min(shape, default=0) < 0:
            self.fail(f"{what} would have a negative size: {shape_text(shape)}")
        if max(shape, default=0) > MAX_COUNT or count(shape) > MAX_COUNT:
            self.fail(f"{what} would have more than {MAX_COUNT} values: {shape_text(shape)}")


class BoxRows(Layer):
    """A layer type whose top has a row for each box; how many is known after the forward pass.

    Each row begins with the record's number."""

    has_gradient = False
    has_dynamic_tops = True


CLASSES: dict[str, type[Layer]] = {}
"""The layer types by Caffe's type name, as far as their modules are loaded."""


def layer(type_name: str, stock: bool = False) -> Callable[[type[L]], type[L]]:
    """Register a class as the layer type of this name; ``stock``: BVLC's Caffe has the type."""

    def register(kind: type[L]) -> type[L]:
        registered = CLASSES.setdefault(type_name, kind)
        if registered is not kind:
            raise ValueError(f"two classes for layer type '{type_name}': {registered}, {kind}")
        kind.type, kind.is_stock = type_name, stock
        return kind

    return register


def count(shape: Sequence[int]) -> int:
    """Return the number of values in a shape."""
    total = 1
    for size in shape:
        total *= size
    return total


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as messages show it: ``2 x 3 x 5``, or ``scalar``."""
    return " x ".join(map(str, shape)) if shape else "scalar"


def legacy_shape(layer: Layer, shape: Shape, what: str) -> tuple[int, int, int, int]:
    """Return a shape of at most four axes, filled up with ones (Caffe: blob.hpp, LegacyShape)."""
    if len(shape) > 4:
        layer.fail(f"{what} may have at most 4 axes; its shape is {shape_text(shape)}")
    num, channels, height, width = (*shape, 1, 1, 1, 1)[:4]
    return num, channels, height, width
