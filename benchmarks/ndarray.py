"""Compares NDArray's kernels with numpy's best expressions and with copies of as many bytes.

The three take turns, several times; every figure is a median and its range:
    python -m benchmarks.ndarray
Bytes are those that the operation must read and write.  The copy is a memcpy of half as many, which
reads and writes as many in total.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sparknet.native import NDArray, threads

LARGE, SMALL = 61_000_000, 16_384
"""CaffeNet's parameters, and a layer that fits into the cache."""


class Kernel(NamedTuple):
    """An operation in both libraries, and the number of arrays it reads and writes."""

    name: str
    streams: int
    ours: Callable[[], object]
    numpys: Callable[[], object]


class Workspace:
    """Four arrays of one size, as numpy and as NDArray over the same memory."""

    def __init__(self, size: int) -> None:
        random = np.random.default_rng(0)
        self.floats = [random.standard_normal(size, np.float32) for _ in range(4)]
        self.arrays = [NDArray.view(floats) for floats in self.floats]
        self.size = size

    def kernels(self) -> list[Kernel]:
        """Every kernel on this memory; in-place ones neither grow nor vanish."""
        a, b, c, out = self.floats
        x, y, z, result = self.arrays
        half, tiny = np.float32(0.5), np.float32(1e-6)

        def mean() -> None:
            np.multiply(a, half, out=out)
            np.add(out, b * half, out=out)

        def mean4() -> None:
            np.add(a, b, out=out)
            np.add(out, c, out=out)
            np.multiply(out, np.float32(1 / 3), out=out)

        def axpy() -> None:
            np.add(a, b * tiny, out=a)

        def axpby() -> None:
            np.multiply(a, half, out=a)
            np.add(a, b * half, out=a)

        return [
            Kernel("add", 3, lambda: _into(result, x, y), lambda: np.add(a, b, out=out)),
            Kernel("add in place", 3, lambda: x.axpy(1e-6, y), axpy),
            Kernel("subtract in place", 3, lambda: z.subtract(y), lambda: np.subtract(c, b, out=c)),
            Kernel("scale in place", 2, lambda: x.scale(1.0001), lambda: np.multiply(a, 1, out=a)),
            Kernel("axpby", 3, lambda: x.axpby(0.5, y, 0.5), axpby),
            Kernel("copy", 2, lambda: result.copy_from(x), lambda: np.copyto(out, a)),
            Kernel("fill", 1, lambda: result.fill(1), lambda: out.fill(1)),
            Kernel("mean of 2", 3, lambda: NDArray.weighted_mean([x, y], [1, 1], out=result), mean),
            Kernel("mean of 3", 4, lambda: NDArray.weighted_mean([x, y, z], out=result), mean4),
            Kernel("sum", 1, x.sum, lambda: a.sum(dtype=np.float64)),
            Kernel("dot", 2, lambda: x.dot(y), lambda: np.dot(a, b)),
            Kernel("norm2", 1, x.norm2, lambda: np.sqrt(np.dot(a, a))),
            Kernel("distance1", 2, lambda: x.distance1(y), lambda: np.abs(a - b).sum()),
            Kernel("distance2", 2, lambda: x.distance2(y), lambda: np.linalg.norm(a - b)),
            Kernel("is_finite", 1, x.is_finite, lambda: np.isfinite(a).all()),
            Kernel("equals", 2, lambda: x.equals(y), lambda: np.array_equal(a, b)),
            Kernel("allclose", 2, lambda: x.allclose(y), lambda: np.allclose(a, b)),
        ]


def _into(out: NDArray, a: NDArray, b: NDArray) -> None:
    """out = a + b without new memory."""
    from sparknet.native.arithmetic import _add

    _add(out, a, b)


class Copier:
    """memcpy of half of some bytes, within memory that has been touched."""

    def __init__(self, nbytes: int) -> None:
        self.source, self.target = np.ones(nbytes // 2, np.uint8), np.ones(nbytes // 2, np.uint8)

    def __call__(self, nbytes: int) -> None:
        ctypes.memmove(self.target.ctypes.data, self.source.ctypes.data, nbytes // 2)


def measure(calls: list[Callable[[], object]], rounds: int, repeat: int) -> list[list[float]]:
    """Seconds per call, the calls taking turns; the first round warms up."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 1):
        for record, call in zip(times, calls, strict=True):
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            if turn:
                record.append((time.perf_counter() - start) / repeat)
    return times


def _cell(times: list[float], nbytes: int) -> str:
    speeds = [nbytes / seconds / 1e9 for seconds in times]
    return f"{statistics.median(speeds):6.1f} ({min(speeds):5.1f} .. {max(speeds):5.1f})"


def report(size: int, rounds: int, repeat: int, names: list[str]) -> None:
    """Prints a table for arrays of one size."""
    print(f"\n{size:,} floats, {threads()} threads; GB/s: median (range) of {rounds}")
    print(f"{'':<18} {'sparknet':^23} {'numpy':^23} {'memcpy':^23}  /numpy  /memcpy")
    copier = Copier(5 * 4 * size)
    for kernel in Workspace(size).kernels():
        if names and kernel.name not in names:
            continue
        nbytes = kernel.streams * 4 * size
        copy = _bound(copier, nbytes)
        times = measure([kernel.ours, kernel.numpys, copy], rounds, repeat)
        ours, numpys, plain = (statistics.median(record) for record in times)
        cells = " ".join(_cell(record, nbytes) for record in times)
        print(f"{kernel.name:<18} {cells}  {numpys / ours:6.2f}  {plain / ours:7.2f}", flush=True)


def _bound(copier: Copier, nbytes: int) -> Callable[[], None]:
    return lambda: copier(nbytes)


def main() -> None:
    """Measure both sizes, or the given one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", type=int, help="number of floats; both sizes if absent")
    parser.add_argument("kernels", nargs="*", help="names of kernels; all if absent")
    options = parser.parse_args()
    for size in [options.size] if options.size else [LARGE, SMALL]:
        repeat = max(1, 2_000_000 // size)
        report(size, options.rounds, repeat, options.kernels)


if __name__ == "__main__":
    main()
