"""Net specifications and arrays against what real pycaffe made of them."""

import runpy

import numpy as np
import pytest

from sparknet.caffe import alias, io
from sparknet.proto import caffe_pb2
from tests.goldens import GOLDENS, agrees, cases, golden, index

FORMATS = GOLDENS / "formats"
ARRAYS = FORMATS / "arrays"


def test_every_case_is_here():
    assert len(index("formats/netspec")) == len(list((FORMATS / "netspec").glob("*.py"))) == 8
    assert len(index("formats/arrays")) == 8


@golden("formats/netspec")
@pytest.mark.parametrize("name", [case["name"] for case in index("formats/netspec")])
def test_net_specification(name):
    from sparknet.proto import format_text, parse_text

    with alias.installed():
        text = runpy.run_path(str(FORMATS / "netspec" / f"{name}.py"))["net_text"]
    stored = (FORMATS / "netspec" / f"{name}.prototxt").read_text()
    got = parse_text(text, caffe_pb2.NetParameter)
    want = parse_text(stored, caffe_pb2.NetParameter)
    assert got == want
    assert format_text(got) == format_text(want)
    assert [(key, value) for key, value in _lines(text)] == list(_lines(stored))


def _lines(text):
    """(field, value) in order, numbers as numbers: spelling aside, the text itself."""
    for line in text.split("\n"):
        key, _, value = line.strip().partition(": ")
        try:
            yield key, float(value)
        except ValueError:
            yield key, value


@pytest.fixture(scope="module")
def arrays():
    with np.load(ARRAYS / "arrays.npz") as data:
        return dict(data)


def same(got, want):
    return agrees(got, want, 1e-5, 1e-6, 1e-9)


@golden("formats/arrays", "blob")
def test_blob(arrays):
    message = caffe_pb2.BlobProto.FromString((ARRAYS / "blob.binaryproto").read_bytes())
    assert io.array_to_blobproto(arrays["blob/data"], arrays["blob/diff"]) == message
    assert np.array_equal(io.blobproto_to_array(message), arrays["blob/data"])
    assert np.array_equal(io.blobproto_to_array(message, True), arrays["blob/diff"])


@golden("formats/arrays", "blob_legacy")
def test_blob_legacy(arrays):
    message = caffe_pb2.BlobProto.FromString((ARRAYS / "blob_legacy.binaryproto").read_bytes())
    got = io.blobproto_to_array(message)
    assert got.shape == (1, 2, 1, 3)
    assert np.array_equal(got, arrays["blob_legacy/data"])


@golden("formats/arrays", "datum_float")
def test_datum_float(arrays):
    data = (ARRAYS / "datum_float.bin").read_bytes()
    datum = io.array_to_datum(arrays["datum_float/data"], 7)
    assert datum == caffe_pb2.Datum.FromString(data)
    assert datum.SerializeToString() == data
    assert np.array_equal(io.datum_to_array(datum), arrays["datum_float/data"])


@cases("formats/arrays", [c for c in index("formats/arrays") if "settings" in c])
def test_transformer(case, arrays):
    transformer = io.Transformer({k: tuple(v) for k, v in case["inputs"].items()})
    for setting, value in case["settings"].items():
        chosen = arrays[value] if setting == "mean" else value
        getattr(transformer, f"set_{setting}")("data", chosen)
    name = case["name"]
    got = transformer.preprocess("data", arrays[f"{name}/image"])
    assert got.dtype == np.float32
    assert same(got, arrays[f"{name}/preprocessed"])
    assert same(transformer.deprocess("data", got), arrays[f"{name}/deprocessed"])


@golden("formats/arrays", "oversample")
def test_oversample(arrays):
    crops = io.oversample(arrays["oversample/images"], (5, 6))
    assert np.array_equal(crops, arrays["oversample/crops"])
