"""Arrow batches into block files."""

import re
import stat

import numpy as np
import pytest

from sparknet.errors import CommError, FileError, SparkError
from sparknet.predict.input_columns import InputSpec
from sparknet.spark.hosts.task import received_rows
from sparknet.spark.train.ingest import HELD, ROW, open_records, write

pa = pytest.importorskip("pyarrow")

MAPPING = {"data": "pixels", "label": "digit"}
SHAPES = {name: InputSpec(shape) for name, shape in {"data": (1, 2, 2), "label": ()}.items()}


def ingest(batches, path, mapping, shapes, drops=False):
    write(batches, path, mapping, shapes, drops)
    return open_records(path, shapes)


def batch(rows, held=None):
    return pa.RecordBatch.from_pydict(
        {
            "digit": pa.array([row * 10 for row in rows], pa.int64()),
            "pixels": pa.array([bytes([row] * 4) for row in rows], pa.binary()),
            ROW: pa.array(rows, pa.int64()),
            HELD: pa.array(held or [False] * len(rows)),
        }
    )


def test_records_are_in_the_order_of_their_numbers(tmp_path):
    part = ingest([batch([5, 3]), batch([]), batch([4, 1, 2])], tmp_path / "a", MAPPING, SHAPES)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert len(part.training) == 5
    assert len(part.validation) == 0
    found = part.training.take([0, 1, 4])
    assert found["label"].tolist() == [10, 20, 50]
    np.testing.assert_array_equal(found["data"][:, 0, 0, 0], [1, 2, 5])
    assert found["data"].dtype == np.uint8


def test_held_out_records_are_apart(tmp_path):
    part = ingest(
        [batch([0, 1, 2], [False, True, False]), batch([9, 8], [True, True])],
        tmp_path / "a",
        MAPPING,
        SHAPES,
    )
    assert part.training.take(slice(0, 9))["label"].tolist() == [0, 20]
    assert part.validation.take(slice(0, 9))["label"].tolist() == [10, 80, 90]


def test_no_records(tmp_path):
    for batches in ([], [batch([])]):
        part = ingest(batches, tmp_path / "a", MAPPING, SHAPES)
        assert len(part.training) == len(part.validation) == 0
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(("value", "row"), [(1e30, 70), (1e5, None), (-1e9, 99)])
def test_a_value_far_beyond_the_first_is_named(tmp_path, value, row):
    rows = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    rows[70 if row is None else row, 1] = value
    made = pa.RecordBatch.from_pydict(
        {
            "x": pa.array(rows.tolist(), pa.list_(pa.float64())),
            ROW: pa.array(range(100), pa.int64()),
            HELD: pa.array([False] * 100),
        }
    )
    part = ingest([made], tmp_path / "a", {"data": "x"}, {"data": InputSpec((2,))})
    want = f"column 'x' holds {abs(value):g} in partition 0, row {row} of the training data, and"
    assert (part.outlier is None) if row is None else str(part.outlier).startswith(want)


def test_a_failure_leaves_no_file(tmp_path):
    other = pa.RecordBatch.from_pydict(
        {
            "digit": pa.array([1.5]),
            "pixels": pa.array([bytes(4)]),
            ROW: pa.array([1], pa.int64()),
            HELD: pa.array([False]),
        }
    )
    said = r"column 'digit' has values of int64 and of float64: make them of one type \(partition 0"
    with pytest.raises(SparkError, match=said):
        ingest([batch([0]), other], tmp_path / "a", MAPPING, SHAPES)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_row_is_told_by_its_place_in_the_data(tmp_path):
    """Spark's numbers of rows hold the partition in their upper bits."""
    numbers = pa.array([5, (3 << 33) + 7, 6], pa.int64())
    rows = batch([0, 1, 2], [False, True, False]).set_column(2, ROW, numbers)
    rows = rows.set_column(1, "pixels", pa.array([bytes(4), bytes(3), bytes(4)]))
    said = r"is no image that can be read \(partition 3, row 7 of the validation data\)$"
    with pytest.raises(FileError, match=said):
        ingest([rows], tmp_path / "a", MAPPING, SHAPES)


@pytest.mark.parametrize("odd", [float("nan"), float("-inf"), 1e300])
def test_a_number_that_no_float32_is(tmp_path, odd):
    rows = batch([0, 1]).set_column(0, "digit", pa.array([1.0, odd]))
    with pytest.raises(SparkError, match=re.escape(f"column 'digit' holds {odd:g}, no")):
        ingest([rows], tmp_path / "a", MAPPING, SHAPES)


def test_batches_that_are_written_leave_memory(tmp_path):
    """Columns of a batch from a stream share one piece of memory: a view of one keeps all."""
    count, each = 12, 500
    wide: dict[str, tuple[int | None, ...]] = {"data": (1, 100, 100), "label": ()}
    rows = batch([0] * each).set_column(1, "pixels", pa.array([bytes(10_000)] * each))
    written = pa.OSFile(str(tmp_path / "stream"), "wb")
    with written, pa.ipc.new_stream(written, rows.schema) as stream:
        for _ in range(count):
            stream.write_batch(rows)
    before, most = pa.total_allocated_bytes(), 0

    def read():
        nonlocal most
        with pa.OSFile(str(tmp_path / "stream")) as stored:
            for one in pa.ipc.open_stream(stored):
                most = max(most, pa.total_allocated_bytes() - before)
                yield one

    part = ingest(read(), tmp_path / "a", MAPPING, wide)
    assert len(part.training) == count * each
    assert most < 4 * rows.nbytes


def streamed(data):
    """As PySpark reads what the executor writes."""
    yield from pa.ipc.open_stream(pa.BufferReader(data))


@pytest.mark.parametrize("part", [0.0, 0.02, 0.3, 0.6, 0.8])
def test_an_executor_that_stops_sending_is_no_failure_of_the_worker(part):
    """Spark ends a cancelled task's stream before it ends the task."""
    sink = pa.BufferOutputStream()
    rows = [batch(list(range(200))), batch(list(range(50, 250)))]
    with pa.ipc.new_stream(sink, rows[0].schema) as writer:
        for one in rows:
            writer.write_batch(one)
    whole = sink.getvalue().to_pybytes()
    assert [one.num_rows for one in received_rows(streamed(whole))] == [200, 200]
    with pytest.raises(CommError, match=r"^the executor sends no more rows: "):
        list(received_rows(streamed(whole[: int(part * len(whole))])))
