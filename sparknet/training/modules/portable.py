"""PortableModule: a module with its loss and optimizer as bytes, without its weights.

The bytes are code of the user's own.  They travel as Spark's own functions do, inside what starts
a worker, and never through the workers' lines (docs/decisions/0022).
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any, Literal

from sparknet.errors import SettingError, extra
from sparknet.training.modules.naming import travelling


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
        """The parts; what of the module lies in the flat weights has no values yet."""
        with extra("torch", "torch", "a module of PyTorch"):
            import torch  # noqa: F401
        with extra("cloudpickle", "torch", "a module of PyTorch"):
            import cloudpickle  # noqa: F401
        parts: ModuleParts = _Unpickler(io.BytesIO(self.data)).load()
        return parts


def packed(parts: ModuleParts) -> bytes:
    """The parts without the values that lie in the flat weights."""
    with extra("cloudpickle", "torch", "a module of PyTorch"):
        import cloudpickle
    import torch

    known = {id(one): one for one in travelling(parts.module).values()}

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> Any:
            if id(value) not in known:
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
        """A tensor without values, the same one wherever it stood."""
        import torch

        key, is_parameter, shape, dtype, grads = told
        if key not in self._made:
            made = torch.zeros(shape, dtype=getattr(torch, dtype))
            self._made[key] = torch.nn.Parameter(made, grads) if is_parameter else made
        return self._made[key]
