"""BatchNorm, LRN, MVN and Normalize against numpy and finite differences."""

import itertools

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    values,
)

NORMALIZE_OPTIONS = list(itertools.product(("false", "true"), repeat=2))


def normalize_text(whole: str, shared: str) -> str:
    rest = "scale_filler { type: 'uniform' min: 1 max: 3 }"
    options = f"across_spatial: {whole} channel_shared: {shared} {rest}"
    return layer_text("Normalize", f"norm_param {{ {options} }}")


@pytest.mark.parametrize(("whole", "shared"), NORMALIZE_OPTIONS)
@pytest.mark.parametrize("shape", [(2, 3, 2, 3), (2, 4), (2, 3, 4)])
def test_normalize_gradients(whole, shared, shape):
    check_gradients(normalize_text(whole, shared), {"x": np.sin(values(*shape)) + 0.2})


@pytest.mark.parametrize(("whole", "shared"), NORMALIZE_OPTIONS)
def test_values(whole, shared):
    x = values(2, 3, 4, 5)
    y, _, net = passes(normalize_text(whole, shared), {"x": x})
    norm = np.sqrt((x**2).sum((1, 2, 3) if whole == "true" else 1, keepdims=True) + 1e-10)
    factor = net.params["l"][0].data.reshape(-1, 1, 1)
    np.testing.assert_allclose(y, x / norm * factor, rtol=1e-5)
