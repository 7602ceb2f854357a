"""Inner products of few rows take the weights first; their values are those of any others."""

from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.layers.passing import backward, build, draw, same, set_params


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"),
    [(7, 13, 17), (8, 13, 17), (33, 1, 16), (64, 40, 1), (65, 13, 17), (24, 2049, 2051)],
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transpose", [False, True])
def test_any_number_of_rows(
    rows: int, inputs: int, outputs: int, bias: bool, transpose: bool
) -> None:
    x = draw(rows, inputs)
    net = build(
        'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { '
        f"num_output: {outputs} bias_term: {str(bias).lower()} "
        f"transpose: {str(transpose).lower()} }} }}",
        {"x": x},
    )
    matrix, shift = draw(outputs, inputs, seed=1), draw(outputs, seed=2)
    weights = matrix.T if transpose else matrix
    set_params(net, {"ip": [weights, shift] if bias else [weights]})
    net.forward()
    wide = matrix.astype(np.float64)
    close = {"rtol": 1e-4, "atol": 1e-5 * np.sqrt(inputs + outputs)}
    same(net.blobs["y"].data, x @ wide.T + (shift if bias else 0), **close)
    dy = backward(net)["y"].astype(np.float64)
    same(net.blobs["x"].diff, dy @ wide, **close)
    gradient = dy.T @ x
    same(net.params["ip"][0].diff, gradient.T if transpose else gradient, **close)
    if bias:
        same(net.params["ip"][1].diff, dy.sum(0), **close)
