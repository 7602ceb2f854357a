"""FlatModule: a module over one flat buffer; PortableModule: as bytes without its weights."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sparknet.errors import SettingError, extra
from sparknet.native import NDArray
from sparknet.weights import LayerBlobs, Layout, Span


class FlatModule:
    """Moves a module's values into one flat buffer: first what learns, then the rest.

    A tied parameter lies there once.  Values of another type than float32 are copied: `push` lets
    the module have them, `pull` takes them from the module.  Of a parameter that learns the flat
    buffer has the master copy, which `pull` leaves alone."""

    def __init__(self, module: Any, learns: bool = True) -> None:
        if learns:
            check_parameters(module)
        self.module = module
        tensors = travelling(module)
        learns_at = {id(one) for one in module.parameters() if one.requires_grad}
        ordered = sorted(tensors.items(), key=lambda one: id(one[1]) not in learns_at)
        places: dict[int, Span] = {}
        self._size = 0
        for _, tensor in ordered:
            if id(tensor) not in places:
                places[id(tensor)] = self._size, self._size + tensor.numel()
                self._size += tensor.numel()
        self.layout = Layout(
            tuple(
                LayerBlobs(name, (tuple(one.shape),), (places[id(one)][0],))
                for name, one in tensors.items()
            )
        )
        self.parameters = {name: (places[id(one)], one) for name, one in module.named_parameters()}
        """Name → the place of a parameter, each one once."""
        learned = sum(one.numel() for one in module.parameters() if one.requires_grad)
        self.statistics = ((learned, self._size),) if learned < self._size else ()
        """The place of what no gradient changes: frozen parameters and buffers."""
        self.weights = NDArray.zeros((self._size,))
        self.tensor = tensor_of(self.weights)
        self._copied: list[tuple[Any, Any]] = []
        self._masters = {id(one) for one in module.parameters() if one.requires_grad and learns}
        self._buffers = [
            (part._buffers, name, one)
            for part in module.modules()
            for name, one in part._buffers.items()
            if id(one) in places
        ]
        for one in {id(one): one for one in tensors.values()}.values():
            begin, end = places[id(one)]
            self._move(one, self.tensor[begin:end].view(one.shape))

    def _move(self, one: Any, view: Any) -> None:
        import torch

        with torch.no_grad():
            view.copy_(one)
        if one.dtype == torch.float32:
            one.data = view
        else:
            self._copied.append((one, view))

    def push(self) -> None:
        """Let the module have the values that lie in the buffer."""
        for one, view in self._copied:
            one.detach().copy_(view if one.dtype.is_floating_point else view.round())

    def pull(self) -> None:
        """Bring the flat buffer up to date after the module has computed."""
        for buffers, name, one in self._buffers:
            if (now := buffers[name]) is not one:  # the module has put another one there
                one.copy_(now)
                buffers[name] = one
        for one, view in self._copied:
            if id(one) not in self._masters:
                view.copy_(one.detach())


def tensor_of(array: NDArray) -> Any:
    """Return a tensor over the same memory."""
    import torch

    return torch.from_numpy(np.asarray(array))


EXACT = 1 << 24
"""Whole numbers up to this one are exact in float32."""


def tensors_of(module: Any) -> dict[str, Any]:
    """Name → parameter or persistent buffer; one that is tied stands under each of its names."""
    tensors = dict(module.named_parameters(remove_duplicate=False))
    tensors |= buffers_of(module)
    return tensors


def buffers_of(module: Any) -> dict[str, Any]:
    """Name → buffer, of those that a state_dict has."""
    buffers = {}
    for prefix, part in module.named_modules(remove_duplicate=False):
        for name, value in part._buffers.items():
            if value is not None and name not in part._non_persistent_buffers_set:
                buffers[f"{prefix}.{name}" if prefix else name] = value
    return buffers


def travelling(module: Any) -> dict[str, Any]:
    """Return those that lie in the flat weights: parameters, and buffers whose values fit there."""
    parameters = {id(one) for one in module.parameters()}
    tensors = tensors_of(module)
    return {name: one for name, one in tensors.items() if id(one) in parameters or is_carried(one)}


def check_parameters(module: Any) -> None:
    """Raise SettingError for a module without parameters, or with some that cannot be averaged."""
    import torch

    kind = type(module).__name__
    parameters = dict(module.named_parameters())
    if not any(one.requires_grad for one in parameters.values()):
        least = "no parameters" if not parameters else "no parameter that requires a gradient"
        raise SettingError(f"module '{kind}' has {least}: there is nothing to train")
    types = {one.dtype for one in parameters.values()}
    for name, one in parameters.items():
        dtype = str(one.dtype)[6:]
        what = f"parameter '{name}' of module '{kind}' is {dtype}"
        if not one.dtype.is_floating_point:
            raise SettingError(f"{what}: parameters are numbers with a point, float32 mostly")
        if len(types) == 1 and one.dtype != torch.float32:
            narrow = "" if one.dtype.itemsize > 2 else ", precision='bf16' multiplies in bfloat16"
            raise SettingError(
                f"{what}, as all are, but records are float32: give module.float(){narrow}"
            )


def is_carried(buffer: Any) -> bool:
    """Return whether a buffer's values fit into float32, to be averaged like weights."""
    import torch

    if buffer.dtype == torch.bool or buffer.dtype.is_floating_point:
        return True
    if buffer.dtype.is_complex:
        return False
    return not buffer.numel() or int(buffer.abs().max()) < EXACT


@dataclass(frozen=True)
class ModuleParts:
    """What is trained, and how."""

    module: Any
    loss: Any
    optimizer: Any
    lr_schedule: Any


@dataclass(frozen=True)
class PortableModule:
    """Parts as bytes, and what of the settings a worker needs."""

    data: bytes
    inputs: dict[str, str]
    """The arguments of the module's forward → the records' columns."""
    targets: tuple[str, ...]
    batch_size: int
    buffers: Literal["average", "keep"]
    clip_gradients: float | None
    device: str
    accumulate: int = 1
    """The batches whose gradients are averaged for an update."""
    precision: str = "float32"
    weights: str | None = None
    """The column of the records' weights in the loss."""

    def unpacked(self) -> ModuleParts:
        """Return the parts; what of the module lies in the flat weights has no values yet."""
        with extra("torch", "torch", "a module of PyTorch"):
            import torch  # noqa: F401
        with extra("cloudpickle", "torch", "a module of PyTorch"):
            import cloudpickle  # noqa: F401
        parts: ModuleParts = _Unpickler(io.BytesIO(self.data)).load()
        return parts


def packed(parts: ModuleParts) -> bytes:
    """Return the parts without the values that lie in the flat weights."""
    with extra("cloudpickle", "torch", "a module of PyTorch"):
        import cloudpickle
    import torch

    names = {id(one): one for one in travelling(parts.module).values()}

    class Pickler(cloudpickle.Pickler):
        def persistent_id(self, value: Any) -> Any:
            if id(value) not in names:
                return None
            is_parameter = isinstance(value, torch.nn.Parameter)
            grads = bool(value.requires_grad)
            return id(value), is_parameter, tuple(value.shape), str(value.dtype)[6:], grads

    file = io.BytesIO()
    try:
        Pickler(file).dump(parts)
    except (pickle.PicklingError, TypeError, AttributeError, RuntimeError) as error:
        kind = type(parts.module).__name__
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise SettingError(f"module '{kind}' cannot be sent to workers: {why}") from error
    return file.getvalue()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._made: dict[int, Any] = {}

    def persistent_load(self, told: Any) -> Any:
        """Return a tensor without values, the same one wherever it stood."""
        import torch

        key, is_parameter, shape, dtype, grads = told
        if key not in self._made:
            tensor = torch.zeros(shape, dtype=getattr(torch, dtype))
            self._made[key] = torch.nn.Parameter(tensor, grads) if is_parameter else tensor
        return self._made[key]
