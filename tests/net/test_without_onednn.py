"""A build without oneDNN: what its native engine refuses, and what computes instead.

`make test-without-onednn` runs this; elsewhere the native engine has oneDNN.
"""

from importlib.util import find_spec

import numpy as np
import pytest

import sparknet
from sparknet import native
from sparknet.errors import LayerError

pytestmark = pytest.mark.skipif(native.onednn() != "none", reason="this build has oneDNN")

DATA = """
layer { name: "data" type: "Input" top: "data" input_param {
    shape { dim: 2 dim: 1 dim: 5 dim: 5 } } }
"""
CONVOLUTION = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
    num_output: 4 kernel_size: 3 weight_filler { type: "constant" value: 1 } } }
"""
PRODUCT = """
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param {
    num_output: 3 weight_filler { type: "constant" value: 1 } } }
"""
SOFTMAX = 'layer { name: "soft" type: "Softmax" bottom: "data" top: "soft" }'
ONES = {"data": np.ones((2, 1, 5, 5), np.float32)}


@pytest.mark.parametrize(
    ("layer", "said"),
    [(CONVOLUTION, "'conv': Convolution"), (SOFTMAX, "'soft': Softmax")],
)
def test_a_layer_that_needs_onednn_is_refused_with_the_cure(layer, said):
    with pytest.raises(LayerError, match=rf"{said}: needs oneDNN, .*'sparknet\[torch\]'"):
        sparknet.Net(DATA + layer, device="native").forward(ONES)


@pytest.mark.skipif(find_spec("torch") is None, reason="no PyTorch")
def test_pytorch_computes_by_itself():
    assert sparknet.Net(DATA + PRODUCT).forward(ONES)["ip"].tolist() == [[25.0] * 3] * 2
