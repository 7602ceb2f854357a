"""FlatModule: a module whose parameters and buffers are views of one flat buffer of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.native import NDArray
from sparknet.training.modules.naming import check_parameters, travelling
from sparknet.weights import LayerBlobs, Layout, Span


class FlatModule:
    """Moves a module's values into one flat buffer: first what learns, then the rest.

    A tied parameter lies there once.  Values of another type than float32 are copied: `push` lets
    the module have them, `pull` takes them from the module.  Of a parameter that learns the flat
    buffer has the master copy, which `pull` leaves alone.
    """

    def __init__(self, module: Any, learns: bool = True) -> None:
        if learns:
            check_parameters(module)
        self.module = module
        named = travelling(module)
        learns_at = {id(one) for one in module.parameters() if one.requires_grad}
        ordered = sorted(named.items(), key=lambda one: id(one[1]) not in learns_at)
        places: dict[int, Span] = {}
        self._size = 0
        for _, tensor in ordered:
            if id(tensor) not in places:
                places[id(tensor)] = self._size, self._size + tensor.numel()
                self._size += tensor.numel()
        self.layout = Layout(
            tuple(
                LayerBlobs(name, (tuple(one.shape),), (places[id(one)][0],))
                for name, one in named.items()
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
        for one in {id(one): one for one in named.values()}.values():
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
    """A tensor over the same memory."""
    import torch

    return torch.from_numpy(np.asarray(array))
