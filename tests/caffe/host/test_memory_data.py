from __future__ import annotations

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from tests.caffe.host.nets import net, source

TEXT = source("MemoryData", memory_data_param="batch_size: 2 channels: 1 height: 2 width: 3")


def test_round_and_round() -> None:
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


def test_a_loss_learns_the_labels() -> None:
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
def test_refused(shape: tuple[int, ...], labels: int, says: str) -> None:
    made = net(TEXT)
    with pytest.raises(LayerError, match=f"layer 'src': MemoryData: {says}"):
        made.set_input_arrays(np.zeros(shape, np.float32), np.zeros(labels, np.float32))
    with pytest.raises(LayerError, match="data must be a float32 array; it is a list"):
        made.set_input_arrays([["a"]], [0])
    with pytest.raises(LayerError, match="has no data yet"):
        made.forward()


def test_arrays_of_other_numbers_are_refused() -> None:
    """Caffe: _caffe.cpp, CheckContiguousArray."""
    data, labels = np.zeros((2, 1, 2, 3), np.float32), np.zeros(2, np.float32)
    made = net(TEXT)
    with pytest.raises(LayerError, match="layer 'src': MemoryData: data must be float32; it is f"):
        made.set_input_arrays(data.astype(np.float64), labels)
    with pytest.raises(LayerError, match="labels must be float32; it is int64: use"):
        made.set_input_arrays(data, labels.astype(np.int64))
    made.set_input_arrays(data.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2), labels)
    made.forward()
