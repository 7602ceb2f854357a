"""What a notebook shows of nets, blobs and records that stand at a cell's end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparknet import caffe
from sparknet.loaders import ArrayRecords, Batches, Chain, ImageFiles, NumpyFiles, Subset

TEXT = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [2, 3, 4, 4] } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 5 kernel_size: 3 weight_filler { type: "constant" value: 2 }
  bias_filler { type: "constant" value: -1 } } }
layer { name: "empty" type: "ReLU" bottom: "conv" top: "relu" }
"""


def test_nets_and_blobs(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(TEXT)
    net = caffe.Net(str(path), caffe.TEST)
    assert repr(net) == (
        "<caffe.Net 'small', TEST: 3 layers, 140 parameters, inputs ['data'], outputs ['relu']>"
    )
    assert "<table>" in net._repr_html_()
    assert repr(net.blobs["data"]) == "<Blob (2, 3, 4, 4) float32>"
    assert repr(net.params["conv"]) == (
        "[<Blob (5, 3, 3, 3) float32, 2 to 2>, <Blob (5,) float32, -1 to -1>]"
    )
    net.params["conv"][1].data[2] = 0.12345
    assert repr(net.params["conv"][1]) == "<Blob (5,) float32, -1 to 0.1235>"


def test_the_extension_of_notebooks() -> None:
    code = "import sparknet; sparknet.load_ipython_extension(None); import caffe; print(caffe.Net)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "<class 'sparknet.caffe.net.Net'>\n"


def test_records_and_batches() -> None:
    records = ArrayRecords(data=np.zeros((9, 3, 4), np.uint8), label=np.arange(9))
    assert repr(records) == "<9 records, data (3, 4) uint8, label () int64>"
    batches = Batches(records, 4)
    try:
        assert repr(batches) == "<Batches of 4 of 9 records, data (3, 4) uint8, label () int64>"
    finally:
        batches.close()
    chosen = Subset(records, [1, 3])
    assert repr(chosen) == "<Subset: 2 records, data (3, 4) uint8, label () int64>"
    assert (
        repr(Chain([chosen, records])) == "<Chain: 11 records, data (3, 4) uint8, label () int64>"
    )


def test_records_of_files(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        image.new("RGB", (5, 4)).save(tmp_path / name / "1.png")
    told = "<ImageFiles: 2 records, data (3, 4, 5) uint8, label () int32>"
    assert repr(ImageFiles(tmp_path)) == told
    for name in ("cat", "dog"):
        (tmp_path / name / "1.png").write_bytes(b"no picture")
    assert repr(ImageFiles(tmp_path)).startswith(f"<ImageFiles: 2 records: {tmp_path}/cat/1.png: ")
    np.savez(tmp_path / "few.npz", data=np.zeros((4, 2), np.float32))
    assert repr(NumpyFiles(tmp_path / "few.npz")) == "<NumpyFiles: 4 records, data (2,) float32>"
