"""Arithmetic and reductions against numpy, for any layout of the operands."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.errors import ArrayError
from sparknet.native import NDArray, set_threads, threads
from tests.native.arrays import DTYPES, float_arrays, layouts, shapes, twin

MANY = 300_001
"""Enough for several threads, and no multiple of any block."""

PAIRS = [
    (lambda a, b: a.add(b), lambda a, b: a + b),
    (lambda a, b: a.subtract(b), lambda a, b: a - b),
    (lambda a, b: a.multiply(b), lambda a, b: a * b),
    (lambda a, b: a.scale(0.5), lambda a, b: np.float32(0.5) * a),
    (lambda a, b: a.axpy(2, b), lambda a, b: a + np.float32(2) * b),
    (lambda a, b: a.axpby(2, b, -1), lambda a, b: np.float32(2) * b - a),
    (lambda a, b: a.axpby(2, b, 0), lambda a, b: np.float32(2) * b),
    (lambda a, b: a.add(1.5), lambda a, b: a + np.float32(1.5)),
    (lambda a, b: a.subtract(1.5), lambda a, b: a - np.float32(1.5)),
    (lambda a, b: a.copy_from(b), lambda a, b: b),
    (lambda a, b: a.fill(7), lambda a, b: np.full_like(a, 7)),
    (lambda a, b: NDArray.weighted_mean([a, b], [1, 3], out=a), lambda a, b: (a + 3 * b) / 4),
]

REDUCTIONS = [
    (lambda a, b: a.sum(), lambda a, b: a.sum()),
    (lambda a, b: a.dot(b), lambda a, b: (a * b).sum()),
    (lambda a, b: a.norm2(), lambda a, b: np.sqrt((a * a).sum())),
    (lambda a, b: a.distance1(b), lambda a, b: abs(a - b).sum()),
    (lambda a, b: a.distance2(b), lambda a, b: np.sqrt(((a - b) ** 2).sum())),
]


@pytest.mark.parametrize(("ours", "numpys"), PAIRS)
@given(data=st.data())
def test_in_place_operations(ours, numpys, data):
    shape = data.draw(shapes)
    a, b = data.draw(float_arrays(shape)), data.draw(float_arrays(shape))
    want = numpys(a.copy(), b.copy())
    target = twin(a)
    assert ours(target, twin(b)) is target
    np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize(("ours", "numpys"), PAIRS)
@given(data=st.data())
def test_overlapping_operands_act_as_if_copied(ours, numpys, data):
    row = data.draw(float_arrays((12,)))
    cuts = st.sampled_from([slice(0, 8), slice(3, 11), slice(10, 2, -1), slice(4, 12)])
    first, second = data.draw(cuts), data.draw(cuts)
    a, b, want = row[first], row[second], row.copy()
    want[first] = numpys(a.copy(), b.copy())
    ours(twin(a), twin(b))
    np.testing.assert_array_equal(row, want)


@pytest.mark.parametrize(("ours", "numpys"), REDUCTIONS)
@given(data=st.data())
def test_reductions(ours, numpys, data):
    shape = data.draw(shapes)
    a, b = data.draw(float_arrays(shape)), data.draw(float_arrays(shape))
    want = numpys(a.astype(np.float64), b.astype(np.float64))
    assert ours(twin(a), twin(b)) == pytest.approx(want, rel=1e-14)


@given(float_arrays())
def test_extremes(a):
    if a.size:
        assert (twin(a).min(), twin(a).max()) == (a.min(), a.max())
    else:
        with pytest.raises(ArrayError, match="empty"):
            twin(a).min()


@given(data=st.data())
def test_operators_make_new_arrays(data):
    shape = data.draw(shapes)
    a, b = data.draw(float_arrays(shape)), data.draw(float_arrays(shape))
    x, y = twin(a), twin(b)
    results = {x + y: a + b, x - y: a - b, x * y: a * b, 2 * x: 2 * a, 1 - x: 1 - a, -x: -a}
    for got, want in results.items():
        np.testing.assert_array_equal(got.numpy(), want)
    x += y
    np.testing.assert_array_equal(a, x.numpy())


@given(st.data(), st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_conversion_saturates(data, source, target):
    shape = data.draw(shapes)
    a = data.draw(layouts(shape, source))
    if np.dtype(source).kind == "f":
        finite = st.floats(width=32)
    else:
        limits = np.iinfo(source)
        finite = st.integers(int(limits.min), int(limits.max))
    flat = data.draw(st.lists(finite, min_size=a.size, max_size=a.size))
    a[...] = np.array(flat, source).reshape(shape)
    want = a.astype(np.float64)
    if np.dtype(target).kind != "f":
        limits = np.iinfo(target)
        want = np.trunc(np.clip(np.nan_to_num(want, nan=0, posinf=1e300, neginf=-1e300),
                                limits.min, limits.max))  # fmt: skip
    np.testing.assert_array_equal(twin(a).astype(target).numpy(), want.astype(target))


def test_tolerances():
    a = NDArray([1.0, 2.0, math.inf])
    assert a.equals([1.0, 2.0, math.inf])
    assert not a.equals([1.0, 2.0])
    assert not a.equals([1.0, 2.25, math.inf], tolerance=0.125)
    assert a.equals([1.0, 2.25, math.inf], tolerance=0.25)
    assert not a.allclose([1.0, 2.0, 3.0], rtol=math.inf)
    assert not a.allclose([1.0, 2.0, -math.inf], rtol=1)
    assert not NDArray([math.nan]).equals([math.nan], tolerance=math.inf)
    assert NDArray([300], dtype=np.int32).equals(np.array([300.0]))
    with pytest.raises(ArrayError, match="tolerance"):
        a.equals(a, tolerance=-1)


def test_not_a_number_is_seen():
    a = NDArray([1.0, math.nan, 3.0])
    assert all(math.isnan(x) for x in (a.min(), a.max(), a.sum()))
    assert not a.is_finite()
    assert NDArray([1.0, 3.4e38]).is_finite()


def test_results_do_not_depend_on_threads():
    numbers = np.random.default_rng(1).normal(size=(2, MANY)).astype(np.float32)
    a, b = NDArray.view(numbers[0]), NDArray.view(numbers[1])
    before, results = threads(), []
    try:
        for count in (1, 2, 3):
            set_threads(count)
            assert threads() == count
            mean = NDArray.weighted_mean([a, b, a], [1, 2, 3])
            results.append((a.sum(), a.norm2(), a.dot(b), a.distance1(b), mean.to_flat().tobytes()))
    finally:
        set_threads(before)
    assert results[0] == results[1] == results[2]
    assert results[0][0] == pytest.approx(numbers[0].astype(np.float64).sum(), rel=1e-9)


def test_large_arrays_in_every_path():
    size = 3_000_001
    a = np.arange(size, dtype=np.float32)
    out = NDArray.view(a) + NDArray.view(a)
    np.testing.assert_array_equal(out.numpy(), a + a)
    np.testing.assert_array_equal(NDArray.view(a[::-1]).copy().numpy(), a[::-1])
    np.testing.assert_array_equal(NDArray.view(a).astype(np.int8).numpy(), np.minimum(a, 127))
    square = a[:1_000_000].reshape(1000, 1000)
    np.testing.assert_array_equal(NDArray.view(square).T.copy().numpy(), square.T)
    np.testing.assert_array_equal(NDArray.full(size, 3).numpy(), np.full(size, 3))
    assert (NDArray.view(a) * 2 - a).equals(a)


def test_what_does_not_fit_is_refused():
    a = NDArray.zeros((2, 3))
    with pytest.raises(ArrayError, match="shapes 2 x 3 and 3 x 2 differ"):
        a.add(NDArray.zeros((3, 2)))
    with pytest.raises(ArrayError, match="not int32"):
        a.add(NDArray.zeros((2, 3), np.int32))
    with pytest.raises(ArrayError, match="not float64"):
        NDArray.zeros(3, np.float64).sum()
    with pytest.raises(ArrayError, match="add up"):
        NDArray.weighted_mean([a, a], [1, -1])
    with pytest.raises(ArrayError, match="3 weights"):
        NDArray.weighted_mean([a, a], [1, 2, 3])
    with pytest.raises(ArrayError, match="0 arrays"):
        NDArray.weighted_mean([])
    with pytest.raises(ArrayError):
        set_threads(0)
