"""Columns of Arrow batches as arrays."""

import io
import time
from decimal import Decimal

import numpy as np
import pytest

from sparknet.errors import FileError, SparkError
from sparknet.predict.input_columns import InputSpec, arrays, column

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_numbers():
    np.testing.assert_array_equal(column(pa.array([3, 1, 2]), "label", ()), [3, 1, 2])
    np.testing.assert_array_equal(column(pa.array([True, False]), "label", ()), [1, 0])
    assert column(pa.array([1.5]), "label", (1,)).shape == (1, 1)


def test_lists_of_numbers():
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    for type_ in (pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 4)):
        values = pa.array(rows.tolist(), type_)
        np.testing.assert_array_equal(column(values, "x", (4,)), rows)
        np.testing.assert_array_equal(column(values[1:], "x", (2, 2)), rows[1:].reshape(2, 2, 2))


def test_decimals():
    numbers = [Decimal("1.25"), Decimal("-3.5")]
    np.testing.assert_array_equal(column(pa.array(numbers), "x", ()), [1.25, -3.5])
    lists = pa.array([numbers, numbers[::-1]], pa.list_(pa.decimal128(10, 2)))
    found = column(lists, "x", (2,))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[1.25, -3.5], [-3.5, 1.25]])
    nested = pa.array([[[numbers[0]], [numbers[1]]]], pa.list_(pa.list_(pa.decimal128(10, 2))))
    np.testing.assert_array_equal(column(nested, "x", (2, 1)), [[[1.25], [-3.5]]])


def test_lists_of_lists():
    rows = np.arange(12).reshape(2, 2, 3)
    values = pa.array(rows.tolist(), pa.list_(pa.list_(pa.int64())))
    np.testing.assert_array_equal(column(values, "x", (1, 2, 3)), rows[:, None])


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary(6)], ids=str)
def test_bytes(type_):
    rows = np.arange(18, dtype=np.uint8).reshape(3, 6)
    values = pa.array([row.tobytes() for row in rows], type_)
    np.testing.assert_array_equal(column(values, "x", (1, 2, 3)), rows.reshape(3, 1, 2, 3))
    np.testing.assert_array_equal(column(values[1:2], "x", (6,)), rows[1:2])


def test_bytes_of_floats():
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = column(pa.array([row.tobytes() for row in rows], pa.binary()), "x", (3,))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, rows)


def test_encoded_images():
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 5, 4, 3), np.uint8)

    def encoded(rows):
        file = io.BytesIO()
        image.fromarray(rows).save(file, "png")
        return file.getvalue()

    values = pa.array([encoded(rows) for rows in pixels], pa.binary())
    np.testing.assert_array_equal(
        column(values, "x", (3, 5, 4)), pixels[..., ::-1].transpose(0, 3, 1, 2)
    )
    with pytest.raises(FileError, match=r"column 'x': is no image"):
        column(pa.array([encoded(pixels[0]), b"nothing"], pa.binary()), "x", (3, 5, 4))


def test_image_structs():
    pixels = np.arange(2 * 2 * 3 * 3, dtype=np.uint8).reshape(2, 2, 3, 3)
    values = pa.array(
        [
            {"height": 2, "width": 3, "nChannels": 3, "mode": 16, "data": rows.tobytes()}
            for rows in pixels
        ]
    )
    np.testing.assert_array_equal(column(values, "x", (3, 2, 3)), pixels.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("kind", ["L", "RGB", "RGBA", "P"])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_sparks_source_are_what_their_files_are(session, tmp_path, kind, channels):
    """Grey and RGBA ones too, into nets that want colour or grey."""
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 4, 4), np.uint8)
    for number, rows in enumerate(pixels):
        made = image.fromarray(rows if kind == "RGBA" else rows[..., :3]).convert(kind)
        made.save(tmp_path / f"{number}.png")
    images = session.read.format("image").load(str(tmp_path)).orderBy("image.origin")
    images.coalesce(1).write.parquet(str(tmp_path / "images"))
    structs = pq.read_table(tmp_path / "images")
    files = [path.read_bytes() for path in sorted(tmp_path.glob("*.png"))]
    found = column(structs.combine_chunks().column(0).chunk(0), "x", (channels, 5, 4))
    expected = column(pa.array(files, pa.binary()), "x", (channels, 5, 4))
    assert found.shape == (3, channels, 5, 4)
    np.testing.assert_array_equal(found, expected)


def test_an_image_that_spark_could_not_read():
    none = {"origin": "f:/a.png", "height": -1, "width": -1, "nChannels": -1, "data": b""}
    with pytest.raises(SparkError, match=r"column 'x': this is no image .*: f:/a.png \(its option"):
        column(pa.array([none]), "x", (3, 2, 3))


VECTORS = pa.struct(
    [
        ("type", pa.int8()),
        ("size", pa.int32()),
        ("indices", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float64())),
    ]
)


def vectors(*rows: list[float] | tuple[int, dict[int, float]]) -> pa.Array:
    """Vectors of pyspark.ml: a list is dense, a size and a dict are sparse."""
    cells = [
        {"type": 1, "size": None, "indices": None, "values": row}
        if isinstance(row, list)
        else {"type": 0, "size": row[0], "indices": [*row[1]], "values": [*row[1].values()]}
        for row in rows
    ]
    return pa.array(cells, VECTORS)


def test_vectors():
    values = vectors(
        [1.0, 2.0, 3.0], (3, {1: 5.0}), (3, {}), [4.0, 5.0, 6.0], (3, {2: 7.0, 0: 8.0})
    )
    want = np.array([[1, 2, 3], [0, 5, 0], [0, 0, 0], [4, 5, 6], [8, 0, 7]])
    for begin, end in ((0, 5), (1, 4), (3, 4), (4, 5), (0, 1)):
        made = column(values.slice(begin, end - begin), "x", (3,))
        np.testing.assert_array_equal(made, want[begin:end])
    # PySpark 3.5 gives dense vectors' size and indices no type.
    cells = {"type": [1, 1], "size": [None] * 2, "indices": [None] * 2, "values": [[1.0], [2.0]]}
    dense = pa.RecordBatch.from_pydict(cells).to_struct_array()
    np.testing.assert_array_equal(column(dense, "x", (1,)), [[1], [2]])


def test_vectors_are_not_read_row_by_row():
    """10 us a row take half a second; Arrow's memory is taken as it is."""
    numbers = np.random.default_rng(0).normal(size=(50_000, 100))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), 100)
    parts = [
        pa.array(np.ones(len(numbers), np.int8)),
        pa.nulls(len(numbers), pa.int32()),
        pa.nulls(len(numbers), pa.list_(pa.int32())),
        lists.cast(pa.list_(pa.float64())),
    ]
    values = pa.StructArray.from_arrays(parts, fields=list(VECTORS))
    times = []
    for _ in range(3):
        begun = time.process_time()
        made = column(values, "x", (100,))
        times.append(time.process_time() - begun)
    assert min(times) < 0.1
    np.testing.assert_array_equal(made, numbers)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1.0, 2.0], "a vector of 2 values: 3 are wanted"),
        ((4, {1: 5.0}), "a vector of 4 values: 3 are wanted"),
        ((3, {7: 5.0}), r"a sparse vector with a place outside 0\.\.2"),
        ((3, {-1: 5.0}), r"a sparse vector with a place outside 0\.\.2"),
    ],
)
def test_a_vector_that_does_not_fit(vector, message):
    for rows in ([vector], [[1.0, 2.0, 3.0], vector]):
        with pytest.raises(SparkError, match=f"column 'x' has {message}"):
            column(vectors(*rows), "x", (3,))


def test_a_sparse_vector_of_more_values_than_places():
    odd = {"type": 0, "size": 3, "indices": [1], "values": [5.0, 6.0]}
    with pytest.raises(SparkError, match="column 'x' has a sparse vector of more values or fewer"):
        column(pa.array([odd], VECTORS), "x", (3,))


@pytest.mark.parametrize(
    ("values", "shape", "message"),
    [
        (pa.array([1, None]), (), "column 'x' is null: fill such rows"),
        (pa.array([[1.0], [1.0, 2.0]]), (1,), r"column 'x' has rows of 1 and of 2 values"),
        (pa.array([[1.0, None]]), (2,), r"column 'x' has nulls inside"),
        (
            pa.array([[1.0, 2.0]]),
            (3,),
            r"column 'x' has 2 values per row, but the net takes \(3,\)",
        ),
        (pa.array([b"12345"]), (3,), r"rows of 5 bytes: \(3,\) is 3 as bytes and 12 as float32"),
        (pa.array(["text"]), (), r"column 'x' is of type string"),
        (pa.array([{"a": 1}]), (1,), r"column 'x' is a struct of \['a'\]"),
    ],
)
def test_what_no_net_takes(values, shape, message):
    with pytest.raises(SparkError, match=message):
        column(values, "x", shape)


def test_blobs_by_columns():
    batch = pa.RecordBatch.from_pydict({"pixels": [[1.0, 2.0]], "digit": [7], "more": ["x"]})
    found = arrays(batch, {"data": "pixels", "label": "digit"}, {"data": (1, 1, 2), "label": ()})
    assert found["data"].shape == (1, 1, 1, 2)
    assert found["label"].tolist() == [7]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((3, 4, 16), "a record is 3 x 4 x 16, the net wants 3 x 8 x 8; resize or crop it"),
        ((8, 8, 3), "a record is 8 x 8 x 3, the net wants 3 x 8 x 8; channels come first"),
        ((16, 12), "a record is 16 x 12, the net wants 3 x 8 x 8; arrange it so first"),
    ],
)
def test_nested_lists_have_a_shape(sizes, message):
    rows = np.arange(2 * 192, dtype=np.float32).reshape(2, *sizes)
    with pytest.raises(SparkError, match=f"column 'x': {message}"):
        column(pa.array(rows.tolist()), "x", (3, 8, 8))
    flat = pa.array(rows.reshape(2, -1).tolist())
    np.testing.assert_array_equal(column(flat, "x", (3, 8, 8)), rows.reshape(2, 3, 8, 8))


def test_image_files_of_another_size():
    """As many bytes, and still another picture."""
    image = {"height": 4, "width": 16, "nChannels": 3, "mode": 16, "data": bytes(192)}
    with pytest.raises(SparkError, match="column 'x': a record is 3 x 4 x 16, the net wants 3 x 8"):
        column(pa.array([image]), "x", (3, 8, 8))
    assert column(pa.array([image]), "x", (3, None, None)).shape == (1, 3, 4, 16)
    assert column(pa.array([image]), "x", (192,)).shape == (1, 192)
    file = io.BytesIO()
    pytest.importorskip("PIL.Image").new("RGB", (16, 4)).save(file, "png")
    with pytest.raises(SparkError, match="column 'x': a record is 3 x 4 x 16, the net wants 3 x 8"):
        column(pa.array([file.getvalue()], pa.binary()), "x", (3, 8, 8))


def test_no_rows():
    none = {"height": 2, "width": 2, "nChannels": 1, "mode": 0, "data": bytes(4)}
    for values in (pa.array([none]), pa.array([b"abc"]), pa.array([[1.5]])):
        assert column(values[:0], "x", (1, 2, 2)).shape == (0, 1, 2, 2)
        assert column(values[:0], "x", (3, None, None)).shape == (0, 3, 0, 0)


BOXES = [[[1, 0, 0, 0.5, 0.5], [2, 0.5, 0.5, 1, 1]], [], [[3, 0, 0, 1, 1]]]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_records_with_fewer_rows_are_filled_up(kind):
    values = pa.array(BOXES, kind(kind(pa.float32())))
    want = np.full((3, 4, 5), -1, np.float32)
    for record, boxes in zip(want, BOXES, strict=True):
        for row, box in zip(record, boxes, strict=False):
            row[:] = box
    for part in (slice(0, 3), slice(1, 3), slice(1, 2)):
        batch = pa.RecordBatch.from_pydict({"b": values[part]})
        found = arrays(batch, {"boxes": "b"}, {"boxes": InputSpec((4, 5), blank=-1.0)})
        np.testing.assert_array_equal(found["boxes"], want[part])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[[1, 0, 0, 1, 1]] * 5], "column 'b' has a row of 5: the net has room for 4"),
        ([[[1, 0, 0, 1]]], "column 'b' has 4 values per row, but the net takes \\(5,\\)"),
        ([[None]], "column 'b' has nulls inside its lists"),
        ([[[1, 0, 0, 1, None]]], "column 'b' has nulls inside its lists"),
        ([None], "column 'b' is null"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, message):
    batch = pa.RecordBatch.from_pydict({"b": pa.array(rows, pa.list_(pa.list_(pa.float32())))})
    with pytest.raises(SparkError, match=message):
        arrays(batch, {"boxes": "b"}, {"boxes": InputSpec((4, 5), blank=-1.0)})
