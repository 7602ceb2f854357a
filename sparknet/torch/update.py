"""DevicePass: a solver's update on the device, by native/include/sparknet/solver.h."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from sparknet.native import NDArray
from sparknet.native.solver import SolverPass
from sparknet.torch.layer import flat_of
from sparknet.torch.memory import DevicePlace

Rate: TypeAlias = Tensor | float
Rule: TypeAlias = Callable[[Tensor, Sequence[Tensor], Rate, Sequence[float]], Tensor]
"""From the gradient, the histories, which it changes, the rate and the rule's settings to what is
subtracted."""


class DevicePass(SolverPass):
    """A `SolverPass` where the newest values are: on the device, or on the host."""

    def __init__(
        self,
        place: DevicePlace,
        weights: NDArray,
        gradient: NDArray,
        history: Sequence[NDArray],
        ends: Sequence[int],
        rate_factors: Sequence[float],
        decay_factors: Sequence[float],
    ) -> None:
        super().__init__(weights, gradient, history, ends, rate_factors, decay_factors)
        arrays = (weights, gradient, *history)
        self._flats = [flat_of(array, place) for array in arrays]
        self._parts = [
            flat.part(array).view(-1) for flat, array in zip(self._flats, arrays, strict=True)
        ]
        self._sizes = torch.tensor(np.diff([0, *ends]), device=place.device)
        self._rates, self._decays = self._spread(rate_factors), self._spread(decay_factors)
        self._runs = [
            (factors, [[part[place] for place in places] for part in self._parts])
            for factors, places in _runs(ends, rate_factors, decay_factors).items()
        ]
        self._fuses = place.device.type == "cuda" and hasattr(torch, "_fused_sgd_")

    def _spread(self, factors: Sequence[float]) -> Rate:
        """Return a number for every value; one for all, where they are the same."""
        if len({float(one) for one in factors}) == 1:
            return float(factors[0])
        values = torch.tensor(factors, dtype=torch.float32, device=self._sizes.device)
        return values.repeat_interleave(self._sizes)

    def take(
        self,
        rule: str,
        settings: Sequence[float],
        rate: float,
        decay: float = 0.0,
        l1: bool = False,
        clip: float = 1.0,
        share: float = 1.0,
        factors: Sequence[float] | None = None,
    ) -> None:
        """Make a step; solver.h says what each number means."""
        if self._flats[0].is_on_host and self._flats[1].is_on_host:
            for flat in self._flats:
                flat.to_host()
            super().take(rule, settings, rate, decay, l1, clip, share, factors)
            return
        with _uninterrupted():
            for flat in self._flats:
                flat.to_device()
            weights, gradient, *history = self._parts
            descends = rule in ("sgd", "nesterov") and settings[0] > 0  # its kernel wants momentum
            if self._fuses and descends and not l1 and factors is None:
                self._descend(rule == "nesterov", settings[0], rate, decay, clip * share)
                for flat in self._flats:
                    flat.changed()
                return
            if clip != 1 or share != 1:
                gradient.mul_(_single(clip)).mul_(_single(share))
            rates = _times(self._rates if factors is None else self._spread(factors), rate)
            if decay != 0 and rule == "adamw":
                share = rates * _times(self._decays, decay)
                weights.sub_((_single(share) if isinstance(share, float) else share) * weights)
            elif decay != 0:
                term = weights.sign() if l1 else weights
                gradient.add_(_times(self._decays, decay) * term)
            step = _RULES[rule](gradient, history, rates, [_single(one) for one in settings])
            gradient.copy_(step)
            weights.sub_(step)
            for flat in self._flats:
                flat.changed()

    def _descend(
        self, nesterov: bool, momentum: float, rate: float, decay: float, share: float
    ) -> None:
        """Descend with momentum by PyTorch's kernel, whose 1 - dampening is the rate."""
        for (rate_factor, decay_factor), (weights, gradients, history) in self._runs:
            now = rate * rate_factor
            before = [one.clone() for one in history] if nesterov else []
            first = share * (now if nesterov else 1.0)
            if first != 1:
                torch._foreach_mul_(gradients, _single(first))
            torch._fused_sgd_(
                weights,
                gradients,
                history,
                weight_decay=decay * decay_factor * (now if nesterov else 1.0),
                momentum=momentum,
                lr=1.0,
                dampening=0.0 if nesterov else 1 - now,
                nesterov=nesterov,
                maximize=False,
                is_first_step=False,
            )
            torch._foreach_copy_(gradients, history)
            if nesterov:
                torch._foreach_mul_(gradients, 1 + momentum)
                torch._foreach_sub_(gradients, before, alpha=momentum)


def _runs(
    ends: Sequence[int], rates: Sequence[float], decays: Sequence[float]
) -> dict[tuple[float, float], list[slice]]:
    """Return where values lie whose rate and decay have the same factors."""
    runs: dict[tuple[float, float], list[slice]] = {}
    begin, before = 0, None
    for end, rate, decay in zip(ends, rates, decays, strict=True):
        places = runs.setdefault((float(rate), float(decay)), [])
        if end == begin:
            continue
        if before is places:
            places[-1] = slice(places[-1].start, end)
        else:
            places.append(slice(begin, end))
        begin, before = end, places
    return {factors: places for factors, places in runs.items() if places}


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C is raised afterwards, as it is after a native pass: nothing is left half updated."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    arrived: list[Any] = []
    signal.signal(signal.SIGINT, lambda *given: arrived.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if arrived:
        before(*arrived[0])


def norm_of(array: NDArray, place: DevicePlace) -> float:
    """Return the Euclidean norm of numbers, summed where the newest ones are."""
    flat = flat_of(array, place)
    if not place.apart or flat.is_on_host:
        return array.norm2()
    wide = torch.float32 if place.device.type == "mps" else torch.float64
    return float(torch.linalg.vector_norm(flat.part(array), dtype=wide))


def _single(value: float) -> float:
    """Return the number as float32 has it."""
    return float(np.float32(value))


def _times(factors: Rate, value: float) -> Rate:
    if isinstance(factors, Tensor):
        return factors * _single(value)
    return float(np.float32(factors) * np.float32(value))


def _rest(value: float) -> float:
    return float(np.float32(1) - np.float32(value))


def _mean(history: Tensor, momentum: float, values: Any) -> Tensor:
    """Update a running mean."""
    return history.mul_(momentum).add_(_rest(momentum) * values)


def _sgd(g: Tensor, h: Sequence[Tensor], rate: Rate, settings: Sequence[float]) -> Tensor:
    return h[0].mul_(settings[0]).add_(rate * g)


def _nesterov(g: Tensor, h: Sequence[Tensor], rate: Rate, settings: Sequence[float]) -> Tensor:
    momentum, before = settings[0], settings[0] * h[0]
    h[0].mul_(momentum).add_(rate * g)
    return float(np.float32(1) + np.float32(momentum)) * h[0] - before


def _adagrad(g: Tensor, h: Sequence[Tensor], rate: Rate, settings: Sequence[float]) -> Tensor:
    return rate * (g / (h[0].add_(g * g).sqrt() + settings[0]))


def _rmsprop(g: Tensor, h: Sequence[Tensor], rate: Rate, settings: Sequence[float]) -> Tensor:
    decay, delta = settings
    return rate * (g / (_mean(h[0], decay, g * g).sqrt() + delta))


def _adadelta(g: Tensor, h: Sequence[Tensor], rate: Rate, settings: Sequence[float]) -> Tensor:
    momentum, delta = settings
    _mean(h[0], momentum, g * g)
    change = g * ((h[1] + delta) / (h[0] + delta)).sqrt()
    _mean(h[1], momentum, change * change)
    return rate * change


def _adam(g: Tensor, h: Sequence[Tensor], rate: Rate, settings: Sequence[float]) -> Tensor:
    first, second, delta, correction = settings
    mean, squares = _mean(h[0], first, g), _mean(h[1], second, g * g)
    return _times(rate, correction) * (mean / (squares.sqrt() + delta))


_RULES: dict[str, Rule] = {
    "sgd": _sgd,
    "nesterov": _nesterov,
    "adagrad": _adagrad,
    "rmsprop": _rmsprop,
    "adadelta": _adadelta,
    "adam": _adam,
    "adamw": _adam,
}
