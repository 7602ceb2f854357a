"""Names, and what happens to images, survive the way into ONNX and back."""

import warnings

import numpy as np

import sparknet
from sparknet import Net
from sparknet.loaders import Preprocessing
from sparknet.onnx import write_model
from sparknet.spark import SparkModel
from tests.onnx.graphs import onnx, read_model

NAMED = """
name: "named"
layer {
  name: "data" type: "Input" top: "data"
  input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } }
}
layer {
  name: "conv1/dw" type: "Convolution" bottom: "data" top: "conv1/dw"
  convolution_param {
    num_output: 3 group: 3 kernel_size: 3 bias_term: false weight_filler { type: "xavier" }
  }
}
layer { name: "conv1/dw/bn" type: "BatchNorm" bottom: "conv1/dw" top: "conv1/dw" }
layer {
  name: "conv1/dw/scale" type: "Scale" bottom: "conv1/dw" top: "conv1/dw"
  scale_param { bias_term: true }
}
layer {
  name: "fc/last" type: "InnerProduct" bottom: "conv1/dw" top: "fc/last"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } }
}
"""


def test_names_survive_and_weights_match_by_name(tmp_path):
    net, path = Net(NAMED, seed=1), tmp_path / "model.onnx"
    write_model(path, net)
    again = read_model(path)
    assert again.by_name().keys() == net.net.params.keys()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = Net(NAMED, path, seed=2)
    x = np.random.default_rng(0).normal(size=(5, 3, 8, 8))
    want = net.forward({"data": x})["fc/last"]
    np.testing.assert_allclose(other.forward({"data": x})["fc/last"], want, rtol=1e-5, atol=1e-6)
    shown = onnx.load(str(path))
    sizes = shown.graph.output[0].type.tensor_type.shape.dim
    assert [size.dim_param or size.dim_value for size in sizes] == ["batch", 4]
    assert (shown.producer_name, shown.producer_version) == ("sparknet", sparknet.__version__)


def test_what_happens_to_images_stands_in_the_file(tmp_path):
    path = tmp_path / "model.onnx"
    write_model(path, Net(NAMED, resize=8, mean=(1, 2, 3), scale=0.5, color="rgb"))
    found = Net(path).preprocessing
    assert found == Preprocessing(resize=(8, 8), mean=(1, 2, 3), scale=0.5, color="rgb")
    assert SparkModel(path).net.preprocessing == found
    assert Net(path, scale=2.0).preprocessing == Preprocessing(scale=2.0)
    picture = np.full((3, 8, 8), 7, np.uint8)
    whole = Net(NAMED, path, preprocessing=found).forward({"data": [picture]})["fc/last"]
    np.testing.assert_allclose(Net(path).forward({"data": [picture]})["fc/last"], whole, rtol=1e-5)
