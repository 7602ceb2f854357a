"""Codecs: what they keep, how long their bytes are, and that nothing is lost in the long run."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparknet.comm.codecs import CODES, Codec
from sparknet.comm.collectives import Comm
from sparknet.errors import ArrayError
from sparknet.native import NDArray
from sparknet.native.codes import SCALED, code_length, decode, encode
from tests.comm.groups import group, together

SIZES = st.integers(0, 3 * SCALED)
FLOATS = st.floats(-60000, 60000, width=32)
BITS = st.integers(0, 2**32 - 1)
EDGES = st.sampled_from(
    np.array(
        [0, -0.0, 1, 65504, 65520, 1e30, np.inf, -np.inf, np.nan, 6e-8, 6e-5, 1e-40, 1e-45],
        np.float32,
    )
    .view(np.uint32)
    .tolist()
)


def floats_of(bits: Any) -> Any:
    return np.asarray(bits, np.uint32).view(np.float32)


def encoded_by_numpy(codec: Codec, wanted: Any) -> tuple[Any, Any]:
    """The code of numbers, and what it stands for: slow, and by the definition."""
    if codec == "fp16":
        halves = np.clip(wanted, -65504, 65504).astype(np.float16)
        return halves.view(np.uint8), halves.astype(np.float32)
    count = -(-wanted.size // SCALED)
    blocks = np.zeros((count, SCALED), np.float32)
    blocks.ravel()[: wanted.size] = wanted
    scales = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    blocks[~np.isfinite(scales[:, 0])] = 0  # whatever the bytes are, times the scale it is NaN
    steps = np.where(scales > 0, scales, np.float32(1))
    # A scale below the normal numbers is rounded so coarsely that quotients pass 127.
    quotients = np.clip(blocks / np.where(np.isfinite(steps), steps, np.float32(1)), -127, 127)
    codes = np.rint(quotients).astype(np.int8)
    data = np.concatenate([scales.view(np.uint8).ravel(), codes.view(np.uint8).ravel()])
    return data, (codes * scales).ravel()[: wanted.size]


def lost_by_numpy(wanted: Any, decoded: Any) -> Any:
    lost = wanted - decoded
    return lost if np.isfinite(lost).all() else np.zeros_like(lost)


def there_and_back(codec: Codec, values: Any) -> Any:
    data = encode(CODES[codec], NDArray(values), NDArray.zeros(values.shape))
    back = NDArray.empty(values.shape)
    decode(CODES[codec], data, back)
    return np.asarray(back)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("codec", ["fp16", "int8"])
@given(data=st.data())
def test_codes_and_errors_have_the_bits_of_numpy(codec, data):
    """NaN is NaN, whatever its bits are: those of a scale are of no interest."""
    size = data.draw(SIZES)
    elements = data.draw(st.sampled_from([EDGES, BITS, st.just(0x3F801234)]))
    values = floats_of(data.draw(arrays(np.uint32, size, elements=elements, fill=BITS)))
    errors = data.draw(arrays(np.float32, size, elements=st.floats(-1, 1, width=32)))
    expected, decoded = encoded_by_numpy(codec, values + errors)
    ours, back = NDArray(errors), NDArray.empty((size,))
    code = encode(CODES[codec], NDArray(values), ours)
    decode(CODES[codec], code, back)
    same_bits(np.asarray(back), decoded)
    same_bits(np.asarray(ours), lost_by_numpy(values + errors, decoded))
    scales = 4 * -(-size // SCALED) if codec == "int8" else 2 * size
    kind = np.float32 if codec == "int8" else np.float16
    actual = np.frombuffer(code, np.uint8)
    same_bits(actual[:scales].view(kind), expected[:scales].view(kind))
    if codec == "int8":
        np.testing.assert_array_equal(actual[scales:], expected[scales:])


def same_bits(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def test_every_half_is_decoded_as_numpy_does():
    halves = np.arange(2**16, dtype=np.uint16)
    back = NDArray.empty((2**16,))
    decode(CODES["fp16"], halves.view(np.uint8).data, back)
    same_bits(np.asarray(back), halves.view(np.float16).astype(np.float32))


@given(arrays(np.float32, SIZES, elements=FLOATS))
def test_bytes_are_off_by_half_a_step_of_their_block(values):
    gap = np.abs(there_and_back("int8", values) - values)
    for begin in range(0, values.size, SCALED):
        step = np.abs(values[begin : begin + SCALED]).max() / 127
        assert gap[begin : begin + SCALED].max() <= 0.501 * step + 1e-38


def test_sizes_in_bytes():
    assert [code_length(CODES["fp16"], size) for size in (0, 1, 257)] == [0, 2, 514]
    assert [code_length(CODES["int8"], size) for size in (0, 1, 256, 257)] == [0, 260, 260, 520]


def test_a_code_of_another_length_is_refused():
    with pytest.raises(ArrayError, match="the code of 3 numbers has 6 bytes, not 4"):
        decode(CODES["fp16"], memoryview(bytes(4)), NDArray.empty((3,)))


@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_what_is_rounded_off_comes_later(codec):
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
        actual = together(comms, work)
    truth = rounds * np.mean([delta for delta, *_ in actual], axis=0, dtype=np.float64)
    kept = np.mean([own for _, _, own, _ in actual], axis=0, dtype=np.float64)
    kept += np.concatenate([mean for *_, mean in actual])
    for _, total, _, _ in actual:
        np.testing.assert_allclose(total + kept, truth, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_a_nan_is_seen_by_all_and_does_not_come_back(codec):
    def work(comm: Comm) -> tuple[bool, bool]:
        buffer = NDArray.full((10,), float("nan") if comm.rank else 1.0)
        comm.mean(buffer, codec=codec)
        again = NDArray.full((10,), 1.0)
        comm.mean(again, codec=codec)
        return buffer.is_finite(), again.is_finite()

    with group("local", 2) as comms:
        assert together(comms, work) == [(False, True)] * 2
