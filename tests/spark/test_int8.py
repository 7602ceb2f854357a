"""A SparkModel of eight bits is saved in eight bits."""

import numpy as np

from sparknet import Net
from sparknet.proto import parse_net, read_model
from sparknet.spark import SparkModel
from tests.caffe.test_int8 import needs_int8
from tests.net.test_quantize import NET, images


@needs_int8
def test_a_model_of_eight_bits_is_saved_in_eight_bits(spark, tmp_path):
    data = images()
    net = Net(parse_net(NET), seed=1)
    net.quantize({"data": data})
    path, wide = tmp_path / "small.caffemodel", tmp_path / "wide.caffemodel"
    SparkModel(net).save(path)
    SparkModel(Net(parse_net(NET), seed=1)).save(wide)
    assert path.stat().st_size < 0.5 * wide.stat().st_size
    layer = next(one for one in read_model(path).net.layer if one.name == "next")
    assert len(layer.blobs[0].int8_step) == 16
    again = SparkModel(path, precision="int8")
    assert again.net.precision == "int8"
    want = net.forward({"data": data})["scores"]
    found = again.net.forward({"data": data})["scores"]
    np.testing.assert_allclose(found, want, atol=1e-3 * np.abs(want).max())
