"""What computes a net: its blobs, parameters and layers, by number.

`sparknet.native.net.NativeNet` is one; `sparknet.torch.engine.TorchNet` another.  An engine decides
nothing: sparknet.graph works out shapes, options and gradients and passes them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sparknet.native.ndarray import NDArray
from sparknet.native.solver import SolverPass
from sparknet.native.staged_rows import DeviceRows

Shape = tuple[int, ...]


class NetEngine(Protocol):
    """The memory and the passes of one net."""

    @property
    def views_stay(self) -> bool:
        """Whether an array that was handed out shows what later passes compute.

        Where it does not, `blob_array` and `at_host` are asked each time that a program looks: they
        bring the newest values, and take what the program writes before the next pass."""

    @property
    def device_rows(self) -> DeviceRows | None:
        """What transforms rows of bytes where the net computes; None where the host does."""

    # -- building ------------------------------------------------------------------------

    def use_int8(self, layer: int, on: bool = True, bias: Sequence[float] = ()) -> None: ...

    def set_step(self, blob: int, step: float, is_signed: bool, may_be_int8: bool) -> None: ...

    def share_blobs(self) -> None:
        """Let blobs share memory once their last reader has run; this cannot be undone."""

    def want_blob(self, blob: int) -> None:
        """Keep a blob's values from the next pass on."""

    def add_blob(self, name: str, shape: Sequence[int]) -> int: ...

    def reshape_blob(self, blob: int, shape: Sequence[int]) -> None: ...

    def extend_blob(self, blob: int, shape: Sequence[int]) -> None:
        """Like `reshape_blob`, but the values stay in their places."""

    def hold(self, *arrays: NDArray) -> None:
        """Buffers that parameters will be parts of, or a solver's histories."""

    def add_param(self, data: NDArray, diff: NDArray) -> int:
        """Return a parameter over the storage of two arrays."""

    def share_param(self, param: int, data: NDArray) -> None:
        """Use an array for the parameter's values from now on; prepare the layers again."""

    def add_layer(
        self,
        type_name: str,
        name: str,
        bottoms: Sequence[int],
        tops: Sequence[int],
        params: Sequence[int],
    ) -> int: ...

    def set_options(self, layer: int, values: Mapping[str, Any]) -> None:
        """Hand over the resolved values of a layer's plan."""

    def set_gradients(
        self, layer: int, backward: bool, propagate: Sequence[bool], learns: Sequence[bool]
    ) -> None: ...

    def set_loss_weights(self, layer: int, weights: Sequence[float]) -> None: ...

    def prepare(self, first: int, last: int) -> None:
        """Make layers ready for the shapes and options that are set."""

    def fallbacks(self) -> dict[str, str]:
        """Layers that another engine computes, and their types."""

    # -- passes --------------------------------------------------------------------------

    def forward(self, first: int, last: int) -> float:
        """Run layers first to last; the weighted sum of their losses."""

    def backward(self, first: int, last: int, overwrite: bool = False) -> None:
        """Run layers first down to last; with ``overwrite`` parameter gradients start from zero."""

    def forward_backward(self, first: int, last: int) -> float:
        """Run layers first to last and back, with gradients that start from zero."""

    def seed(self, seed: int) -> None: ...

    def draws(self) -> list[int]:
        """Return how often each layer has drawn random numbers since the seed was set."""

    def set_draws(self, draws: Sequence[int]) -> None: ...

    # -- what it says --------------------------------------------------------------------

    def time(self, on: bool) -> None: ...

    def times(self) -> tuple[list[float], list[float]]:
        """Nanoseconds forward and backward, one number a layer."""

    def methods(self, layer: int) -> dict[str, str]:
        """Which loops compute a layer, and why, by what they compute."""

    def blob_shape(self, blob: int) -> Shape: ...

    def memory(self) -> dict[str, int]: ...

    def trim(self) -> None:
        """Give up memory that no blob holds now."""

    # -- what programs see ---------------------------------------------------------------

    def adopt(self, blob: int, values: NDArray) -> bool:
        """Use `values` as the blob's storage; where that cannot be, copy and return False."""

    def blob_array(self, blob: int, diff: bool = False) -> NDArray:
        """Return a blob's newest values, or its gradient; what is written there counts."""

    def at_host(self, array: NDArray) -> NDArray:
        """Return the array that parameters lie in, or a part of it, with newest values."""

    def clear(self, array: NDArray) -> None:
        """Parameters' gradients become zeros."""

    def norm(self, array: NDArray) -> float:
        """Return the Euclidean norm of parameters' values or gradients."""

    def solver_pass(
        self,
        weights: NDArray,
        gradient: NDArray,
        history: Sequence[NDArray],
        ends: Sequence[int],
        rate_factors: Sequence[float],
        decay_factors: Sequence[float],
    ) -> SolverPass:
        """Return what updates buffers that are held, or parts of them, as `SolverPass` does."""
