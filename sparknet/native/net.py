"""NativeNet: a net in the engine (native/include/sparknet/net.h)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.errors import LayerError, SpecError
from sparknet.native.core import check, ffi, lib
from sparknet.native.ndarray import NDArray
from sparknet.native.solver import SolverPass
from sparknet.native.staged_rows import DeviceRows

Shape = tuple[int, ...]


def kernel_types() -> list[str]:
    """Return the layer types that the engine computes."""
    names: list[str] = []
    while (name := lib.sn_kernel_type(len(names))) != ffi.NULL:
        names.append(ffi.string(name).decode())
    return names


class NativeNet:
    """Blobs, parameters and layers, by number; a pass is one call that releases the GIL.

    It decides nothing: sparknet.graph works out shapes, options and gradients and
    passes them in.
    """

    def __init__(self, train: bool, seed: int, bf16: bool = False) -> None:
        out = ffi.new("sn_net **")
        check(lib.sn_net_create(out, train, seed))
        self._net = ffi.gc(out[0], lib.sn_net_free)
        self._loss = ffi.new("double *")
        self._names: list[str] = []
        self._options: dict[int, Mapping[str, Any]] = {}
        if bf16:
            check(lib.sn_net_use_bf16(self._net))

    def use_int8(self, layer: int, on: bool = True, bias: Sequence[float] = ()) -> None:
        """Let a layer multiply numbers of eight bits and add to its bias, or no longer."""
        check(lib.sn_net_use_int8(self._net, layer, on, ffi.new("float[]", list(bias)), len(bias)))

    def set_step(self, blob: int, step: float, is_signed: bool, may_be_int8: bool) -> None:
        """Set what a blob's values are rounded to; 0 if unknown."""
        check(lib.sn_net_set_step(self._net, blob, step, is_signed, may_be_int8))

    def share_blobs(self) -> None:
        """Let blobs share memory once their last reader has run; this cannot be undone."""
        check(lib.sn_net_share_blobs(self._net))

    def want_blob(self, blob: int) -> None:
        """Keep a blob's values from the next pass on."""
        check(lib.sn_net_want_blob(self._net, blob))

    views_stay = True
    device_rows: DeviceRows | None = None

    def hold(self, *arrays: NDArray) -> None:
        """Parameters lie where they are."""

    def at_host(self, array: NDArray) -> NDArray:
        """Return the same: nothing lies elsewhere."""
        return array

    def clear(self, array: NDArray) -> None:
        array.fill(0)

    def norm(self, array: NDArray) -> float:
        return array.norm2()

    def solver_pass(self, *buffers: Any) -> SolverPass:
        return SolverPass(*buffers)

    def fallbacks(self) -> dict[str, str]:
        """None: what it does not compute is no layer type, or lives in Python."""
        return {}

    def _check(self, status: int) -> None:
        if status == lib.SN_ERROR_LAYER:
            message = ffi.string(lib.sn_message()).decode(errors="replace")
            raise LayerError(self._names[lib.sn_net_failed_layer(self._net)], message)
        check(status)

    def add_blob(self, name: str, shape: Sequence[int]) -> int:
        out = ffi.new("int *")
        check(lib.sn_net_add_blob(out, self._net, name.encode()))
        self.reshape_blob(out[0], shape)
        return int(out[0])

    def reshape_blob(self, blob: int, shape: Sequence[int]) -> None:
        check(lib.sn_net_reshape_blob(self._net, blob, len(shape), list(shape)))

    def extend_blob(self, blob: int, shape: Sequence[int]) -> None:
        """Like `reshape_blob`, but the values stay in their places."""
        check(lib.sn_net_extend_blob(self._net, blob, len(shape), list(shape)))

    def add_param(self, data: NDArray, diff: NDArray) -> int:
        """Return a parameter over the storage of two arrays."""
        out = ffi.new("int *")
        check(lib.sn_net_add_param(out, self._net, data._handle, diff._handle))
        return int(out[0])

    def share_param(self, param: int, data: NDArray) -> None:
        """Use an array for the parameter's values from now on; prepare the layers again."""
        check(lib.sn_net_share_param(self._net, param, data._handle))

    def add_layer(
        self,
        type_name: str,
        name: str,
        bottoms: Sequence[int],
        tops: Sequence[int],
        params: Sequence[int],
    ) -> int:
        out = ffi.new("int *")
        lists = [part for ids in (bottoms, tops, params) for part in (len(ids), list(ids))]
        check(lib.sn_net_add_layer(out, self._net, type_name.encode(), name.encode(), *lists))
        self._names.append(name)
        return int(out[0])

    def set_options(self, layer: int, values: Mapping[str, Any]) -> None:
        """Hand over the resolved values of a plan: whole numbers, reals, words, tuples of them."""
        if self._options.pop(layer, None) != values:
            for key, value in values.items():
                self._set_option(layer, key, value)
        self._options[layer] = values

    def _set_option(self, layer: int, key: str, value: Any) -> None:
        if value is None:
            return
        if isinstance(value, str):
            check(lib.sn_layer_set_text(self._net, layer, key.encode(), value.encode()))
            return
        many = np.ravel(value).tolist()
        if any(isinstance(one, Mapping) for one in many):
            self._set_nested(layer, key, many)
        elif any(isinstance(one, float) for one in many):
            check(lib.sn_layer_set_reals(self._net, layer, key.encode(), len(many), many))
        else:
            check(lib.sn_layer_set_integers(self._net, layer, key.encode(), len(many), many))

    def _set_nested(self, layer: int, key: str, parts: Sequence[Mapping[str, Any]]) -> None:
        """``levels`` of n mappings becomes ``levels`` = n and ``levels.0.kernel`` …"""
        self._set_option(layer, key, len(parts))
        for number, part in enumerate(parts):
            for name, value in part.items():
                self._set_option(layer, f"{key}.{number}.{name}", value)

    def set_gradients(
        self, layer: int, backward: bool, propagate: Sequence[bool], learns: Sequence[bool]
    ) -> None:
        check(
            lib.sn_layer_set_gradients(self._net, layer, backward, bytes(propagate), bytes(learns))
        )

    def set_loss_weights(self, layer: int, weights: Sequence[float]) -> None:
        check(lib.sn_layer_set_loss_weights(self._net, layer, list(weights)))

    def prepare(self, first: int, last: int) -> None:
        self._check(lib.sn_net_prepare(self._net, first, last))

    def forward(self, first: int, last: int) -> float:
        status = lib.sn_net_forward(self._loss, self._net, first, last)
        if status != lib.SN_OK:
            self._check(status)
        return float(self._loss[0])

    def backward(self, first: int, last: int, overwrite: bool = False) -> None:
        """Run layers first down to last; with ``overwrite`` parameter gradients start from zero."""
        self._check(lib.sn_net_backward(self._net, first, last, overwrite))

    def forward_backward(self, first: int, last: int) -> float:
        loss = self.forward(first, last)
        self.backward(last, first, overwrite=True)
        return loss

    def seed(self, seed: int) -> None:
        check(lib.sn_net_seed(self._net, seed))

    def draws(self) -> list[int]:
        """Return how often each layer has drawn random numbers since the seed was set."""
        out = ffi.new("uint64_t[]", len(self._names))
        check(lib.sn_net_draws(out, self._net))
        return list(out)

    def set_draws(self, draws: Sequence[int]) -> None:
        """Continue with the random numbers that follow these draws."""
        if len(draws) != len(self._names):
            raise SpecError(f"{len(draws)} draws do not fit {len(self._names)} layers")
        check(lib.sn_net_set_draws(self._net, list(draws)))

    def time(self, on: bool) -> None:
        """Start every layer's clocks from 0, or stop them."""
        check(lib.sn_net_time(self._net, on))

    def times(self) -> tuple[list[float], list[float]]:
        """Nanoseconds forward and backward, one number a layer."""
        forward = ffi.new("double[]", len(self._names))
        backward = ffi.new("double[]", len(self._names))
        check(lib.sn_net_times(forward, backward, self._net))
        return list(forward), list(backward)

    def methods(self, layer: int) -> dict[str, str]:
        """Which loops compute a layer, and why, by what they compute; for those with a choice."""
        methods = {}
        for part, name in enumerate(("forward", "data", "weights")):
            out = ffi.new("char[]", 256)
            check(lib.sn_net_method(out, 256, self._net, layer, part))
            methods[name] = ffi.string(out).decode()
        return {name: text for name, text in methods.items() if text}

    def blob_shape(self, blob: int) -> Shape:
        ndim, shape = ffi.new("int *"), ffi.new("int64_t[32]")
        check(lib.sn_net_blob_shape(ndim, shape, self._net, blob))
        return tuple(shape[0 : ndim[0]])

    def memory(self) -> dict[str, int]:
        """Return bytes held now: blobs in ``rows``, in oneDNN's ``layouts``, and ``scratch``.

        ``pages`` is the most that all blobs and the values kept by layers had at one time.
        """
        out = ffi.new("sn_net_bytes *")
        check(lib.sn_net_memory(out, self._net))
        return {name: getattr(out, name) for name in ("rows", "layouts", "scratch", "pages")}

    def trim(self) -> None:
        """Give the system the memory that no blob holds now; the next pass takes it anew."""
        check(lib.sn_net_trim(self._net))

    def adopt(self, blob: int, values: NDArray) -> bool:
        """Use `values` as the blob's storage; if it has views, copy and return False."""
        adopted = ffi.new("int *")
        check(lib.sn_net_adopt(adopted, self._net, blob, values._handle))
        return bool(adopted[0])

    def blob_array(self, blob: int, diff: bool = False) -> NDArray:
        """Return a view of the newest values; every later pass writes its values there."""
        out = ffi.new("sn_array **")
        check(lib.sn_net_blob_array(out, self._net, blob, diff))
        return NDArray._new(out)
