"""cut_out: found objects as pictures of their own."""

import io

import numpy as np
import pytest

from sparknet.errors import FileError, SparkError
from sparknet.spark import cut_out
from sparknet.spark.predict.cutouts import parts

pytest.importorskip("pyspark")
image = pytest.importorskip("PIL.Image")

FOUND = "array<struct<label:int,score:float,xmin:float,ymin:float,xmax:float,ymax:float>>"


def png(pixels):
    written = io.BytesIO()
    image.fromarray(pixels).save(written, "png")
    return written.getvalue()


def pixels(content):
    with image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture)


def test_each_object_is_a_row(session):
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (9, 7, 3), np.uint8), rng.integers(0, 256, (5, 6), np.uint8)]
    boxes = [
        [(1, 0.9, 1.0, 2.0, 4.4, 8.6), (2, 0.8, 0.0, 0.0, 7.0, 9.0)],
        [(3, 0.7, -3.0, 2.0, 9.0, 9.0)],
    ]
    rows = [(number, png(pictures[number]), boxes[number]) for number in (0, 1)]
    rows.append((2, png(pictures[0]), []))
    data = session.createDataFrame(rows, f"id int, content binary, found {FOUND}")
    cut = cut_out(data, "content", "found").collect()
    assert cut[0].asDict().keys() == {"id", "content", "object"}
    assert [(row.id, row.object.label) for row in cut] == [(0, 1), (0, 2), (1, 3)]
    np.testing.assert_array_equal(pixels(cut[0].content), pictures[0][2:9, 1:4])
    np.testing.assert_array_equal(pixels(cut[1].content), pictures[0])
    np.testing.assert_array_equal(pixels(cut[2].content), pictures[1][2:, :])


def test_fields_of_structs_are_cut(session):
    whole = np.arange(63, dtype=np.uint8).reshape(9, 7)
    rows = [(png(whole), [(1, 0.9, 1.0, 2.0, 4.0, 9.0)])]
    data = session.createDataFrame(rows, f"content binary, found {FOUND}")
    rows = cut_out(data.selectExpr("struct(*) AS rec"), "REC.content", "rec.found").collect()
    assert rows[0].asDict().keys() == {"rec", "REC.content", "object"}
    np.testing.assert_array_equal(pixels(rows[0]["REC.content"]), whole[2:, 1:4])


@pytest.mark.parametrize(
    ("corners", "size"),
    [((3, 3, 3, 3), (1, 1)), ((6.9, 8.9, 20, 20), (1, 1)), ((5, 2, 1, 1), (1, 1))],
)
def test_a_part_has_a_pixel_at_least(corners, size):
    content = png(np.zeros((9, 7, 3), np.uint8))
    (cut,) = parts(content, [[corner] for corner in corners], "content")
    assert pixels(cut).shape[:2] == size


def test_what_cannot_be_cut_is_refused(session):
    rows = session.createDataFrame(
        [(1, b"", [])], f"id int, content binary, found {FOUND}"
    ).selectExpr("*", "1 AS object")
    with pytest.raises(SparkError, match=r"no column 'foud' to cut objects out of; .*'found'"):
        cut_out(rows, "content", "foud")
    with pytest.raises(SparkError, match="column 'id' is of type int: encoded images"):
        cut_out(rows, "id", "found")
    with pytest.raises(SparkError, match="column 'content' is of type binary: detections"):
        cut_out(rows, "content", "content")
    with pytest.raises(SparkError, match="a column 'object' already"):
        cut_out(rows, "content", "found")
    with pytest.raises(FileError, match="column 'content': is no image"):
        parts(b"nothing", [[0], [0], [1], [1]], "content")
    nan = float("nan")
    with pytest.raises(SparkError, match="column 'content' has a detection whose corners"):
        parts(png(np.zeros((2, 2), np.uint8)), [[nan], [0], [1], [1]], "content")
