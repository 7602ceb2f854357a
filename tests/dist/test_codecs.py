"""Codecs: what they keep, how long their bytes are, and that nothing is lost in the long run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparknet.dist.codecs import BLOCK, CODERS, Codec
from sparknet.dist.comm import Comm
from sparknet.native import NDArray
from tests.dist.groups import group, together

SIZES = st.integers(0, 3 * BLOCK)
FLOATS = st.floats(-60000, 60000, width=32)


def there_and_back(codec: Codec, values: Any) -> Any:
    coder = CODERS[codec]
    data = np.ascontiguousarray(coder.encode(values)).data
    assert data.nbytes == coder.length(values.size)
    return np.asarray(coder.decode(data, values.size))


@given(arrays(np.float32, SIZES, elements=FLOATS))
def test_halves_are_those_of_numpy(values: Any) -> None:
    expected = values.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(there_and_back("fp16", values), expected)


@given(arrays(np.float32, SIZES, elements=FLOATS))
def test_bytes_are_off_by_half_a_step_of_their_block(values: Any) -> None:
    gap = np.abs(there_and_back("int8", values) - values)
    for begin in range(0, values.size, BLOCK):
        step = np.abs(values[begin : begin + BLOCK]).max() / 127
        assert gap[begin : begin + BLOCK].max() <= 0.501 * step + 1e-38


def test_sizes_in_bytes() -> None:
    assert [CODERS["fp16"].length(size) for size in (0, 1, 257)] == [0, 2, 514]
    assert [CODERS["int8"].length(size) for size in (0, 1, 256, 257)] == [0, 260, 260, 520]


@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_what_is_rounded_off_comes_later(codec: Codec) -> None:
    """The sum of many means is nearer to the truth than as many roundings would leave it."""
    rounds, size = 50, 600

    def work(comm: Comm) -> Any:
        rng = np.random.default_rng(comm.rank)
        delta = rng.standard_normal(size).astype(np.float32)
        total = np.zeros(size)
        for _ in range(rounds):
            buffer = NDArray(delta)
            comm.mean(buffer, codec=codec)
            total += np.asarray(buffer)
        own, mean = (np.array(one) for one in comm.feedback(codec, size))
        return delta, total, own, mean

    with group("local", 3) as comms:
        found = together(comms, work)
    truth = rounds * np.mean([delta for delta, *_ in found], axis=0, dtype=np.float64)
    kept = np.mean([own for _, _, own, _ in found], axis=0, dtype=np.float64)
    kept += np.concatenate([mean for *_, mean in found])
    for _, total, _, _ in found:
        np.testing.assert_allclose(total + kept, truth, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_a_nan_is_seen_by_all_and_does_not_come_back(codec: Codec) -> None:
    def work(comm: Comm) -> tuple[bool, bool]:
        buffer = NDArray.full((10,), float("nan") if comm.rank else 1.0)
        comm.mean(buffer, codec=codec)
        again = NDArray.full((10,), 1.0)
        comm.mean(again, codec=codec)
        return buffer.is_finite(), again.is_finite()

    with group("local", 2) as comms:
        assert together(comms, work) == [(False, True)] * 2
