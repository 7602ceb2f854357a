from __future__ import annotations

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan, shapes_of_params


def test_it_is_a_grouped_convolution() -> None:
    options = "convolution_param { num_output: 6 kernel_size: 3 pad: 1 group: 6 bias_term: false }"
    found = plan("DepthwiseConvolution", options, (1, 6, 5, 5))
    assert found.tops == ((1, 6, 5, 5),)
    assert shapes_of_params(found) == [(6, 1, 3, 3)]
    assert found.values["group"] == 6


def test_refused() -> None:
    options = "convolution_param { num_output: 6 kernel_size: 3 group: 4 }"
    with pytest.raises(LayerError, match="do not divide into 4 groups"):
        plan("DepthwiseConvolution", options, (1, 6, 5, 5))
