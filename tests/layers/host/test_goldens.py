"""What Caffe's sources gave, batch after batch."""

import gc
import os
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import sparknet.caffe as caffe
from tests.goldens import GOLDENS, agrees, cases

DATA = GOLDENS / "data"
Case = dict[str, Any]


@cases("data")
def test_batches_are_caffes(case, monkeypatch, tmp_path):
    monkeypatch.chdir(DATA)
    {"forward": _forward, "memory": _memory, "hdf5_output": _output}[case["kind"]](case, tmp_path)


def _net(case: Case) -> caffe.Net:
    return caffe.Net(f"{case['name']}.prototxt", getattr(caffe, case["phase"]))


def _forward(case: Case, folder: Path) -> None:
    net = _net(case)
    check = _crops if case["check"] == "random_crop" else _values
    check(case, net)


def _values(case: Case, net: caffe.Net) -> None:
    with np.load(f"{case['name']}.npz") as want:
        names = [key[4:] for key in want.files if key.startswith("out/")]
        got = {name: [] for name in names}
        for _ in range(case["batches"]):
            net.forward()
            for name in names:
                got[name].append(net.blobs[name].data.copy())
        assert names
        for name in names:
            assert agrees(np.array(got[name]), want[f"out/{name}"], 1e-5, 1e-6, 1e-7), name


def _crops(case: Case, net: caffe.Net) -> None:
    """Each image is one of the crops of its record, mirrored or not; both kinds turn up."""
    with np.load("sources.npz") as sources:
        stored, labels = sources["rgb/data"].astype(np.float32), sources["rgb/label"]
    (count, _, size, _), items = case["shapes"]["data"], len(stored)
    places, mirrors = set(), set()
    for batch in range(case["batches"]):
        net.forward()
        for i, image in enumerate(net.blobs["data"].data):
            item = (batch * count + i) % items
            assert net.blobs["label"].data[i] == labels[item]
            found = [
                (top, left, step)
                for top in range(stored.shape[2] - size + 1)
                for left in range(stored.shape[3] - size + 1)
                for step in (1, -1)
                if agrees(
                    image,
                    (stored[item, :, top : top + size, left : left + size][..., ::step] - 100)
                    * np.float32(0.1),
                    1e-5,
                    1e-6,
                    1e-7,
                )
            ]
            assert len(found) == 1
            places.add(found[0][:2])
            mirrors.add(found[0][2])
    assert len(places) > 5
    assert mirrors == {1, -1}


def _memory(case: Case, folder: Path) -> None:
    net = _net(case)
    with np.load(f"{case['name']}.npz") as given:
        net.set_input_arrays(given["data"], given["label"])
    _values(case, net)


def _output(case: Case, folder: Path) -> None:
    shutil.copy(f"{case['name']}.prototxt", folder)
    given = np.load(DATA / f"{case['name']}.npz")
    os.chdir(folder)
    net = _net(case)
    for name in net.inputs:
        net.blobs[name].data[...] = given[f"in/{name}"]
    net.forward()
    del net
    gc.collect()
    with h5py.File(case["file"]) as got, h5py.File(DATA / case["file"]) as want:
        assert {name: list(got[name].shape) for name in got} == case["datasets"]
        for name in want:
            np.testing.assert_array_equal(got[name][()], want[name][()])
