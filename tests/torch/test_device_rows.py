"""Rows of bytes that are transformed on a device, against the native pass, bit for bit."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch

import sparknet
from sparknet.errors import SparkNetError
from sparknet.loaders import ArrayRecords, Batches, Order
from sparknet.native.transform import BatchItems, Transformation
from sparknet.net import Net
from sparknet.torch.device_rows import transformed
from sparknet.torch.memory import DevicePlace
from sparknet.training import Averaging

DRAWN = np.random.default_rng(0)
ROWS = DRAWN.integers(0, 256, (40, 3, 13, 11), dtype=np.uint8)
MEAN, SMALL = (DRAWN.uniform(0, 255, (3, *size)).astype(np.float32) for size in ((13, 11), (8, 7)))
HOW = {
    "nothing": {},
    "scale": {"scale": 0.00390625},
    "mean values": {"mean_values": (104.0, 116.669, 122.679), "scale": 1 / 57},
    "one mean": {"mean_values": (117.5,)},
    "std": {"mean_values": (1.0, 2.0, 3.0), "std": (0.229, 0.224, 0.225), "scale": 1 / 255},
    "mirror": {"mirror": True, "scale": 0.1},
    "mean": {"mean": MEAN, "scale": 0.3},
    "mirrored mean": {"mean": MEAN, "mirror": True},
    "middle": {"crop": (8, 7), "mean": MEAN},
    "crop": {"crop": (8, 7), "random_crop": True, "scale": 3.1},
    "all": {"crop": (8, 7), "random_crop": True, "mirror": True, "mean": MEAN, "scale": 0.7},
    "small mean": {"crop": (8, 7), "random_crop": True, "mirror": True, "mean": SMALL},
}


def native(how, rows, first):
    out = np.empty((len(rows), *how.shape(rows.shape[1:])), np.float32)
    items = BatchItems(len(rows))
    items.put_all(rows)
    how.apply(out, items, first)
    return out


@pytest.mark.parametrize("seed", [0, 7, -1, 2**40 + 5])
@pytest.mark.parametrize("name", HOW)
def test_the_bits_of_the_native_pass(name, seed):
    how = Transformation(seed=seed, **HOW[name])
    for first in (0, 123456789):
        found = transformed(torch.from_numpy(ROWS), how, first).numpy()
        wanted = native(how, ROWS, first)
        np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))


def test_some_items_are_mirrored_and_crops_lie_everywhere():
    """Else the test above would compare what never happens."""
    rows = np.broadcast_to(np.arange(ROWS[0].size, dtype=np.uint8).reshape(3, 13, 11), ROWS.shape)
    how = Transformation(crop=(8, 7), random_crop=True, mirror=True)
    corners = native(how, np.ascontiguousarray(rows), 0)[:, 0, 0, 0]
    assert len(np.unique(corners)) > 20


NET = """
name: "small"
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "none" batch_size: 8 }
  transform_param { crop_size: 8 mirror: true scale: 0.0078125 %s } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param {
  num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
LABELS = np.arange(40, dtype=np.float32) % 3


def solver(mean: str = "mean_value: 100 mean_value: 110 mean_value: 120") -> str:
    net = NET % mean
    return f'base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" random_seed: 3 net_param {{ {net} }}'


@pytest.fixture
def moved(monkeypatch):
    """What goes to the device: types and bytes."""
    seen: list[tuple[torch.dtype, int]] = []
    copy = DevicePlace.copy_of

    def watched(self, values):
        seen.append((values.dtype, values.numel() * values.element_size()))
        return copy(self, values)

    monkeypatch.setattr(DevicePlace, "copy_of", watched)
    return seen


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_records_travel_as_bytes(kind, moved):
    """A net's batches by hand, whose records are bytes or, as before, float32."""
    rows = ROWS.astype(kind)
    made = {}
    for device in ("native", "apart"):
        net = Net(solver(), device=device)
        net.set_training_data({"data": rows, "label": LABELS})
        batches = []
        for _ in range(7):
            net.compute_gradients()
            batches.append(np.array(net.net.blobs["data"].data))
        made[device] = np.stack(batches)
    np.testing.assert_array_equal(made["apart"].view(np.uint32), made["native"].view(np.uint32))
    bytes_moved = [size for dtype, size in moved if dtype == torch.uint8]
    assert bytes_moved == ([8 * ROWS[0].size] * 7 if kind is np.uint8 else [])


def test_a_training_that_goes_on(tmp_path):
    path = tmp_path / "solver.prototxt"
    path.write_text(solver())
    data = {"data": ROWS, "label": LABELS}
    found = {}
    for device in ("cpu", "apart"):
        how = {
            "device": device,
            "workers": 1,
            "strategy": Averaging(steps=3),
            "snapshots": tmp_path / device,
            "snapshot_every": 1,
        }
        sparknet.train(path, data, steps=6, **how)
        end = sparknet.train(path, data, validation=data, steps=12, resume=True, **how)
        found[device] = end.weights.flat.numpy().copy()
    np.testing.assert_allclose(found["apart"], found["cpu"], rtol=1e-5, atol=1e-7)


def test_batches_that_are_made_ahead(moved):
    """As workers make them: in a thread, which leaves bytes to the device."""
    records, made = ArrayRecords(data=ROWS, label=LABELS), {}
    for device in ("native", "apart"):
        net = Net(solver(), device=device)
        net.set_training_data(records)
        with Batches(records, 8, Order(40, 1), transforms=net.staged_transforms) as batches:
            put, found = net.feed(batches.columns), []
            for _ in range(12):
                assert put(batches.next(), 0) == 8
                found.append(np.array(net.net.blobs["data"].data))
        made[device] = np.stack(found)
    np.testing.assert_array_equal(made["apart"].view(np.uint32), made["native"].view(np.uint32))
    assert [size for dtype, size in moved if dtype == torch.uint8] == [8 * ROWS[0].size] * 12


def test_what_does_not_fit_is_said_as_before():
    said = []
    for device in ("native", "apart"):
        net = Net(solver(), device=device)
        net.set_training_data({"data": ROWS[:, :, :5], "label": LABELS})
        with pytest.raises(SparkNetError) as refused:
            net.compute_gradients()
        said.append(str(refused.value))
    assert said[0] == said[1]
