"""What all layers share that read files batch by batch."""

import threading
from pathlib import Path

import h5py
import numpy as np

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.layers.host.nets import net, source


def _rows(folder: Path, count: int = 24, more: str = "") -> str:
    """An HDF5Data layer over the numbers from 0 on, four a batch."""
    with h5py.File(folder / "rows.h5", "w") as file:
        file["data"] = np.arange(count, dtype=np.float32).reshape(-1, 1)
        file["label"] = np.arange(count, dtype=np.float32)
    (folder / "list.txt").write_text(str(folder / "rows.h5"))
    values = f"source: '{folder / 'list.txt'}' batch_size: 4 {more}"
    return source("HDF5Data", hdf5_data_param=values)


def _next(made):
    made.forward()
    values: list[float] = made.blobs["label"].data.tolist()
    return values


def _threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "sparknet-data"}


def test_closing_ends_the_thread_and_a_later_pass_goes_on(tmp_path):
    made = net(_rows(tmp_path))
    before = _threads()
    assert _next(made) == [0, 1, 2, 3]
    (thread,) = _threads() - before
    made.close()
    assert not thread.is_alive()
    made.close()
    assert _next(made) == [4, 5, 6, 7]
    (thread,) = _threads() - before
    made.close()
    assert not thread.is_alive()


def test_batches_are_not_copied_unless_somebody_looks(tmp_path):
    """A view that was handed out shows every batch; the memory of others is the batch's own."""
    made = net(_rows(tmp_path))
    made.forward()
    view = made.blobs["data"].data
    for batch in (1, 2, 3):
        made.forward()
        np.testing.assert_array_equal(view.ravel(), np.arange(4) + 4 * batch)
        assert made.blobs["data"].data is view
    np.testing.assert_array_equal(made.blobs["label"].data, np.arange(4) + 12)


def test_what_a_layer_does_in_place_stays_out_of_later_batches(tmp_path):
    text = _rows(tmp_path) + (
        'layer { name: "twice" type: "Power" bottom: "label" top: "label" '
        "power_param { scale: 2 } }"
    )
    made = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=1)
    for number in range(18):
        made.forward()
        expected = 2 * (np.arange(4) + 4 * (number % 6))
        if number % 2:  # of the others nobody holds a view
            np.testing.assert_array_equal(np.array(made.blobs["label"].data), expected)


def test_another_seed_counts_from_the_next_batch_on(tmp_path):
    text = _rows(tmp_path, more="shuffle: true")
    one, other = net(text, seed=1), net(text, seed=2)
    first = [_next(one) for _ in range(3)]
    assert first != [_next(other) for _ in range(3)]
    other.random_state = one.random_state
    assert [_next(one) for _ in range(6)] == [_next(other) for _ in range(6)]


def test_a_solver_closes_its_nets(tmp_path):
    before = _threads()
    loss = (
        'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" '
        "inner_product_param { num_output: 1 } }"
        'layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "label" top: "loss" }'
    )
    settings = 'base_lr: 0.0001 lr_policy: "fixed" test_iter: 1 test_interval: 1'
    solver = caffe.solver_from_text(settings, parse_net(_rows(tmp_path) + loss))
    solver.step(2)
    threads = _threads() - before
    assert len(threads) == 2
    solver.close()
    assert not any(thread.is_alive() for thread in threads)
