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
    np.testing.assert_allclose(
        ours.forward(), expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max())
    )


def test_opencv_4_computes_the_same_where_it_is_installed(tmp_path):
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip("this OpenCV has no Caffe importer")
    for seed in range(20, 27):
        rng = np.random.default_rng(seed)
        names = drawn.write(drawn.prototxt(rng), rng, tmp_path)
        theirs, ours = cv2.dnn.readNetFromCaffe(*names), dnn.readNetFromCaffe(*names)
        theirs.enableWinograd(False)
        values = rng.uniform(-2, 2, ours._network.inputs["data"]).astype(np.float32)
        for net in (theirs, ours):
            net.setInput(values)
        expected = theirs.forward()
        limit = 1e-5 * max(1, np.abs(expected).max())
        np.testing.assert_allclose(ours.forward(), expected, rtol=0, atol=limit)
