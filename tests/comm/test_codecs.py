"""Codecs: what they keep, how long their bytes are, and that nothing is lost in the long run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparknet.comm.codecs import CODES
from sparknet.comm.collectives import Comm
from sparknet.errors import ArrayError
from sparknet.native import NDArray
from sparknet.native.codes import CHUNK, KEPT, SCALED, code_length, decode, encode
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


def floats_of(bits):
    return np.asarray(bits, np.uint32).view(np.float32)


def encoded_by_numpy(codec, wanted):
    """The code of numbers, and what it stands for: slow, and by the definition."""
    if codec == "fp16":
        halves = np.clip(wanted, -65504, 65504).astype(np.float16)
        return halves.view(np.uint8), halves.astype(np.float32)
    if codec == "sparse":
        return sparse_by_numpy(wanted)
    count, most = -(-wanted.size // SCALED), np.float32(MOST[codec])
    blocks = np.zeros((count, SCALED), np.float32)
    blocks.ravel()[: wanted.size] = wanted
    scales = np.abs(blocks).max(axis=1, keepdims=True) / most
    blocks[~np.isfinite(scales[:, 0])] = 0  # whatever the bytes are, times the scale it is NaN
    steps = np.where(scales > 0, scales, np.float32(1))
    # A scale below the normal numbers is rounded so coarsely that quotients pass the most.
    quotients = np.clip(blocks / np.where(np.isfinite(steps), steps, np.float32(1)), -most, most)
    if codec == "fp4":
        codes = np.searchsorted((E2M1[1:] + E2M1[:-1]) / 2, np.abs(quotients))
        numbers = np.where(quotients < 0, -E2M1[codes], E2M1[codes])
        codes += 8 * (quotients < 0)
    else:
        codes = numbers = np.rint(quotients).astype(np.int8)
    data = codes.astype(np.uint8)
    if codec != "int8":
        data = (data[:, ::2] & 15) | (data[:, 1::2] << 4)
    decoded = (numbers * scales).ravel()[: wanted.size]
    return np.concatenate([scales.view(np.uint8).ravel(), data.ravel()]), decoded


MOST = {"int8": 127, "int4": 7, "fp4": 6}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def sparse_by_numpy(wanted):
    codes, decoded = [np.zeros(0, np.uint8)], np.zeros_like(wanted)
    for begin in range(0, wanted.size, CHUNK):
        chunk = wanted[begin : begin + CHUNK]
        if not np.isfinite(chunk).all():
            decoded[begin : begin + CHUNK] = np.nan
            codes.append(np.full(2, np.nan, np.float32).view(np.uint8))
            codes.append(np.zeros(112, np.uint8))
            continue
        sizes = np.abs(chunk)
        places = np.sort(np.argsort(-sizes, kind="stable")[:KEPT])
        kept = sizes[places].astype(np.float64)
        is_high = kept > kept.mean()
        means = [kept[part].mean() if part.any() else 0 for part in (~is_high, is_high)]
        magnitudes = np.array(means, np.float32)
        is_negative = chunk[places] < 0
        decoded[begin + places] = magnitudes[is_high.astype(int)] * np.where(is_negative, -1, 1)
        padded = np.pad(places, (0, KEPT - len(places)), constant_values=CHUNK - 1)
        numbers = np.pad(is_high + 2 * is_negative, (0, KEPT - len(places)))
        bits = (padded[:, None] >> np.arange(12) & 1, numbers[:, None] >> np.arange(2) & 1)
        codes.append(magnitudes.view(np.uint8))
        codes += [np.packbits(part.ravel(), bitorder="little") for part in bits]
    return np.concatenate(codes), decoded


def lost_by_numpy(wanted, decoded):
    lost = wanted - decoded
    return lost if np.isfinite(lost).all() else np.zeros_like(lost)


def there_and_back(codec, values):
    data = encode(CODES[codec], NDArray(values), NDArray.zeros(values.shape))
    back = NDArray.empty(values.shape)
    decode(CODES[codec], data, back)
    return np.asarray(back)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("codec", CODES)
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
    blocks = CHUNK if codec == "sparse" else SCALED
    scales = 2 * size if codec == "fp16" else -(-size // blocks) * (8 if codec == "sparse" else 4)
    kind = np.float16 if codec == "fp16" else np.float32
    actual = np.frombuffer(code, np.uint8)
    same_bits(actual[:scales].view(kind), expected[:scales].view(kind))
    np.testing.assert_array_equal(actual[scales:], expected[scales:])


@given(st.integers(0, 3 * CHUNK), st.sampled_from([0.0, 1.0, 8.0]), st.integers(0, 99))
def test_of_each_chunk_the_largest_come_back(size, levels, seed):
    """Of few levels many magnitudes are equal: the first ones are kept."""
    values = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    if levels:
        values = np.round(levels * values) / np.float32(levels)
    expected, decoded = sparse_by_numpy(values)
    errors, back = NDArray.zeros((size,)), NDArray.empty((size,))
    code = encode(CODES["sparse"], NDArray(values), errors)
    decode(CODES["sparse"], code, back)
    np.testing.assert_array_equal(np.frombuffer(code, np.uint8), expected)
    same_bits(np.asarray(back), decoded)
    np.testing.assert_array_equal(np.asarray(errors), values - decoded)


def test_any_bytes_are_decoded_within_the_array():
    """A code comes from another machine."""
    bytes_ = np.random.default_rng(0).integers(0, 256, 120 * 50, np.uint8)
    bytes_.reshape(50, 120)[:, :8] = np.array([1, 2], np.float32).view(np.uint8)
    for size in (49 * CHUNK + 1, 50 * CHUNK):
        back = NDArray.empty((size,))
        decode(CODES["sparse"], bytes_.data, back)
        assert set(np.unique(np.asarray(back))) <= {-2, -1, 0, 1, 2}


def same_bits(found, expected):
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
    assert [code_length(CODES["int4"], size) for size in (0, 1, 256, 257)] == [0, 132, 132, 264]
    assert [code_length(CODES["sparse"], size) for size in (0, 1, 4096, 4097)] == [0, 120, 120, 240]


def test_a_code_of_another_length_is_refused():
    with pytest.raises(ArrayError, match="the code of 3 numbers has 6 bytes, not 4"):
        decode(CODES["fp16"], memoryview(bytes(4)), NDArray.empty((3,)))


@pytest.mark.parametrize("codec", CODES)
def test_what_is_rounded_off_comes_later(codec):
    """The sum of many means is nearer to the truth than as many roundings would leave it."""
    rounds, size = 50, 600

    def work(comm):
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


@pytest.mark.parametrize("codec", CODES)
def test_a_nan_is_seen_by_all_and_does_not_come_back(codec):
    def work(comm: Comm) -> tuple[bool, bool]:
        buffer = NDArray.full((10,), float("nan") if comm.rank else 1.0)
        comm.mean(buffer, codec=codec)
        again = NDArray.full((10,), 1.0)
        comm.mean(again, codec=codec)
        return buffer.is_finite(), again.is_finite()

    with group("local", 2) as comms:
        assert together(comms, work) == [(False, True)] * 2
