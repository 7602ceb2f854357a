"""Block files: written in one go, mapped, refused where they are not whole."""

import json
import pickle
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sparknet.errors import FileError
from sparknet.loaders.blocks import START, Blocks, write_blocks
from sparknet.loaders.records import ArrayRecords, Column, Records
from tests.goldens import ROOT

DTYPES = st.sampled_from(["u1", "i2", "<i4", ">i4", "i8", "f2", "f4", "f8", "?"])
own_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def some(count: int = 10) -> ArrayRecords:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (count, 3, 5, 7), np.uint8)
    return ArrayRecords(data=data, label=np.arange(count, dtype=np.int64))


@own_folder
@given(st.data())
def test_what_was_written_is_read(tmp_path, data):
    count = data.draw(st.integers(0, 20))
    shapes = data.draw(
        st.lists(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0), min_size=1, max_size=3)
    )
    columns = {
        f"column {number}": data.draw(arrays.arrays(data.draw(DTYPES), (count, *shape)))
        for number, shape in enumerate(shapes)
    }
    records = ArrayRecords(**columns)
    path = tmp_path / "blocks"
    assert write_blocks(path, records, at_once=data.draw(st.integers(1, 7))) == count
    blocks = Blocks(path)
    assert isinstance(blocks, Records)
    assert len(blocks) == count
    rows = data.draw(st.lists(st.integers(0, count - 1), max_size=8)) if count else []
    for name, values in columns.items():
        assert blocks.columns[name].shape == values.shape[1:]
        np.testing.assert_array_equal(blocks.take(slice(None))[name], values)
        np.testing.assert_array_equal(blocks.take(rows)[name], values[rows])


def test_batches_as_they_come(tmp_path):
    path = tmp_path / "blocks"

    def batches():
        yield {"data": [[1.0, 2.0]], "label": [1]}
        yield {"data": [[3.0, 4.0], [5.0, 6.0]], "label": [2, 3]}

    assert write_blocks(path, batches()) == 3
    blocks = Blocks(path)
    assert blocks.columns["data"] == Column(np.dtype("<f8"), (2,))
    assert blocks.take([2, 0])["data"].tolist() == [[5, 6], [1, 2]]


def test_a_slice_is_a_view_that_nobody_can_write_to(tmp_path):
    write_blocks(tmp_path / "blocks", some())
    view = Blocks(tmp_path / "blocks").take(slice(2, 5))["data"]
    assert view.base is not None
    assert not view.flags.writeable
    np.testing.assert_array_equal(view, some().arrays["data"][2:5])


def test_pickled_as_a_path(tmp_path):
    write_blocks(tmp_path / "blocks", some())
    data = pickle.dumps(Blocks(tmp_path / "blocks"))
    assert len(data) < 300
    assert pickle.loads(data).take([3])["label"].tolist() == [3]


def test_a_file_appears_when_it_is_complete(tmp_path):
    def failing():
        yield {"x": [1]}
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_blocks(tmp_path / "blocks", failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "of no batch"),
        ([{"x": [1]}, {"x": [1.5]}], "x: float64 scalar with .1. rows does not fit"),
        ([{"x": [1]}, {"y": [1]}], "a batch of y"),
        ([{"x": [1], "y": [1, 2]}], "with .1, 2. rows"),
        ([{"x": ["word"]}], "column 'x' of type <U4"),
        ([{"x": 1}], "column 'x'"),
        ([{f"a rather long name {n}" * 9: [1] for n in range(30)}], "take too much room"),
    ],
)
def test_batches_that_do_not_fit(tmp_path, batches, message):
    with pytest.raises(FileError, match=message):
        write_blocks(tmp_path / "blocks", batches)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 5, 30, START - 1, START, START + 1, -1])
def test_cut_files_are_refused(tmp_path, cut):
    path = tmp_path / "blocks"
    write_blocks(path, some())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FileError, match=r"blocks: (is cut short|is no block file)"):
        Blocks(path)


def test_a_tail_is_refused(tmp_path):
    path = tmp_path / "blocks"
    write_blocks(path, some())
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(FileError, match="has a tail: "):
        Blocks(path)


@own_folder
@given(st.integers(0, 8 * START - 1))
def test_a_flipped_bit_in_the_header_is_noticed(tmp_path, bit):
    path = tmp_path / "blocks"
    write_blocks(path, some(2))
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"blocks: (has a damaged|has a header|is no block file)"):
        Blocks(path)


@own_folder
@given(st.binary(max_size=200))
def test_foreign_files_are_refused(tmp_path, data):
    path = tmp_path / "blocks"
    path.write_bytes(data)
    with pytest.raises(FileError, match="blocks: "):
        Blocks(path)


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"records": -1, "columns": [["x", "<f4", []]]},
        {"records": True, "columns": [["x", "<f4", []]]},
        {"records": 1, "columns": []},
        {"records": 1, "columns": [["x", "O", []]]},
        {"records": 1, "columns": [["x", "<U9999999", []]]},
        {"records": 1, "columns": [["x", "<f4", [-1]]]},
        {"records": 1, "columns": [["x", "<f4", [1 << 30, 1 << 30, 1 << 30]]]},
        {"records": 1, "columns": [["x", "<f4", [1] * 40]]},
        {"records": 1, "columns": [["x", "<f4", []], ["x", "<f4", []]]},
        {"records": 1 << 47, "columns": [["x", "<f4", [1 << 20]]]},
    ],
)
def test_headers_that_lie(tmp_path, header):
    text = json.dumps(header).encode()
    page = text.ljust(START - 16, b"\0")
    front = struct.pack("<8sII", b"SNBLOCK1", len(text), zlib.crc32(page))
    path = tmp_path / "blocks"
    path.write_bytes(front + page + bytes(8))
    with pytest.raises(FileError, match=r"blocks: (has a header that cannot be used|is cut short)"):
        Blocks(path)


@pytest.mark.parametrize("name", [".", "nothing"])
def test_what_is_no_file(tmp_path, name):
    with pytest.raises(FileError):
        Blocks(tmp_path / name)


STREAMS = """
import resource, sys
import numpy as np
from sparknet.loaders.batches import Batches
from sparknet.loaders.blocks import Blocks, write_blocks
from sparknet.loaders.order import Order

path, count = sys.argv[1], 3000
def batches():
    for begin in range(0, count, 100):
        data = np.full((100, 100_000), begin // 100, np.uint8)
        yield {"data": data, "label": np.arange(begin, begin + 100)}
# 300 MB of records pass through a process that may have 160 MB more than it has by now.
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[5])
limit = pages * resource.getpagesize() + 160_000_000
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
write_blocks(path, batches())
blocks, total, labels = Blocks(path), 0, []
with Batches(blocks, 60, Order(count, seed=4)) as source:
    for _ in range(count // 60):
        batch = source.next()
        total += int(batch["data"].sum())
        labels += batch["label"].tolist()
assert sorted(labels) == list(range(count))
assert total == sum(range(30)) * 100 * 100_000, total
try:
    bytearray(300_000_000)
except MemoryError:
    print("streamed")
"""


def test_files_larger_than_memory_are_streamed(tmp_path):
    command = [sys.executable, "-c", STREAMS, str(tmp_path / "blocks")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert (done.stdout, done.stderr) == ("streamed\n", "")
