"""Workers with different engines, and runs that go on with another engine."""

import numpy as np
import pytest

import sparknet
from sparknet.devices import check_devices, device_of_worker, uses_task_gpu
from sparknet.errors import SpecError
from sparknet.spark.cluster import executors, preflight, probe
from sparknet.training import DiLoCo

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" top: "label" input_param {
    shape { dim: 8 dim: 1 dim: 6 dim: 6 } shape { dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
    num_output: 4 kernel_size: 3 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "norm" }
layer { name: "pool" type: "Pooling" bottom: "norm" top: "pool" pooling_param {
    kernel_size: 2 stride: 2 } }
layer { name: "hidden" type: "InnerProduct" bottom: "pool" top: "hidden" inner_product_param {
    num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "hidden" top: "hidden" }
layer { name: "drop" type: "Dropout" bottom: "hidden" top: "hidden" }
layer { name: "ip" type: "InnerProduct" bottom: "hidden" top: "ip" inner_product_param {
    num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
RULES = {
    "SGD": "base_lr: 0.05 momentum: 0.9 weight_decay: 0.001",
    "Adam": "base_lr: 0.01 momentum: 0.9 momentum2: 0.99 delta: 1e-6",
}


@pytest.fixture
def records():
    rng = np.random.default_rng(3)
    data = rng.normal(size=(120, 1, 6, 6)).astype(np.float32)
    return data, (data.mean((1, 2, 3)) > 0.05).astype(np.float32)


def trained(folder, records, device, rule="SGD", **settings):
    """All weights in a row, and the events."""
    solver = folder / "solver.prototxt"
    solver.write_text(
        f'type: "{rule}" lr_policy: "fixed" random_seed: 5 {RULES[rule]} net_param {{ {NET} }}'
    )
    heard = []
    end = sparknet.train(solver, records, device=device, on_event=heard.append, **settings)
    blobs = [blob.data for layer in end.net.net.params.values() for blob in layer]
    return np.concatenate([np.ravel(blob) for blob in blobs]), heard


def computed(heard):
    return [
        (one["engine"], one["device"])
        for event in heard
        if event["event"] == "workers"
        for one in event["workers"]
    ]


@pytest.mark.parametrize("strategy", ["averaging", "allreduce", DiLoCo(steps=5)], ids=str)
@pytest.mark.parametrize(
    ("device", "told"),
    [
        ("native,cpu", [("native", "cpu"), ("torch", "cpu")]),
        ("apart, native", [("torch", "apart"), ("native", "cpu")]),
    ],
)
def test_workers_of_different_engines_train_together(tmp_path, records, strategy, device, told):
    how = {"strategy": strategy, "workers": 2, "steps": 20}
    alike, heard = trained(tmp_path, records, "native", **how)
    assert computed(heard) == [("native", "cpu")] * 2
    mixed, heard = trained(tmp_path, records, device, **how)
    assert computed(heard) == told
    np.testing.assert_allclose(mixed, alike, rtol=2e-4, atol=2e-5)
    again, _ = trained(tmp_path, records, device, **how)
    assert np.array_equal(mixed, again)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("before", "after"), [("native", "cpu"), ("cpu", "native"), ("native", "apart")]
)
def test_a_run_goes_on_with_another_engine(tmp_path, records, rule, before, after):
    whole, _ = trained(tmp_path, records, before, rule, steps=24)
    where = {"snapshots": str(tmp_path / "run"), "workers": 1, "snapshot_every": 1}
    half, _ = trained(tmp_path, records, before, rule, steps=12, **where)
    assert not np.allclose(half, whole, rtol=1e-2)
    done, heard = trained(tmp_path, records, after, rule, steps=24, resume=True, **where)
    [start] = [event for event in heard if event["event"] == "start"]
    assert start["iteration"] == 12
    assert [engine for engine, _ in computed(heard)] == ["native" if after == "native" else "torch"]
    np.testing.assert_allclose(done, whole, rtol=2e-4, atol=2e-5)


def test_the_device_of_a_worker(monkeypatch):
    for name in ("SPARKNET_ENGINE", "SPARKNET_DEVICE"):
        monkeypatch.delenv(name, raising=False)
    assert device_of_worker(None, 1, 3) is None
    assert [device_of_worker("cuda:0, cpu", rank, None) for rank in range(3)] == [
        "cuda:0",
        "cpu",
        "cuda:0",
    ]
    assert device_of_worker("cuda", 0, 2) == device_of_worker("auto", 0, 2) == "cuda:2"
    assert device_of_worker("cuda", 0, None) == "cuda"
    assert device_of_worker("cuda:1", 0, 2) == "cuda:1"
    monkeypatch.setattr("sparknet.devices._gpus", lambda: 2)
    assert [device_of_worker("auto", rank, None) for rank in range(3)] == [
        "cuda:0",
        "cuda:1",
        "cuda:0",
    ]
    monkeypatch.setattr("sparknet.devices._gpus", lambda: 0)
    assert device_of_worker("auto", 1, None) == "auto"
    assert uses_task_gpu("cpu, auto")
    assert not uses_task_gpu("cuda:0,cpu")
    monkeypatch.setenv("SPARKNET_ENGINE", "torch")
    monkeypatch.setenv("SPARKNET_DEVICE", "cuda")
    assert device_of_worker(None, 0, 1) == "cuda:1"


def test_a_device_of_a_list_that_is_not_there():
    check_devices("native, auto,cpu")
    with pytest.raises(SpecError, match="'gpu0'"):
        check_devices("native, gpu0")


def test_executors_may_have_other_builds_than_the_driver():
    finding = {**probe.machine(), "worker": 1, "host": "a", "unreached": [], "onednn": "none"}
    preflight._check_finding(finding, ("driver", 1), "clear")
    here = executors.driver()
    there = executors.Executors(**{**vars(here), "onednn": "none"})
    assert [stops for _, stops in executors.differences(there, here)] == [False]
