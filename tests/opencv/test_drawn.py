"""Drawn nets compute behind cv2.dnn's names what they compute as Caffe's."""

import numpy as np
import pytest

from benchmarks.opencv import drawn
from sparknet import caffe
from sparknet.opencv import dnn


@pytest.mark.parametrize("seed", range(12))
def test_a_net_of_layers_in_which_caffe_and_opencv_agree(seed, tmp_path):
    rng = np.random.default_rng(seed)
    names = drawn.write(drawn.prototxt(rng), rng, tmp_path)
    net = caffe.Net(*names, caffe.TEST)
    values = rng.uniform(-2, 2, net.blobs["data"].shape).astype(np.float32)
    net.blobs["data"].data[...] = values
    net.forward()
    ours = dnn.readNetFromCaffe(*names)
    ours.setInput(values)
    last = net.top_names[ours.getLayerNames()[-1]][0]
    expected = net.blobs[last].data
    assert ours.getLayerNames() == tuple(net._layer_names)[1:] or "split" in str(net._layer_names)
    np.testing.assert_allclose(
        ours.forward(), expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max())
    )
