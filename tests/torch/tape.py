"""A tape for tests: what CUDA graphs do, on the CPU.

It notes each operation with the very tensors that it had, and replays them into the very results,
so that whatever a pass takes from Python is what it was when the tape was made.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

WAITS = ("_local_scalar_dense", "nonzero", "equal", "is_nonzero", "masked_select")
"""Operations that wait for the device, or whose results have a size that depends on values."""


class CpuTape:
    """A `sparknet.torch.recorded.Tape`."""

    def __init__(self) -> None:
        self._notes = []

    def rehearse(self, work: Callable[[], Tensor | None]) -> Tensor | None:
        return work()

    def record(self, work: Callable[[], None]) -> None:
        with _Noting(self._notes) as noting:
            work()
        for memory, values in noting.before.values():
            _uncounted(memory).copy_(values)

    def replay(self) -> None:
        with torch.no_grad():
            for operation, given, named, made in self._notes:
                given, named = tree_map(_uncounted, (given, named))
                found = tree_leaves(operation(*given, **named))
                for place, values in zip(made, found, strict=True):
                    if _is(values) and values.data_ptr() != place.data_ptr():
                        _uncounted(place).copy_(values)


class _Noting(TorchDispatchMode):
    def __init__(self, notes):
        super().__init__()
        self._notes = notes
        self._made: set[int] = set()
        self.before: dict[int, tuple[Tensor, Tensor]] = {}
        """What there was before, of the memory that is written to in place."""

    def __torch_dispatch__(self, operation, types, given=(), named=None):
        name = operation.name()
        if any(word in name for word in WAITS):
            raise RuntimeError(f"{name} waits for the device")
        written = [
            value
            for argument, value in zip(operation._schema.arguments, given, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        for one in tree_leaves(written):
            at = one.untyped_storage().data_ptr()
            if at not in self._made and at not in self.before:
                whole = torch.empty(0, dtype=one.dtype).set_(one.untyped_storage())
                self.before[at] = (whole, whole.clone())
        found = operation(*given, **(named or {}))
        made = tree_leaves(found)
        views = {one.untyped_storage().data_ptr() for one in tree_leaves(given) if _is(one)}
        self._made |= {
            at for one in made if _is(one) and (at := one.untyped_storage().data_ptr()) not in views
        }
        self._notes.append((operation, given, named or {}, made))
        return found


def _uncounted(one):
    """The same memory; autograd does not notice what is written there, as it does not on a GPU."""
    return one.data if _is(one) else one


def _is(one):
    return isinstance(one, Tensor)
