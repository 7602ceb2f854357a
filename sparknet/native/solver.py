"""SolverPass: a solver's pass over a net's flat buffers (native/include/sparknet/solver.h)."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.native.core import check, ffi, lib
from sparknet.native.ndarray import NDArray


class SolverPass:
    """The buffers of a net and of its solver, ready to be stepped over again and again.

    Parameter i ends before element ``ends[i]`` of each buffer, and has its own
    factors for the learning rate and for the weight decay.
    """

    def __init__(
        self,
        weights: NDArray,
        gradient: NDArray,
        history: Sequence[NDArray],
        ends: Sequence[int],
        rate_factors: Sequence[float],
        decay_factors: Sequence[float],
    ) -> None:
        self._buffers = (weights, gradient, *history)
        self._step = ffi.new("sn_step *")
        names = ("weights", "gradient", "history", "history2")
        for name, buffer in zip(names, self._buffers, strict=False):
            setattr(self._step, name, buffer._handle)
        self._lists = (
            ffi.new("int64_t[]", list(ends)),
            ffi.new("float[]", list(rate_factors)),
            ffi.new("float[]", list(decay_factors)),
        )
        self._step.count = len(ends)
        self._step.ends, self._step.rate_factors, self._step.decay_factors = self._lists

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
        """Make a step by ``sn_<rule>_step``; solver.h says what each number means.

        `factors` take the place of the factors for the rate.
        """
        step = self._step
        if factors is not None:
            self._lists[1][0 : len(factors)] = list(factors)
        step.rate, step.decay, step.l1, step.clip, step.share = rate, decay, l1, clip, share
        check(getattr(lib, f"sn_{rule}_step")(step, *settings))
