"""The layer types that torch computes: each a function of layer, bottoms and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from sparknet.torch.random import Draw

Shape = tuple[int, ...]
Tensors = Sequence[Tensor]
Tops: TypeAlias = Tensor | tuple[Tensor, ...]


class Translatable(Protocol):
    """What a translation knows of its layer."""

    name: str
    train: bool
    options: Mapping[str, Any]
    """What the shape rule worked out (`sparknet.layers.Plan.values`)."""
    product: torch.dtype
    """What numbers are multiplied in by convolutions and matrix products."""
    state: dict[str, Any]
    """What stays from pass to pass."""

    @property
    def top_shapes(self) -> Sequence[Shape]: ...

    @property
    def record_weights(self) -> Tensor | None:
        """What each record of the first bottom counts for in a loss; None: 1 each."""

    def draw(self) -> Draw: ...

    def check(self, fine: Tensor, message: Callable[[], str]) -> None:
        """Refuse the pass unless ``fine``."""


Function = Callable[[Translatable, Tensors, Tensors], Tops]


@dataclass(frozen=True)
class Translation:
    compute: Function
    without_gradient: Callable[[int], Mapping[int, str]]
    """Of so many bottoms those that get no gradient, and what they are called."""
    writes_params: bool = False
    """The forward pass changes the parameters' values."""
    no_gradient: bool = False
    """The type has no backward pass at all."""
    narrow: bool = False
    """It takes bottoms of bfloat16, which others get as float32."""
    waits: bool = False
    """What comes next depends on values, so that the device has to be waited for."""
    multiplies: bool = False
    """Its parameters are factors of its products alone."""


TABLE: dict[str, Translation] = {}


def translates(
    *types: str,
    without_gradient: Mapping[int, str] | Callable[[int], Mapping[int, str]] | None = None,
    writes_params: bool = False,
    no_gradient: bool = False,
    narrow: bool = False,
    waits: bool = False,
    multiplies: bool = False,
) -> Callable[[Function], Function]:
    def exempt(bottoms: int) -> Mapping[int, str]:
        name = without_gradient
        return (name(bottoms) if callable(name) else name) or {}

    def register(function: Function) -> Function:
        for name in types:
            TABLE[name] = Translation(
                function, exempt, writes_params, no_gradient, narrow, waits, multiplies
            )
        return function

    return register


def wide(x: Tensor) -> torch.dtype:
    """Return what long sums are added up in: Apple's GPUs have no float64."""
    return torch.float32 if x.device.type == "mps" else torch.float64


def aligned(x: Tensor) -> Tensor:
    """Return memory that begins where libraries of GPUs read many numbers at once."""
    if x.is_cuda and not torch.compiler.is_compiling() and x.data_ptr() % 16:
        return x.clone(memory_format=torch.preserve_format)
    return x


def matrix_product(layer: Translatable, a: Tensor, b: Tensor) -> Tensor:
    """Multiply in the type of the layer's products."""
    return a.to(layer.product) @ aligned(b.to(layer.product))


def on_device(
    layer: Translatable, numbers: Any, x: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """Numbers of a layer's options beside x, and of its type, which are brought there once."""
    entry = layer.state.get("numbers")
    if entry is None or entry[0] is not numbers or entry[1].device != x.device:
        tensor = torch.as_tensor(numbers, dtype=dtype or x.dtype, device=x.device)
        entry = layer.state["numbers"] = (numbers, tensor)
    on_device_tensor: Tensor = entry[1].to(dtype or x.dtype)
    return on_device_tensor


def truncate(x: Tensor) -> Tensor:
    """Numbers without their fractions; ONNX, as TorchScript's exporter writes it, has no trunc."""
    return torch.where(x < 0, x.ceil(), x.floor()) if torch.jit.is_tracing() else x.trunc()


def applied(function: Any, *given: Any) -> Any:
    """Return an autograd function of tensors; for TorchScript its forward pass alone."""
    if torch.jit.is_tracing():
        return function.forward(_Unsaved(), *given)
    return function.apply(*given)


class _Unsaved:
    """What a forward pass saves for a backward pass that will not be."""

    def save_for_backward(self, *tensors: Tensor) -> None:
        pass
