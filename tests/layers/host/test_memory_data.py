import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from tests.layers.host.nets import net, source

TEXT = source("MemoryData", memory_data_param="batch_size: 2 channels: 1 height: 2 width: 3")


def test_round_and_round():
    data = np.arange(36, dtype=np.float32).reshape(6, 1, 2, 3)
    made = net(TEXT)
    made.set_input_arrays(data, np.arange(6, dtype=np.float32))
    for batch in range(5):
        made.forward()
        part = slice(batch * 2 % 6, batch * 2 % 6 + 2)
        np.testing.assert_array_equal(made.blobs["data"].data, data[part])
        assert made.blobs["label"].data.ravel().tolist() == list(range(6))[part]
    assert made.blobs["label"].shape == (2, 1, 1, 1)
    data[:] = 7
    assert (made.forward(), made.blobs["data"].data.max())[1] == 7


def test_a_loss_learns_the_labels():
    made = net(
        TEXT
        + """layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
               inner_product_param { num_output: 3 } }
             layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" }""",
        caffe.TRAIN,
    )
    labels = np.array([0.0, 1.0], np.float32).reshape(2, 1, 1, 1)
    made.set_input_arrays(np.ones((2, 1, 2, 3), np.float32), labels)
    for _ in range(2):
        made.forward()
        made.clear_param_diffs()
        made.backward()
    got = made.params["ip"][1].diff
    np.testing.assert_allclose(got, [-1 / 6, -1 / 6, 1 / 3], rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "labels", "says"),
    [
        ((2, 1, 2, 4), 2, "data must be N x 1 x 2 x 3; it is 2 x 1 x 2 x 4"),
        ((2, 6), 2, "data must be"),
        ((2, 1, 2, 3), 4, "2 items need as many labels; they are 4"),
        ((3, 1, 2, 3), 3, "3 items are not a multiple of the batch size 2"),
        ((0, 1, 2, 3), 0, "0 items are not a multiple"),
    ],
)
def test_refused(shape, labels, says):
    made = net(TEXT)
    with pytest.raises(LayerError, match=f"layer 'src': MemoryData: {says}"):
        made.set_input_arrays(np.zeros(shape, np.float32), np.zeros(labels, np.float32))
    with pytest.raises(LayerError, match="data must be a float32 array; it is a list"):
        made.set_input_arrays([["a"]], [0])
    with pytest.raises(LayerError, match="has no data yet"):
        made.forward()


def test_arrays_of_other_numbers_are_refused():
    """Caffe: _caffe.cpp, CheckContiguousArray."""
    data, labels = np.zeros((2, 1, 2, 3), np.float32), np.zeros(2, np.float32)
    made = net(TEXT)
    with pytest.raises(LayerError, match="layer 'src': MemoryData: data must be float32; it is f"):
        made.set_input_arrays(data.astype(np.float64), labels)
    with pytest.raises(LayerError, match="labels must be float32; it is int64: use"):
        made.set_input_arrays(data, labels.astype(np.int64))
    made.set_input_arrays(data.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2), labels)
    made.forward()


def test_sizes_of_pictures():
    """DeepLab's third top."""
    text = TEXT.replace("top: 'label'", "top: 'label' top: 'data_dim'")
    made = net(text)
    data, labels = np.zeros((4, 1, 2, 3), np.float32), np.zeros(4, np.float32)
    made.set_input_arrays(data, labels)
    made.forward()
    assert made.blobs["data_dim"].shape == (2, 1, 1, 2)
    assert made.blobs["data_dim"].data.reshape(2, 2).tolist() == [[2, 3], [2, 3]]
    sizes = np.array([[1, 3], [2, 2], [1, 1], [2, 1]], np.float32)
    made.set_input_arrays(data, labels, sizes)
    for part in (sizes[:2], sizes[2:], sizes[:2]):
        made.forward()
        assert made.blobs["data_dim"].data.reshape(2, 2).tolist() == part.tolist()
    with pytest.raises(LayerError, match=r"4 items need as many sizes.*; they are 3 x 2"):
        made.set_input_arrays(data, labels, sizes[:3])
    with pytest.raises(LayerError, match="sizes need a third top"):
        net(TEXT).set_input_arrays(data, labels, sizes)


def test_sizes_for_a_dense_crf():
    """A CRF of a picture that fills a part of its canvas is that of the part alone."""
    rng = np.random.default_rng(0)
    shape = "memory_data_param { batch_size: 1 channels: 3 height: 6 width: 8 }"
    tops = "".join(f"top: '{name}' " for name in ("data", "label", "data_dim"))
    crf = "layer { name: 'crf' type: 'DenseCRF' bottom: 'data' bottom: 'data_dim' top: 'crf' }"
    made = net(f"layer {{ name: 'src' type: 'MemoryData' {tops} {shape} }} {crf}")
    data = rng.uniform(0, 1, (1, 3, 6, 8)).astype(np.float32)
    made.set_input_arrays(data, np.zeros(1, np.float32), np.array([[5, 4]], np.float32))
    made.forward()
    small = net(
        "layer { name: 'in' type: 'Input' top: 'data' top: 'data_dim' input_param { "
        "shape { dim: 1 dim: 3 dim: 5 dim: 4 } shape { dim: 1 dim: 2 } } } " + crf
    )
    out = small.forward(data=data[:, :, :5, :4], data_dim=[[5, 4]])["crf"]
    np.testing.assert_allclose(made.blobs["crf"].data[:, :, :5, :4], out, rtol=1e-5, atol=1e-6)
