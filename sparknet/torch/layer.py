"""Blobs, parameters and layers of a net that torch computes."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NoReturn, TypeAlias

import torch
from torch import Tensor

from sparknet.errors import LayerError, SpecError
from sparknet.native import NDArray
from sparknet.torch.memory import Buffer, DevicePlace, Memory
from sparknet.torch.random import Draw, Random
from sparknet.torch.translations import TABLE

Shape = tuple[int, ...]
Check: TypeAlias = Callable[["TorchLayer", Tensor, Callable[[], str]], None]

SOURCES = {"Host", "Input"}
"""What programs fill; the first are layers that live in Python, between passes."""
VIEWS = {"Split", "Reshape", "Flatten", "RecordWeights"}
"""Their tops are their first bottom; of all but Split so are the gradients."""

_FLATS: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()
"""Parameters that engines hold, by where they lie: nets that share values share the copy on the
device too."""


class TorchBlob:
    """Values and gradient."""

    def __init__(self, name: str, place: DevicePlace) -> None:
        self.name = name
        self.shape: Shape = ()
        self.data, self.diff = Memory(place, 1), Memory(place, 1)
        self.wanted = False
        self.weights: TorchBlob | None = None

    def reshape(self, shape: Shape, keep: bool) -> None:
        size = 1
        for one in shape:
            size *= one
        self.shape = shape
        self.data.resize(size, keep)
        self.diff.resize(size, keep)

    def values(self) -> Tensor:
        return self.data.read(self.shape)

    def gradient(self) -> Tensor:
        return self.diff.read(self.shape)


class TorchParam:
    """A parameter under one of its shapes."""

    def __init__(self, data: NDArray, diff: NDArray, place: DevicePlace) -> None:
        self.data, self.diff = data, diff
        self.flat, self.flat_diff = flat_of(data, place), flat_of(diff, place)
        self.values, self.gradient = self.flat.part(data), self.flat_diff.part(diff)
        self.is_stale = False
        """Whether the gradient is to be overwritten by the next one, or by zeros."""

    def take(self, gradient: Tensor) -> None:
        """Add to the gradient."""
        if self.is_stale:
            self.gradient.copy_(gradient)
        else:
            self.gradient.add_(gradient)
        self.is_stale = False
        self.flat_diff.changed()

    def clear_stale(self) -> None:
        if self.is_stale:
            self.gradient.zero_()
            self.flat_diff.changed()
        self.is_stale = False

    def share(self, data: NDArray, place: DevicePlace) -> None:
        self.data, self.flat = data, flat_of(data, place)
        self.values = self.flat.part(data)


def flat_of(array: NDArray, place: DevicePlace) -> Buffer:
    """Return the buffer that an array is a part of, or one of its own."""
    flat = _FLATS.get(array.address)
    if flat is None:
        flat = next(
            (flat for flat in list(_FLATS.values()) if flat.begin <= array.address < flat.end), None
        )
    if flat is None:
        return hold(array, place)
    if flat.place != place:
        raise SpecError(
            f"a net on {place.device} cannot share the weights of a net on {flat.place.device}"
        )
    return flat


def hold(array: NDArray, place: DevicePlace) -> Buffer:
    """Keep a whole buffer on the device."""
    flat = Buffer(place, array)
    _FLATS[flat.begin] = flat
    return flat


class TorchLayer:
    """A layer in its place, as translations see it (`translations.table.Layer`)."""

    def __init__(
        self,
        number: int,
        type_name: str,
        name: str,
        *,
        train: bool,
        product: torch.dtype,
        seed: int,
        place: DevicePlace,
        check: Check,
    ) -> None:
        self.number, self.type, self.name = number, type_name, name
        self.numbers: tuple[int, ...] = (number,)
        """Those of the layers that it stands for."""
        self.train, self.product, self.place = train, product, place
        self._check = check
        self.bottoms: list[TorchBlob] = []
        self.tops: list[TorchBlob] = []
        self.params: list[TorchParam] = []
        self.options: Mapping[str, Any] = {}
        self.backward = False
        self.propagate: list[bool] = []
        self.learns: list[bool] = []
        self.loss_weights: list[float] = []
        self.state: dict[str, Any] = {}
        self.random = Random(seed, number)
        self.key: Tensor | None = None
        """Where the key of its random numbers lies in a pass that is recorded."""
        self.translation = TABLE.get(type_name)
        self.native: Any = None
        """The layer in the native engine, where torch does not compute it."""
        self.record: tuple[list[Tensor], list[Tensor], list[Tensor]] | None = None
        """Tops, bottoms and parameters of the last forward pass, with torch's own notes."""
        self.forward_ns = self.backward_ns = 0

    @property
    def top_shapes(self) -> list[Shape]:
        return [top.shape for top in self.tops]

    @property
    def record_weights(self) -> Tensor | None:
        weights = self.bottoms[0].weights
        return None if weights is None else weights.values()

    @property
    def factors(self) -> list[Tensor]:
        """The parameters, in the type of the products that they are factors of."""
        values = [param.values.data for param in self.params]
        if self.translation is None or not self.translation.multiplies:
            return values
        if self.options.get("normalize"):  # which changes them
            return values
        return [one.to(self.product) for one in values]

    def draw(self) -> Draw:
        draw = self.random.draw()
        return draw if self.key is None else Draw(self.key)

    def check(self, fine: Tensor, message: Callable[[], str]) -> None:
        self._check(self, fine, message)

    def refuse(self, message: str) -> NoReturn:
        raise LayerError(self.name, f"{self.type}: {message}")

    @property
    def is_view(self) -> bool:
        """Whether the tops are the first bottom (Caffe: ShareData)."""
        one = len(self.bottoms) == len(self.tops) == 1
        return self.type in VIEWS or (one and self.type in ("Concat", "Slice"))


TracedCheck: TypeAlias = tuple[TorchLayer, Tensor, Callable[[], str]]


class PassNumbers:
    """Numbers on their way from the device, which does not wait until they are read."""

    def __init__(self, numbers: Tensor, checks: list[TracedCheck]) -> None:
        self.checks = checks
        self._numbers = numbers
        self._come: torch.cuda.Event | None = None
        if numbers.is_cuda:
            here = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self._numbers = here.copy_(numbers, non_blocking=True)
            self._come = torch.cuda.Event()
            self._come.record(torch.cuda.current_stream(numbers.device))

    def numbers(self) -> list[float]:
        if self._come is not None:
            self._come.synchronize()
        return [float(one) for one in self._numbers.tolist()]


def joined_layers(layers: Sequence[TorchLayer]) -> dict[int, TorchLayer]:
    """Map the first of two layers to the one for both; nobody sees the blob between."""
    joined = {}
    for norm, scale in itertools.pairwise(layers):
        if _are_one(norm, scale):
            one = copy(norm)
            one.numbers = (norm.number, scale.number)
            one.tops = scale.tops
            one.params = [*norm.params, *scale.params]
            one.learns = [*norm.learns, *scale.learns]
            one.backward = norm.backward or scale.backward
            one.record = None
            joined[norm.number] = one
    return joined


def taken_apart(one: TorchLayer, norm: TorchLayer, scale: TorchLayer) -> None:
    """Give both layers notes of their own where their backward passes are not one."""
    assert one.record is not None
    assert norm.translation is not None
    assert scale.translation is not None
    (x,), (mean, variance, count, *factors) = one.record[1], one.record[2]
    statistics = [mean, variance, count]
    before = [values.clone() for values in statistics]
    with torch.enable_grad():
        between = norm.translation.compute(norm, [x], statistics)
        assert isinstance(between, Tensor)
        leaf = between.detach().requires_grad_(scale.propagate[0])
        scaled = scale.translation.compute(scale, [leaf], factors)
    assert isinstance(scaled, Tensor)
    for values, old in zip(statistics, before, strict=True):
        values.detach().copy_(old)
    norm.record = ([between], [x], statistics)
    scale.record = ([scaled], [leaf], factors)
    one.record = None


def _are_one(norm: TorchLayer, scale: TorchLayer) -> bool:
    if (norm.type, scale.type) != ("BatchNorm", "Scale") or len(norm.params) != 3:
        return False
    if any((*norm.loss_weights, *scale.loss_weights)) or len(scale.bottoms) != 1:
        return False
    options = scale.options
    return (
        norm.tops[0] is scale.bottoms[0] is scale.tops[0]
        and len(norm.tops) == 1
        and options["axis"] == 1
        and options["num_axes"] == 1
        and len(norm.bottoms[0].shape) > 1
    )
