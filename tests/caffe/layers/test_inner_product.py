"""InnerProduct and MatMul: few rows take the weights first, and their values are those of any."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import LayerError
from sparknet.native import set_threads, threads
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.passing import draw, same, set_params


def product(x, matrix, shift):
    net = build(
        'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { '
        f"num_output: {len(matrix)} bias_term: {str(shift is not None).lower()} }} }}",
        {"x": x},
    )
    set_params(net, {"ip": [matrix] if shift is None else [matrix, shift]})
    net.forward()
    return net.blobs["y"].data.copy()


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 7), st.integers(1, 150), st.integers(1, 40), st.booleans())
def test_few_rows_of_any_size(rows, inputs, outputs, bias):
    x, matrix = draw(rows, inputs), draw(outputs, inputs, seed=1)
    shift = draw(outputs, seed=2) if bias else None
    actual = product(x, matrix, shift)
    whole = x.astype(np.float64) @ matrix.T.astype(np.float64) + (shift if bias else 0)
    sizes = np.abs(x).astype(np.float64) @ np.abs(matrix.T) + 1
    assert (np.abs(actual - whole) <= 1e-6 * sizes).all()


@pytest.mark.parametrize(("inputs", "outputs"), [(2051, 1003), (64, 4096)])
def test_the_bits_of_few_rows_depend_on_neither_threads_nor_rows(inputs, outputs):
    x, matrix, shift = draw(7, inputs), draw(outputs, inputs, seed=1), draw(outputs, seed=2)
    before = threads()
    try:
        found = []
        for count in (1, 2, 5):
            set_threads(count)
            found.append(product(x, matrix, shift))
        for rows in range(1, 7):
            found.append(np.vstack([product(x[:rows], matrix, shift), found[0][rows:]]))
    finally:
        set_threads(before)
    for one in found:
        assert np.array_equal(one, found[0])


def layer(options: str = "") -> str:
    return (
        'layer { name: "l" type: "MatMul" bottom: "a" bottom: "b" top: "y" '
        f"matmul_param {{ {options} }} }}"
    )


@pytest.mark.parametrize("turned_a", [False, True])
@pytest.mark.parametrize("turned_b", [False, True])
@pytest.mark.parametrize(
    ("before_a", "before_b"), [((), ()), ((2, 3), (2, 3)), ((2, 1), (2, 3)), ((2, 3), (1, 1))]
)
def test_values_and_gradient(turned_a, turned_b, before_a, before_b):
    a = draw(*before_a, *((4, 2) if turned_a else (2, 4)))
    b = draw(*before_b, *((5, 4) if turned_b else (4, 5)), seed=1)
    text = layer(f"transpose_a: {str(turned_a).lower()} transpose_b: {str(turned_b).lower()}")
    net = run(text, {"a": a, "b": b})
    first = np.swapaxes(a, -1, -2) if turned_a else a
    second = np.swapaxes(b, -1, -2) if turned_b else b
    same(net.blobs["y"].data, np.matmul(first, second), 1e-5, 1e-5)
    check_gradients(text, {"a": a, "b": b})


def test_matrices_that_do_not_fit():
    with pytest.raises(LayerError, match="the matrices 2 x 3 and 4 x 5 do not fit each other"):
        build(layer(), {"a": draw(2, 3), "b": draw(4, 5)})
